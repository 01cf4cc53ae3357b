// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "blas_threads.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace fashion {

void share_cores_among(int ranks_on_this_machine) {
  for (char const* name : {"OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"}) {
    if (std::getenv(name) != nullptr) {
      return;
    }
  }
  // Looked up by name, because the BLAS behind Kokkos-Kernels may be another one. OpenBLAS reads its environment
  // variables when it is loaded, so setting one here would come too late.
  auto const set_threads = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (set_threads != nullptr) {
    auto const cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    set_threads(std::max(1, cores / std::max(1, ranks_on_this_machine)));
  }
}

} // namespace fashion
