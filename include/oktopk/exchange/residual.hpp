// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/call_context.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/core/sparse.hpp>
#include <oktopk/core/workspace.hpp>
#include <oktopk/exchange/split_and_reduce.hpp>
#include <oktopk/format/concept.hpp>
#include <oktopk/sparse/sorted_sets.hpp>

#include <numeric>

// The entries that a rank takes from a call for its residual.
namespace oktopk::detail {

/// Indices that a rank selected and that made it into the result (Algorithm 1, line 14). Sends nothing.
template <execution_space E, gradient_index Index>
class contributed_indices {
public:
  using indices_type = array_ref<Index const, typename E::memory_space>;

  /// Both lists ascend; so does the result, which is valid until the next run.
  template <communicator Comm>
  indices_type run(call_context<E, Comm>& call, indices_type const& selected, indices_type const& result) {
    found_.reserve(call.exec, static_cast<std::int64_t>(selected.extent(0)));
    std::int64_t const count = intersection<E, Index>(call.exec, selected, result, found_.data(), workspace_);
    return indices_type(found_.data(), static_cast<std::size_t>(count));
  }

private:
  buffer<Index, typename E::memory_space> found_{"oktopk::contributed"};
  detail::order_workspace<E> workspace_;
};

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

  explicit rounding_losses(Format const& format = {}) : is_lossy_(is_lossy(format)) {}

  /// Ascending, unique and valid until the next run; empty where the format loses nothing. `sums` are this rank's part
  /// of the result before they were encoded, `result` is the whole, decoded, with `counts` entries of each rank.
  template <communicator Comm>
  entries_type run(call_context<E, Comm>& call, split_and_reduce_result<Format, E> const& sent,
                   entries_type const& sums, entries_type const& result, std::span<std::int64_t const> counts) {
    if (!is_lossy_ || (sent.losses.values.extent(0) == 0 && sums.size() == 0)) {
      return {};
    }
    E const& exec = call.exec;
    indices_.reserve(exec, sent.losses.size() + sums.size());
    values_.reserve(exec, sent.losses.size() + sums.size());
    std::int64_t count =
        add_contributed(exec, sent.losses.slice(0, sent.own_first), result.indices, indices_.data(), values_.data());
    detail::own_rounding_losses<index_type, value_type> const kernel{sums.indices.data(), sums.values.data(),
                                                                     own_values(call, result, counts),
                                                                     indices_.data() + count, values_.data() + count};
    Kokkos::parallel_for("oktopk::rounding_losses::add_own", detail::index_range<E>(exec, 0, sums.size()), kernel);
    count += sums.size();
    count += add_contributed(exec, sent.losses.slice(sent.own_last, sent.losses.size()), result.indices,
                             indices_.data() + count, values_.data() + count);
    return {indices_.data(), values_.data(), count};
  }

  /// The same where a rank sent `entries` to all and nothing else.
  template <communicator Comm>
  entries_type run(call_context<E, Comm>& call, entries_type const& entries, entries_type const& result,
                   std::span<std::int64_t const> counts) {
    if (!is_lossy_) {
      return {};
    }
    values_.reserve(call.exec, entries.size());
    detail::losses_of<E, value_type>(call.exec, entries.values.data(), own_values(call, result, counts), entries.size(),
                                     values_.data());
    return {entries.indices.data(), values_.data(), entries.size()};
  }

private:
  // Those of this rank's part, as the others have them.
  template <communicator Comm>
  static value_type const* own_values(call_context<E, Comm>& call, entries_type const& result,
                                      std::span<std::int64_t const> counts) {
    return result.values.data() + std::accumulate(counts.begin(), counts.begin() + call.comm.rank(), std::int64_t(0));
  }

  static std::int64_t add_contributed(E const& exec, entries_type const& losses,
                                      array_ref<index_type const, typename E::memory_space> result, index_type* indices,
                                      value_type* values) {
    return losses.size() == 0 ? 0 : common_entries<E, index_type, value_type>(exec, losses, result, indices, values);
  }

  bool is_lossy_;
  buffer<index_type, typename E::memory_space> indices_{"oktopk::rounding_losses::indices"};
  buffer<value_type, typename E::memory_space> values_{"oktopk::rounding_losses::values"};
};

} // namespace oktopk::detail
