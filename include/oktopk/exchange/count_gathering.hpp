// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/call_context.hpp>
#include <oktopk/comm/collectives.hpp>
#include <oktopk/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace oktopk {

namespace detail {

/// Throws `damaged_message` where a rank tells of more entries than its vector has: no room is made for them.
inline void check_counts(std::span<std::int64_t const> counts, std::int64_t length) {
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    if (counts[rank] < 0 || counts[rank] > length) {
      throw error(fault::damaged_message, "rank " + std::to_string(rank) + " tells of " + std::to_string(counts[rank]) +
                                              " entries of a vector of " + std::to_string(length));
    }
  }
}

} // namespace detail

/// How many entries each rank has, told to all ranks.
///
/// 2(P-1) words in ceil(log2 P) messages. A fault that a rank has noted travels in the place of its number; then the
/// fault of the lowest faulty rank is thrown on every rank.
template <communicator Comm>
class count_gathering {
public:
  /// Collective. The counts, in rank order, are the same on all ranks and valid until the next run. Throws
  /// `damaged_message` where one is more than the length of the call, so that no room is made for it.
  template <execution_space E>
  std::span<std::int64_t const> run(call_context<E, Comm>& call, std::int64_t count, phase use = phase::control) {
    auto const mine = static_cast<std::int64_t>(call.header(count, use));
    counts_.resize(static_cast<std::size_t>(call.comm.size()));
    allgather(call.comm, std::span<std::int64_t const>(&mine, 1), std::span<std::int64_t>(counts_), use, collective_);
    call.hear_all(counts_, 1, use);
    detail::check_counts(counts_, call.length);
    return counts_;
  }

private:
  std::vector<std::int64_t> counts_;
  collective_workspace collective_;
};

} // namespace oktopk
