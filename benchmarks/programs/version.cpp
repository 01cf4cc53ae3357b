// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "version.hpp"

#include <Kokkos_Macros.hpp>

namespace oktopk_programs {

std::string version_text(std::string const& program) {
  return program + " " + OKTOPK_PROGRAM_VERSION + " (Kokkos " + std::to_string(KOKKOS_VERSION / 10000) + "." +
         std::to_string(KOKKOS_VERSION / 100 % 100) + "." + std::to_string(KOKKOS_VERSION % 100) + ")";
}

} // namespace oktopk_programs
