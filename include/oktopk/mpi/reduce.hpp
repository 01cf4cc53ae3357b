// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/breakdown.hpp>
#include <oktopk/comm/concept.hpp>
#include <oktopk/mpi/call.hpp>
#include <oktopk/mpi/left_to_mpi.hpp>
#include <oktopk/mpi/ranks.hpp>

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace oktopk::detail {

/// MPI's own allreduce, in the time limit of its ranks.
///
/// Up to `most_copied` bytes are reduced in a copy, which can be left at any time. For more, all ranks meet first; once
/// they have, MPI cannot be left any more, since Open MPI's allreduce that can be (MPI_Iallreduce) takes four times as
/// long.
class mpi_reduction {
public:
  static constexpr std::size_t most_copied = std::size_t(64) << 10U;

  template <class T>
  void run(mpi_ranks& ranks, std::span<T> data, reduction op) {
    MPI_Datatype const type = std::is_same_v<T, float> ? MPI_FLOAT : MPI_DOUBLE;
    MPI_Op const mpi_op = op == reduction::sum ? MPI_SUM : op == reduction::min ? MPI_MIN : MPI_MAX;
    if (ranks.has_limit() && data.size_bytes() <= most_copied) {
      return reduce_copy(ranks, data, type, mpi_op);
    }
    if (ranks.has_limit()) {
      MPI_Request all_are_here = MPI_REQUEST_NULL;
      check_mpi(MPI_Ibarrier(ranks.comm, &all_are_here), "MPI_Ibarrier");
      wait_for_all(ranks, all_are_here, "MPI_Ibarrier");
    }
    while (!data.empty()) {
      std::size_t const part = std::min(data.size(), largest_mpi_count);
      check_mpi(MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(part), type, mpi_op, ranks.comm),
                "MPI_Allreduce");
      data = data.subspan(part);
    }
  }

private:
  template <class T>
  void reduce_copy(mpi_ranks& ranks, std::span<T> data, MPI_Datatype type, MPI_Op op) {
    if (data.empty()) {
      return;
    }
    if (!copy_) {
      copy_ = std::make_unique_for_overwrite<std::byte[]>(most_copied);
    }
    std::memcpy(copy_.get(), data.data(), data.size_bytes());
    MPI_Request handle = MPI_REQUEST_NULL;
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, copy_.get(), static_cast<int>(data.size()), type, op, ranks.comm, &handle),
              "MPI_Iallreduce");
    try {
      wait_for_all(ranks, handle, "MPI_Iallreduce");
    } catch (...) {
      left_to_mpi().push_back(std::move(copy_));
      throw;
    }
    std::memcpy(data.data(), copy_.get(), data.size_bytes());
  }

  static void wait_for_all(mpi_ranks& ranks, MPI_Request& handle, char const* call) {
    timed_wait patience(ranks.time_limit);
    ranks.wait_until(
        patience,
        [&] {
          int done = 0;
          check_mpi(MPI_Test(&handle, &done, MPI_STATUS_IGNORE), call);
          return done != 0;
        },
        [] {
          wait_report waited;
          waited.add("for everybody in an allreduce");
          return waited;
        });
  }

  std::unique_ptr<std::byte[]> copy_;
};

} // namespace oktopk::detail
