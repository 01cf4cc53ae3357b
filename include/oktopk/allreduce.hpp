// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The main header: algorithms, their policies, and the communicators that need no MPI.

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/algorithm/gtopk.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/algorithm/paper_ok_topk.hpp>
#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/algorithm/topk_dsa.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/comm/self.hpp>
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
#ifndef OKTOPK_COMPILE_MPI // separate, so that programs without MPI can link the file without it
#define OKTOPK_COMPILE_MPI extern template
#endif
#define OKTOPK_COMPILE_OVER(COMPILE, SPACE, COMM)                                                                      \
  COMPILE class ok_topk<SPACE, COMM>;                                                                                  \
  COMPILE ok_topk<SPACE, COMM>::update_type const& ok_topk<SPACE, COMM>::iterate(                                      \
      detail::view_of_any_stride<float, SPACE> const&);                                                                \
  COMPILE ok_topk<SPACE, COMM>::update_type const& ok_topk<SPACE, COMM>::iterate(                                      \
      detail::accumulation<std::int32_t, float, SPACE::memory_space> const&)

namespace oktopk {

OKTOPK_COMPILE_OVER(OKTOPK_COMPILE, Kokkos::DefaultExecutionSpace, in_process_communicator);
#ifdef OKTOPK_MPI_COMPILED
OKTOPK_COMPILE_OVER(OKTOPK_COMPILE_MPI, Kokkos::DefaultExecutionSpace, mpi_communicator);
#endif

} // namespace oktopk

#undef OKTOPK_COMPILE_OVER
#endif
