# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# A test that takes long has a COST, about its seconds, by which ctest begins with it where it knows no time yet. What
# measures time has PROCESSORS of a whole machine, or RUN_SERIAL.
#
# No test has a TIMEOUT of its own: tests/run.sh knows how busy the machine is. It sets OKTOPK_TEST_SECONDS, the limit of
# a test case or of a command, which the programs read and which names the place; the limit of a whole test is ten times
# as long. Without it these are 120 s and, as written here, 1200 s.
file(WRITE ${PROJECT_BINARY_DIR}/DartConfiguration.tcl "TimeOut: 1200\n")

# The code that docs/extending.md shows becomes headers, extending/<what it defines>.hpp, so that what is tested is the page.
set(oktopk_page_headers ${PROJECT_BINARY_DIR}/tests/page_headers)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/extending.md)
file(READ ${PROJECT_SOURCE_DIR}/docs/extending.md oktopk_page)
while(oktopk_page MATCHES "```cpp\n(#include <[^`]*)```")
  set(code "${CMAKE_MATCH_1}")
  string(REPLACE "${CMAKE_MATCH_0}" "" oktopk_page "${oktopk_page}")
  string(REGEX MATCH "\n(struct|class) ([a-z0-9_]+)" defined "${code}")
  set(oktopk_page_header ${oktopk_page_headers}/extending/${CMAKE_MATCH_2}.hpp)
  file(WRITE ${oktopk_page_header}.in "#pragma once\n\n${code}")
  configure_file(${oktopk_page_header}.in ${oktopk_page_header} COPYONLY) # keeps one that is the same
endwhile()

# oktopk_test_main(<name> [<definition>...]): the compiled main program of test executables. Catch2 2 is compiled in it,
# once for all.
function(oktopk_test_main name)
  set(parts ${name})
  if(NOT TARGET test_runner)
    add_library(test_runner OBJECT ${PROJECT_SOURCE_DIR}/tests/main.cpp)
    list(APPEND parts test_runner)
  endif()
  add_library(${name} OBJECT ${PROJECT_SOURCE_DIR}/tests/world.cpp)
  target_compile_definitions(${name} PRIVATE ${ARGN})
  foreach(part IN LISTS parts)
    target_link_libraries(${part} PUBLIC oktopk::oktopk Catch2::Catch2)
    target_include_directories(${part} PUBLIC ${PROJECT_SOURCE_DIR}/tests ${oktopk_page_headers})
    oktopk_developer_flags(${part})
    # Slow to optimise, and none of it is measured.
    target_compile_options(${part} PRIVATE $<$<CXX_COMPILER_ID:GNU,Clang>:-O0>)
  endforeach()
  target_sources(${name} INTERFACE $<TARGET_OBJECTS:test_runner>)
endfunction()

# oktopk_replace_clock(<target>): gives the program support/replaced_clock.hpp. The linker puts that clock in the place of
# std::chrono::steady_clock, where it can (GNU ld and those like it, libstdc++).
include(CheckCXXSourceCompiles)
set(oktopk_replaced_now -Wl,--wrap=_ZNSt6chrono3_V212steady_clock3nowEv)
set(CMAKE_REQUIRED_LINK_OPTIONS ${oktopk_replaced_now})
check_cxx_source_compiles("#include <chrono>
std::chrono::steady_clock::time_point virtual_now() asm(\"__wrap__ZNSt6chrono3_V212steady_clock3nowEv\");
std::chrono::steady_clock::time_point virtual_now() { return {}; }
int main() { return std::chrono::steady_clock::now() == virtual_now() ? 0 : 1; }" OKTOPK_CAN_REPLACE_CLOCK)
unset(CMAKE_REQUIRED_LINK_OPTIONS)

function(oktopk_replace_clock target)
  target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/replaced_clock.cpp)
  if(OKTOPK_CAN_REPLACE_CLOCK)
    target_compile_definitions(${target} PRIVATE OKTOPK_TESTS_REPLACE_CLOCK)
    target_link_options(${target} PRIVATE ${oktopk_replaced_now})
  endif()
endfunction()

# Where headers are compiled once for many files.
set(oktopk_precompiles_headers OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_POSITION_INDEPENDENT_CODE AND NOT Kokkos_DEVICES MATCHES "CUDA|HIP")
  set(oktopk_precompiles_headers ON)
endif()

set(oktopk_shared_test_headers ${PROJECT_SOURCE_DIR}/tests/support/catch.hpp ${PROJECT_SOURCE_DIR}/tests/support/collect.hpp)

# What nearly every test file includes, compiled once: saves seconds for each file. Headers of the library are compiled
# alone in tests/headers; a test file that forgets one of these headers is seen by Clang alone.
function(oktopk_precompile_test_headers)
  if(oktopk_precompiles_headers)
    file(CONFIGURE OUTPUT nothing.cpp CONTENT "")
    foreach(level IN ITEMS 0 1)
      set(headers precompiled_test_headers_${level})
      add_library(${headers} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/nothing.cpp)
      target_link_libraries(${headers} PRIVATE oktopk::oktopk Catch2::Catch2)
      target_include_directories(${headers} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
      oktopk_developer_flags(${headers})
      oktopk_compile_quickly(${headers} ${level})
      target_precompile_headers(${headers} PRIVATE <oktopk/allreduce.hpp> ${oktopk_shared_test_headers})
    endforeach()
  endif()
endfunction()

# oktopk_compile_as_test(<target> [<level>]): warnings, quick compilation with -O<level>, 1 unless given, and the precompiled
# headers.
function(oktopk_compile_as_test target)
  list(APPEND ARGN 1)
  list(GET ARGN 0 level)
  oktopk_developer_flags(${target})
  oktopk_compile_quickly(${target} ${level})
  if(TARGET precompiled_test_headers_${level})
    target_precompile_headers(${target} REUSE_FROM precompiled_test_headers_${level})
  endif()
endfunction()

# oktopk_compiler(<variable> <target>): the compiler as it compiles the target's files, for a test that runs it, with
# COMMAND_EXPAND_LISTS. The flags of OpenMP depend on the language, which a test has not. A system folder that is named
# must not come before the compiler's own.
function(oktopk_compiler variable target)
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS}")
  set(folders "$<FILTER:$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>,EXCLUDE,^/usr/include$>")
  string(REGEX REPLACE "[][+.*()^$?|\\]" "." root "${PROJECT_SOURCE_DIR}") # a folder may be called c++
  set(ours "$<FILTER:${folders},INCLUDE,^${root}/>")
  set(others "$<FILTER:${folders},EXCLUDE,^${root}/>")
  set(definitions "$<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>")
  set(options "$<TARGET_PROPERTY:${target},COMPILE_OPTIONS>")
  # One list of them all, for CMake 4.3 makes an argument of an element that is empty.
  string(CONCAT all "-I$<JOIN:${ours},$<SEMICOLON>-I>" "$<$<BOOL:${options}>:$<SEMICOLON>${options}>"
    "$<$<BOOL:${definitions}>:$<SEMICOLON>-D$<JOIN:${definitions},$<SEMICOLON>-D>>"
    "$<$<BOOL:${others}>:$<SEMICOLON>-isystem$<JOIN:${others},$<SEMICOLON>-isystem>>")
  set(${variable} ${CMAKE_CXX_COMPILER} ${CMAKE_CXX20_STANDARD_COMPILE_OPTION} ${flags} ${OpenMP_CXX_FLAGS} "${all}" PARENT_SCOPE)
endfunction()

# Most of the suite's time is the compiler's: a third less of it without the costly optimisations, another third without any,
# and a tenth less where GCC collects its garbage late, which takes a fifth more memory.
function(oktopk_compile_quickly target)
  list(APPEND ARGN 1)
  list(GET ARGN 0 level)
  if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # or it keeps no object
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU,Clang>:-O${level}>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT Kokkos_DEVICES MATCHES "CUDA|HIP")
    target_compile_options(${target} PRIVATE --param=ggc-min-expand=10000 --param=ggc-min-heapsize=2000000)
    # Results are compared bit for bit with our own arithmetic: no two operations may be fused into one rounding.
    target_compile_options(${target} PRIVATE -ffp-contract=off)
  endif()
endfunction()

# Algorithms and policies by text, what is promised of them, and the suite that all of them pass: compiled once, for unit
# tests, fuzz and simulation.
function(oktopk_add_subjects)
  if(NOT TARGET oktopk::catalogue)
    return()
  endif()
  oktopk_glob(checks ${CMAKE_CURRENT_SOURCE_DIR} fuzz/checks/*.cpp)
  add_library(subjects_of_tests OBJECT algorithm/suite.cpp fuzz/subjects.cpp fuzz/typed_subjects.cpp ${checks})
  target_include_directories(subjects_of_tests PUBLIC ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(subjects_of_tests PUBLIC oktopk::catalogue PRIVATE Catch2::Catch2)
  if(TARGET oktopk::zfp)
    target_link_libraries(subjects_of_tests PUBLIC oktopk::zfp)
    target_compile_definitions(subjects_of_tests PRIVATE OKTOPK_TESTS_WITH_ZFP)
  endif()
  oktopk_compile_as_test(subjects_of_tests)
endfunction()

# Files of these folders use the same templates, so that they are one translation unit, but for those that have their own
# things of names that others have, too.
set(oktopk_folders_in_batches algorithm codec comm core dense exchange format select sgd sparse tools training)
set_source_files_properties(algorithm/test_damaged_state.cpp algorithm/test_interrupted_calls.cpp
  algorithm/test_every_algorithm.cpp algorithm/test_other_transports.cpp dense/test_interrupted_calls.cpp
  PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

# The work of these is done in the catalogue, or is little: they run as fast without optimisation.
set(oktopk_folders_of_drivers archetypes catalogue codec core extending habits sgd sparse tools training)

# Every folder with test_*.cpp files becomes an executable test_<folder>, and every test case in it a test of its own.
# Tests of programs get the program's parts, where these are built.
function(oktopk_add_unit_tests)
  oktopk_glob(sources ${CMAKE_CURRENT_SOURCE_DIR} RECURSE RELATIVE test_*.cpp)
  if(OKTOPK_TEST_ONLY_UNITS)
    list(FILTER sources INCLUDE REGEX "${OKTOPK_TEST_ONLY_UNITS}")
  endif()
  set(folders ${sources})
  list(TRANSFORM folders REPLACE "/.*" "")
  list(REMOVE_DUPLICATES folders)
  list(REMOVE_ITEM folders mpi nccl tcp torch)

  # A test that finds no test case of its name fails, also with Catch2 2: CMake takes a name with a semicolon for two.
  set(never_empty "")
  if(Catch2_VERSION VERSION_LESS 3)
    set(never_empty EXTRA_ARGS --warn NoTests)
  endif()
  set(parts_of_benchmarks oktopk_bench_parts)
  set(parts_of_examples train_fashion_mnist_parts)
  set(parts_of_engine oktopk_engine)
  set(parts_of_device_engine oktopk_device_engine)

  foreach(folder IN LISTS folders)
    set(parts ${parts_of_${folder}})
    if(parts AND NOT TARGET ${parts})
      message(STATUS "oktopk: no tests/${folder}, since what they test is not built")
      continue()
    endif()
    set(files ${sources})
    list(FILTER files INCLUDE REGEX "^${folder}/")
    add_executable(test_${folder} ${files})
    target_link_libraries(test_${folder} PRIVATE test_main ${parts})
    if(TARGET oktopk::zfp AND folder MATCHES "^(codec|dense|catalogue)$")
      target_link_libraries(test_${folder} PRIVATE oktopk::zfp)
      target_compile_definitions(test_${folder} PRIVATE OKTOPK_TESTS_WITH_ZFP)
    endif()
    if(TARGET oktopk::catalogue AND folder MATCHES "^(catalogue|comm|habits|sgd|tools|training)$")
      target_link_libraries(test_${folder} PRIVATE oktopk::catalogue)
    endif()
    if(folder STREQUAL "catalogue")
      oktopk_replace_clock(test_catalogue)
    endif()
    if(folder STREQUAL "engine") # beside the library, which shows nothing of its own catalogue
      target_sources(test_engine PRIVATE ${oktopk_catalogue_double})
      target_link_libraries(test_engine PRIVATE oktopk::catalogue)
      target_include_directories(test_engine PRIVATE ${PROJECT_SOURCE_DIR}/src)
    endif()
    if(TARGET subjects_of_tests AND folder MATCHES "^(algorithm|archetypes|extending)$")
      target_link_libraries(test_${folder} PRIVATE subjects_of_tests)
    endif()
    if(TARGET oktopk::xxhash AND folder STREQUAL "comm")
      target_link_libraries(test_${folder} PRIVATE oktopk::xxhash)
      target_compile_definitions(test_${folder} PRIVATE OKTOPK_TESTS_WITH_XXHASH)
    endif()
    set(level 1)
    # On a device all kernels are compiled here, and sanitizers are slow as they are.
    if(folder IN_LIST oktopk_folders_of_drivers AND NOT OKTOPK_TEST_ONLY_UNITS AND NOT OKTOPK_ENABLE_SANITIZERS)
      set(level 0)
    endif()
    oktopk_compile_as_test(test_${folder} ${level})
    if(folder IN_LIST oktopk_folders_in_batches AND oktopk_precompiles_headers)
      set(files_in_a_batch 0) # all
      if(folder STREQUAL "exchange") # whose files have things of the same names
        set(files_in_a_batch 5)
      endif()
      set_target_properties(test_${folder} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${files_in_a_batch})
    endif()
    set(tier quick)
    if(parts)
      set_target_properties(test_${folder} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON) # programs have flags of their own
    endif()
    if(parts OR folder STREQUAL "simulate")
      set(tier full)
    else()
      add_dependencies(quick_tests test_${folder})
    endif()
    if(OKTOPK_TEST_DISCOVERY)
      catch_discover_tests(test_${folder} TEST_PREFIX "${folder}/" PROPERTIES LABELS ${tier} ${never_empty})
    endif()
  endforeach()
endfunction()

# Every check_*.py runs a program as a user would, from outside, under pytest; conftest.py has the options.
function(oktopk_add_program_checks)
  find_program(OKTOPK_PYTEST NAMES pytest-3 pytest)
  if(NOT OKTOPK_PYTEST)
    message(STATUS "oktopk: no pytest (Debian: python3-pytest), so the programs are not checked from outside")
    return()
  endif()
  set(launcher "")
  if(OKTOPK_ENABLE_MPI)
    set(launcher "--launcher=${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG}")
  endif()
  foreach(check IN ITEMS benchmarks/bench=oktopk_bench benchmarks/compare=oktopk_bench benchmarks/scripts=oktopk_bench
                         benchmarks/tables=oktopk_bench benchmarks/network=oktopk_bench
                         benchmarks/grid=automatic_bench
                         benchmarks/select_bench=select_bench benchmarks/format_bench=format_bench
                         benchmarks/advise=oktopk_advise
                         examples/training=train_fashion_mnist
                         examples/checkpoints=train_fashion_mnist examples/torch_training=train_torch
                         support/limits=simulate)
    string(REGEX MATCH "(.*)/(.*)=(.*)" check ${check})
    if(TARGET ${CMAKE_MATCH_3})
      set(name programs.check_${CMAKE_MATCH_2})
      add_test(NAME ${name}
               COMMAND ${OKTOPK_PYTEST} ${CMAKE_CURRENT_SOURCE_DIR}/${CMAKE_MATCH_1}/check_${CMAKE_MATCH_2}.py
                       --program $<TARGET_FILE:${CMAKE_MATCH_3}> ${launcher})
      set_tests_properties(${name} PROPERTIES
        ENVIRONMENT "${oktopk_mpi_environment};PYTHONDONTWRITEBYTECODE=1" COST 30 LABELS full)
      if(name STREQUAL "programs.check_network") # times on emulated links
        set_tests_properties(${name} PROPERTIES PROCESSORS 2)
      endif()
    endif()
  endforeach()
endfunction()
