// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/concepts.hpp>

#include <string>

namespace oktopk::detail {

/// Names a phase of a call to a profiler: Kokkos Tools show what runs in its scope under `label`.
///
/// Costs one comparison where no tool is loaded. Regions of ranks in one process (`in_process`) interleave.
class profiling_region {
public:
  explicit profiling_region(char const* label) : active_(Kokkos::Profiling::profileLibraryLoaded()) {
    if (active_) {
      Kokkos::Profiling::pushRegion(std::string(label));
    }
  }

  profiling_region(profiling_region const&) = delete;
  profiling_region& operator=(profiling_region const&) = delete;

  ~profiling_region() {
    if (active_) {
      Kokkos::Profiling::popRegion();
    }
  }

private:
  bool active_;
};

} // namespace oktopk::detail
