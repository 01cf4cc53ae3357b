// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The front door: algorithms, their policies, and the communicators that need no MPI.

#include <oktopk/algorithm/concept.hpp>
#include <oktopk/algorithm/dense.hpp>
#include <oktopk/algorithm/gtopk.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/algorithm/paper_ok_topk.hpp>
#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/algorithm/topk_dsa.hpp>
#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/comm/self.hpp>
#include <oktopk/core/checkpoint.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/format/coo.hpp>
#include <oktopk/partition/balanced.hpp>
#include <oktopk/partition/uniform.hpp>
#include <oktopk/select/exact.hpp>
#include <oktopk/select/reused_threshold.hpp>
#include <oktopk/sgd.hpp>
#include <oktopk/version.hpp>

#ifdef OKTOPK_CATALOGUE_COMPILED
#ifdef OKTOPK_MPI_COMPILED
#include <oktopk/mpi.hpp>
#endif

// The library oktopk::catalogue has `ok_topk` with its default policies compiled; programs that link it do not compile
// it. The library's own source defines OKTOPK_COMPILE.
#ifndef OKTOPK_COMPILE
#define OKTOPK_COMPILE extern template
#endif
#define OKTOPK_COMPILE_OVER(SPACE, COMM)                                                                               \
  OKTOPK_COMPILE class ok_topk<SPACE, COMM>;                                                                           \
  OKTOPK_COMPILE ok_topk<SPACE, COMM>::update_type const& ok_topk<SPACE, COMM>::iterate(                               \
      detail::view_of_any_stride<float, SPACE> const&);                                                                \
  OKTOPK_COMPILE ok_topk<SPACE, COMM>::update_type const& ok_topk<SPACE, COMM>::iterate(                               \
      detail::accumulation<std::int32_t, float, SPACE::memory_space> const&)

namespace oktopk {

OKTOPK_COMPILE_OVER(Kokkos::DefaultExecutionSpace, in_process_communicator);
#ifdef OKTOPK_MPI_COMPILED
OKTOPK_COMPILE_OVER(Kokkos::DefaultExecutionSpace, mpi_communicator);
#endif

} // namespace oktopk

#undef OKTOPK_COMPILE_OVER
#endif
