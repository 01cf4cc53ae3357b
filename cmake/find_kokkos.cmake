# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Kokkos: the caller's own (a target Kokkos::kokkos), an installed one, or on request a pinned release.
if(NOT OKTOPK_FETCH_KOKKOS STREQUAL "ALWAYS")
  oktopk_find_kokkos()
endif()
if(NOT TARGET Kokkos::kokkos AND OKTOPK_FETCH_KOKKOS)
  # A part of this build; -DFETCHCONTENT_SOURCE_DIR_KOKKOS=<folder> names sources that are there already.
  set(version 4.6.02)
  message(STATUS "oktopk: fetching Kokkos ${version}")
  include(FetchContent)
  if(POLICY CMP0135) # date the files by their unpacking
    cmake_policy(SET CMP0135 NEW)
  endif()
  FetchContent_Declare(Kokkos URL_HASH SHA256=baf1ebbe67abe2bbb8bb6aed81b4247d53ae98ab8475e516d9c87e87fa2422ce
    URL https://github.com/kokkos/kokkos/releases/download/${version}/kokkos-${version}.tar.gz)
  set(independent ${CMAKE_POSITION_INDEPENDENT_CODE})
  set(CMAKE_POSITION_INDEPENDENT_CODE ON) # oktopk::engine, which has it inside, is a shared library
  FetchContent_MakeAvailable(Kokkos)
  set(CMAKE_POSITION_INDEPENDENT_CODE ${independent})
endif()

if(NOT TARGET Kokkos::kokkos)
  message(FATAL_ERROR
    "oktopk: ${oktopk_missing_kokkos}, or let CMake download one with -DOKTOPK_FETCH_KOKKOS=ON.")
endif()

oktopk_correct_kokkos()
if(Kokkos_DIR)
  message(STATUS "oktopk: Kokkos ${Kokkos_VERSION} (${Kokkos_DEVICES}) from ${Kokkos_DIR}")
endif()
