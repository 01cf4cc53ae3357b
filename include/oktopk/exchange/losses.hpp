// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/call_context.hpp>
#include <oktopk/core/workspace.hpp>
#include <oktopk/exchange/concept.hpp>
#include <oktopk/format/concept.hpp>
#include <oktopk/partition/regions.hpp>
#include <oktopk/sparse/arithmetic.hpp>

#include <algorithm>
#include <numeric>
#include <span>

namespace oktopk::detail {

template <gradient_index Index, gradient_value Value>
struct own_rounding_losses {
  Index const* from;
  Value const* exact;
  Value const* rounded;
  std::int64_t shift;
  Index* indices;
  Value* values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    indices[i] = static_cast<Index>(from[i] + shift);
    values[i] = exact[i] - rounded[i];
  }
};

/// Entries that return to this rank's residual if a format is lossy: the losses of its own messages.
///
/// These are the losses of two kinds of entries: those that it sent to the owners of their regions and that are in the
/// result, and the sums of its own region that it sent to all. Every rounding is done by one rank, and returns there
/// once. Sends nothing.
template <execution_space E, sparse_format Format>
class rounding_losses {
public:
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;
  using entries_type = entries_of<Format, E>;

  explicit rounding_losses(Format const& format = {}) : is_lossy_(is_lossy(format)) {}

  /// Ascending, unique and valid until the next run; empty where the format loses nothing. `result` is that of `deliver`
  /// in the order of `owned`, `all` are its entries in the gradient's.
  template <communicator Comm>
  entries_type run(call_context<E, Comm>& call, reduced<Format, E> const& sent, delivered<Format, E> const& result,
                   entries_type const& all, regions<E> const& owned) {
    if (Format::lossless || !is_lossy_) { // a constant first: the rest is then not compiled
      return {};
    }
    auto const entries_in = [](std::span<entries_type const> lists) {
      return std::accumulate(lists.begin(), lists.end(), std::int64_t(0),
                             [](std::int64_t count, entries_type const& each) { return count + each.size(); });
    };
    std::int64_t const most = result.own.size() + entries_in(sent.losses_below) + entries_in(sent.losses_above);
    if (most == 0) {
      return {};
    }
    found_.reserve(call.exec, most);
    std::int64_t count = 0;
    bool const in_order = sent.order->is_identity();
    auto const add = [&](entries_type const& losses) {
      count += in_order ? contributed(call.exec, losses, all, found_, count) : copied(call.exec, losses, count);
    };
    std::ranges::for_each(sent.losses_below, add);
    add_own(call, result, sent.order->region_of(sent.place).begin - owned.region_of(call.comm.rank()).begin, count);
    count += result.own.size();
    std::ranges::for_each(sent.losses_above, add);
    if (in_order) {
      return found_.entries(count);
    }
    entries_type const restored = sent.order->restored(call.exec, found_.entries(count), restored_);
    return found_.entries(contributed(call.exec, restored, all, found_, 0));
  }

  /// The same if a rank sent `entries` to all and nothing else.
  template <communicator Comm>
  entries_type run(call_context<E, Comm>& call, entries_type const& entries, entries_type const& result,
                   std::span<std::int64_t const> counts) {
    if (!is_lossy_) {
      return {};
    }
    found_.reserve(call.exec, entries.size());
    losses_of<E, value_type>(call.exec, entries.values.data(), own_values(call, result, counts), entries.size(),
                             found_.values.data());
    return {entries.indices.data(), found_.values.data(), entries.size()};
  }

private:
  // The values of this rank's part of the result, as the others have them.
  template <communicator Comm>
  static value_type const* own_values(call_context<E, Comm>& call, entries_type const& result,
                                      std::span<std::int64_t const> counts) {
    return result.values.data() + std::accumulate(counts.begin(), counts.begin() + call.comm.rank(), std::int64_t(0));
  }

  // The losses of this rank's part of the result, whose indices are `shift` higher in the order of `found_`.
  template <communicator Comm>
  void add_own(call_context<E, Comm>& call, delivered<Format, E> const& result, std::int64_t shift, std::int64_t at) {
    own_rounding_losses<index_type, value_type> const kernel{
        result.own.indices.data(),  result.own.values.data(), own_values(call, result.all, result.counts), shift,
        found_.indices.data() + at, found_.values.data() + at};
    Kokkos::parallel_for("oktopk::rounding_losses::add_own", index_range<E>(call.exec, 0, result.own.size()), kernel);
  }

  // Writes those that are in the result to a place, and gives their number.
  static std::int64_t contributed(E const& exec, entries_type const& losses, entries_type const& all,
                                  entries_buffer<index_type, value_type, E> const& out, std::int64_t at) {
    return losses.size() == 0 ? 0
                              : common_entries<E, index_type, value_type>(
                                    exec, losses, all.indices, out.indices.data() + at, out.values.data() + at);
  }

  std::int64_t copied(E const& exec, entries_type const& losses, std::int64_t at) {
    using space = typename E::memory_space;
    enqueue_copy<space, space>(exec, found_.indices.data() + at, losses.indices.data(), losses.size());
    enqueue_copy<space, space>(exec, found_.values.data() + at, losses.values.data(), losses.size());
    return losses.size();
  }

  bool is_lossy_;
  entries_buffer<index_type, value_type, E> found_{"oktopk::rounding_losses::found"};
  entries_buffer<index_type, value_type, E> restored_{"oktopk::rounding_losses::restored"};
};

} // namespace oktopk::detail
