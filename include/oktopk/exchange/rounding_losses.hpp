// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/call_context.hpp>
#include <oktopk/core/kokkos_ext/kernels.hpp>
#include <oktopk/core/sparse.hpp>
#include <oktopk/core/workspace.hpp>
#include <oktopk/exchange/split_and_reduce.hpp>
#include <oktopk/format/concept.hpp>
#include <oktopk/sparse/sorted_sets.hpp>

#include <cstdint>

namespace oktopk {

namespace detail {

template <gradient_index Index, gradient_value Value>
struct own_rounding_losses {
  Index const* from;
  Value const* exact;
  Value const* rounded;
  Index* indices;
  Value* values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    indices[i] = from[i];
    values[i] = exact[i] - rounded[i];
  }
};

} // namespace detail

/// Entries that return to this rank's residual where a format is lossy: what its own messages rounded off.
///
/// Of the entries that it sent to the owners of their regions, those that made it into the result; of the sums of its
/// own region, those that it sent to all. Every rounding is one rank's, and returns there once. Sends nothing.
template <execution_space E, sparse_format Format>
class rounding_losses {
public:
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;
  using entries_type = entries_of<Format, E>;

  /// Ascending, unique and valid until the next run. `sums` are this rank's part of the result before they were
  /// encoded, `result` is the whole, whose entries from `position` on are this rank's part, decoded.
  template <communicator Comm>
  entries_type run(call_context<E, Comm>& call, split_and_reduce_result<Format, E> const& sent,
                   entries_type const& sums, entries_type const& result, std::int64_t position) {
    if (sent.losses.values.extent(0) == 0 && sums.size() == 0) {
      return {};
    }
    E const& exec = call.exec;
    indices_.reserve(exec, sent.losses.size() + sums.size());
    values_.reserve(exec, sent.losses.size() + sums.size());
    std::int64_t count =
        add_contributed(exec, sent.losses.slice(0, sent.own_first), result.indices, indices_.data(), values_.data());
    add_own(exec, sums, result.values.data() + position, indices_.data() + count, values_.data() + count);
    count += sums.size();
    count += add_contributed(exec, sent.losses.slice(sent.own_last, sent.losses.size()), result.indices,
                             indices_.data() + count, values_.data() + count);
    return {indices_.data(), values_.data(), count};
  }

  /// The same where a rank sent `entries` to all and nothing else: `rounded` is what the others have of the values.
  template <communicator Comm>
  entries_type run(call_context<E, Comm>& call, entries_type const& entries, value_type const* rounded) {
    values_.reserve(call.exec, entries.size());
    detail::losses_of<E, value_type>(call.exec, entries.values.data(), rounded, entries.size(), values_.data());
    return {entries.indices.data(), values_.data(), entries.size()};
  }

private:
  static void add_own(E const& exec, entries_type const& sums, value_type const* rounded, index_type* indices,
                      value_type* values) {
    detail::own_rounding_losses<index_type, value_type> const kernel{sums.indices.data(), sums.values.data(), rounded,
                                                                     indices, values};
    Kokkos::parallel_for("oktopk::rounding_losses::add_own", detail::index_range<E>(exec, 0, sums.size()), kernel);
  }

  static std::int64_t add_contributed(E const& exec, entries_type const& losses,
                                      array_ref<index_type const, typename E::memory_space> result, index_type* indices,
                                      value_type* values) {
    return losses.size() == 0 ? 0 : common_entries<E, index_type, value_type>(exec, losses, result, indices, values);
  }

  buffer<index_type, typename E::memory_space> indices_{"oktopk::rounding_losses::indices"};
  buffer<value_type, typename E::memory_space> values_{"oktopk::rounding_losses::values"};
};

} // namespace oktopk
