# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Kokkos: the caller's own (a target Kokkos::kokkos), an installed one, or on request a pinned release.
if(NOT OKTOPK_FETCH_KOKKOS STREQUAL "ALWAYS")
  oktopk_find_kokkos()
endif()
if(NOT TARGET Kokkos::kokkos AND OKTOPK_FETCH_KOKKOS)
  oktopk_fetch(Kokkos 5.2.2 k/kokkos/kokkos_5.2.2.orig.tar.gz
               491fe02cb127559dd3c996f6693686f1eab00a53fd5c184e18e663896884175e)
endif()

if(NOT TARGET Kokkos::kokkos)
  message(FATAL_ERROR
    "oktopk: ${oktopk_missing_kokkos}, or let CMake download one with -DOKTOPK_FETCH_KOKKOS=ON.")
endif()

oktopk_correct_kokkos()
if(Kokkos_DIR)
  message(STATUS "oktopk: Kokkos ${Kokkos_VERSION} (${Kokkos_DEVICES}) from ${Kokkos_DIR}")
endif()
