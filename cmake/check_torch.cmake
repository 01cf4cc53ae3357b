# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Whether the headers of the libtorch that was found compile as C++20: those of 1.13 do with g++, and not with clang and
# nvcc, for they have a std::vector of a class that is not complete. Leaves OKTOPK_TORCH_COMPILES.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT Kokkos_DEVICES MATCHES "CUDA|HIP") # nvcc looks like g++
  set(OKTOPK_TORCH_COMPILES TRUE)
elseif(NOT DEFINED OKTOPK_TORCH_COMPILES)
  message(STATUS "oktopk: looking whether this compiler takes the headers of libtorch")
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY) # nothing is linked or run
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/torch_headers.cpp
    "#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>\n")
  try_compile(compiles ${CMAKE_CURRENT_BINARY_DIR}/torch_headers ${CMAKE_CURRENT_BINARY_DIR}/torch_headers.cpp
    LINK_LIBRARIES oktopk_torch_library CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON)
  unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
  set(OKTOPK_TORCH_COMPILES ${compiles} CACHE INTERNAL "The headers of libtorch compile as C++20")
endif()
if(NOT OKTOPK_TORCH_COMPILES)
  message(STATUS "oktopk: this compiler does not take the headers of libtorch, so the target oktopk::torch is left out")
endif()
