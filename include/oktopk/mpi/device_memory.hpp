// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/memory.hpp>

#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h> // Open MPI says there what of its extensions it has
#endif

namespace oktopk::detail {

/// Whether this MPI library takes pointers to memory of such devices. Asked when the program runs, for a library that
/// was built for a device may run without; one that cannot be asked is taken to say no. MPI must be initialised.
inline bool mpi_takes_memory_of([[maybe_unused]] device_family family) {
#if defined(MPIX_GPU_SUPPORT_CUDA)
  if (int yes = 0; family == device_family::cuda) {
    return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &yes) == MPI_SUCCESS && yes != 0;
  }
#elif defined(MPIX_CUDA_AWARE_SUPPORT)
  if (family == device_family::cuda) {
    return MPIX_Query_cuda_support() == 1;
  }
#endif
#if defined(MPIX_GPU_SUPPORT_HIP)
  if (int yes = 0; family == device_family::hip) {
    return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_HIP, &yes) == MPI_SUCCESS && yes != 0;
  }
#elif defined(MPIX_ROCM_AWARE_SUPPORT)
  if (family == device_family::hip) {
    return MPIX_Query_rocm_support() == 1;
  }
#endif
  return false;
}

} // namespace oktopk::detail
