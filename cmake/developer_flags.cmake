# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# What our own programs and tests are compiled with; nothing of it reaches a user of the library.
function(oktopk_developer_flags target)
  if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
    target_compile_options(${target} PRIVATE -Wall -Wextra)
    # What nvcc makes of a source file for the host's compiler is neither pedantic nor careful with names and numbers.
    if(NOT Kokkos_DEVICES MATCHES "CUDA")
      target_compile_options(${target} PRIVATE -Wpedantic -Wshadow -Wconversion -Wsign-conversion)
      if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 20)
        target_compile_options(${target} PRIVATE -Wno-c2y-extensions) # __COUNTER__ in the macros of Catch2
      endif()
    endif()
    if(OKTOPK_WERROR)
      target_compile_options(${target} PRIVATE -Werror)
    endif()
  endif()
  if(OKTOPK_ENABLE_SANITIZERS)
    set(sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all)
    target_compile_options(${target} PRIVATE ${sanitizers} -fno-omit-frame-pointer -g1)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # with -O2 GCC 12 takes three times as long for the instrumented code
      target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O1>)
    endif()
    target_link_options(${target} PRIVATE ${sanitizers})
  endif()
endfunction()
