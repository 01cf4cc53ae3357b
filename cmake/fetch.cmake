# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Sources of Kokkos and of Gloo, pinned, for builds where they are not installed, or where they are to be inside of a
# library. -DFETCHCONTENT_SOURCE_DIR_KOKKOS=<folder> and -DFETCHCONTENT_SOURCE_DIR_GLOO=<folder> name sources that are
# there already.

# oktopk_fetch(<name> <version> <SHA-256> <address>...): makes it a part of this build, static, and position independent,
# for oktopk::engine is a shared library. A macro, since Kokkos leaves variables.
macro(oktopk_fetch name version sum)
  message(STATUS "oktopk: fetching ${name} ${version}")
  include(FetchContent)
  if(POLICY CMP0135) # date the files by their unpacking
    cmake_policy(SET CMP0135 NEW)
  endif()
  FetchContent_Declare(${name} URL_HASH SHA256=${sum} URL ${ARGN})
  set(oktopk_independent ${CMAKE_POSITION_INDEPENDENT_CODE})
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  FetchContent_MakeAvailable(${name})
  set(CMAKE_POSITION_INDEPENDENT_CODE ${oktopk_independent})
endmacro()

# oktopk_fetch_gloo(): the target oktopk_gloo_library, of Gloo's commit d97133adbf6f9987b03c051c8f97e8df6e8adb6b, with TCP
# alone. Gloo has no releases: the sources are those of Debian, which signs their sum.
function(oktopk_fetch_gloo)
  foreach(part IN ITEMS USE_CUDA USE_IBVERBS USE_LIBUV USE_MPI USE_NCCL USE_RCCL USE_REDIS USE_ROCM USE_TCP_OPENSSL_LINK
                        USE_TCP_OPENSSL_LOAD BUILD_BENCHMARK BUILD_EXAMPLES BUILD_TEST)
    set(${part} OFF) # the project may have options of these names
  endforeach()
  set(GLOO_INSTALL OFF CACHE BOOL "Install Gloo")
  set(GLOO_STATIC_OR_SHARED STATIC CACHE STRING "Kind of Gloo's library")
  set(file pool/main/g/gloo/gloo_0.0~git20250912.d97133a.orig.tar.xz) # the second address keeps what the first loses
  oktopk_fetch(Gloo 2025-09-12 43d930375720059ac67b1619c7d020d5d2cee79757caf4e75a1bfedb8eeb2b42
               http://deb.debian.org/debian/${file} http://snapshot.debian.org/archive/debian/20261030T000000Z/${file})
  add_library(oktopk_gloo_library INTERFACE IMPORTED GLOBAL)
  target_include_directories(oktopk_gloo_library SYSTEM INTERFACE ${gloo_SOURCE_DIR} ${gloo_BINARY_DIR})
  target_link_libraries(oktopk_gloo_library INTERFACE gloo)
endfunction()
