# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Kokkos: the caller's own (a target Kokkos::kokkos), an installed one, or on request a pinned release.
if(NOT OKTOPK_FETCH_KOKKOS STREQUAL "ALWAYS")
  oktopk_find_kokkos()
endif()
if(NOT TARGET Kokkos::kokkos AND OKTOPK_FETCH_KOKKOS)
  oktopk_fetch(Kokkos 4.6.02 baf1ebbe67abe2bbb8bb6aed81b4247d53ae98ab8475e516d9c87e87fa2422ce
               https://github.com/kokkos/kokkos/releases/download/4.6.02/kokkos-4.6.02.tar.gz)
endif()

if(NOT TARGET Kokkos::kokkos)
  message(FATAL_ERROR
    "oktopk: ${oktopk_missing_kokkos}, or let CMake download one with -DOKTOPK_FETCH_KOKKOS=ON.")
endif()

oktopk_correct_kokkos()
if(Kokkos_DIR)
  message(STATUS "oktopk: Kokkos ${Kokkos_VERSION} (${Kokkos_DEVICES}) from ${Kokkos_DIR}")
endif()
