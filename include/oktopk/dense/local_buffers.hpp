// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/collectives.hpp>
#include <oktopk/dense/concept.hpp>

namespace oktopk {

/// Reduces several vectors of each process, over all processes, by any dense allreduce. The phases are Gloo's: reduce
/// the vectors of this process into the first one, reduce the first vectors of all processes, copy the result to all
/// vectors.
///
/// Collective; in place, so that every vector holds the result. All vectors have `count` elements in the memory of
/// `exec`; `count` and `op` are the same on all ranks, the number of vectors may differ, but no vectors on some rank is
/// an error on every rank (one control number a rank is exchanged, in ceil(log2 P) messages). The messages are those of
/// `Reduce`, whatever the number of vectors. `lost`, for the first vector of a lossy `Reduce`, may be null.
template <execution_space E, communicator Comm, gradient_value Value, class Reduce>
  requires detail::dense_reduction<Reduce, E, Comm, Value>
class local_buffers {
public:
  local_buffers() = default;
  explicit local_buffers(typename Reduce::options const& how) : reduce_(detail::configured<Reduce>(how)) {}

  void run(E const& exec, Comm& comm, std::span<Value* const> buffers, Value* lost, std::int64_t count,
           reduction op = reduction::sum) {
    std::int64_t fewest = static_cast<std::int64_t>(buffers.size());
    allreduce_integers(comm, std::span<std::int64_t>(&fewest, 1), reduction::min, phase::control, workspace_);
    if (fewest == 0) {
      throw error(fault::option_out_of_range, "a rank brought no vectors to be reduced");
    }
    for (Value* const each : buffers.subspan(1)) {
      detail::combine(exec, op, static_cast<Value const*>(each), count, buffers.front());
    }
    reduce_.run(exec, comm, buffers.front(), lost, count, op);
    for (Value* const each : buffers.subspan(1)) {
      detail::copy_values(exec, static_cast<Value const*>(buffers.front()), count, each);
    }
    detail::fence(exec, "oktopk::local_buffers::done");
  }

private:
  Reduce reduce_;
  collective_workspace workspace_;
};

} // namespace oktopk
