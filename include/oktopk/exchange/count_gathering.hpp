// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/call_context.hpp>
#include <oktopk/comm/collectives.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace oktopk {

/// How many entries each rank has, told to all ranks.
///
/// 2(P-1) words in ceil(log2 P) messages. A fault that a rank has noted travels in the place of its number; then the
/// fault of the lowest faulty rank is thrown on every rank.
template <communicator Comm>
class count_gathering {
public:
  /// Collective. The counts, in rank order, are the same on all ranks and valid until the next run.
  template <execution_space E>
  std::span<std::int64_t const> run(call_context<E, Comm>& call, std::int64_t count, phase use = phase::control) {
    auto const mine = static_cast<std::int64_t>(call.faults.packed_or(count));
    counts_.resize(static_cast<std::size_t>(call.comm.size()));
    allgather(call.comm, std::span<std::int64_t const>(&mine, 1), std::span<std::int64_t>(counts_), use, collective_);
    call.hear_all(counts_, 1);
    return counts_;
  }

private:
  std::vector<std::int64_t> counts_;
  collective_workspace collective_;
};

} // namespace oktopk
