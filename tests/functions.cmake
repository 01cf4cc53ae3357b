# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# The watchdog inside a test executable ends it a little earlier than ctest would, and says where it hung.
math(EXPR watchdog_seconds "${OKTOPK_TEST_SECONDS} * 9 / 10")

# oktopk_test_main(<name> [<definition>...]): the compiled main program of test executables.
function(oktopk_test_main name)
  add_library(${name} OBJECT ${PROJECT_SOURCE_DIR}/tests/main.cpp)
  target_compile_definitions(${name} PRIVATE ${ARGN})
  target_link_libraries(${name} PUBLIC oktopk::oktopk Catch2::Catch2)
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/tests)
  oktopk_developer_flags(${name})
  # Catch2 2 is compiled in it: slow to optimise, and none of it is measured.
  target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU,Clang>:-O0>)
endfunction()

# Every folder with test_*.cpp files becomes an executable test_<folder>, and every test case in it a test of its own.
# Tests of programs get the program's parts, where these are built.
function(oktopk_add_unit_tests)
  file(GLOB_RECURSE sources RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS test_*.cpp)
  set(folders ${sources})
  list(TRANSFORM folders REPLACE "/.*" "")
  list(REMOVE_DUPLICATES folders)
  list(REMOVE_ITEM folders mpi)

  set(parts_of_benchmarks oktopk_bench_parts)
  set(parts_of_examples train_fashion_mnist_parts)

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
    oktopk_developer_flags(test_${folder})
    # Most of the suite's time is the compiler's: a third less of it without the costly optimisations.
    target_compile_options(test_${folder} PRIVATE $<$<CXX_COMPILER_ID:GNU,Clang>:-O1>)
    catch_discover_tests(test_${folder} TEST_PREFIX "${folder}/"
      PROPERTIES TIMEOUT ${OKTOPK_TEST_SECONDS} ENVIRONMENT "OKTOPK_TEST_SECONDS=${watchdog_seconds}")
  endforeach()
endfunction()

# Every check_*.py runs a program as a user would, from outside, and gets `PROGRAM --mpirun LAUNCHER...` as arguments.
function(oktopk_add_program_checks)
  find_package(Python3 QUIET COMPONENTS Interpreter)
  if(NOT Python3_FOUND)
    message(STATUS "oktopk: no Python 3, so the programs are not checked from outside")
    return()
  endif()
  set(program_of_benchmarks oktopk_bench)
  set(program_of_examples train_fashion_mnist)
  set(program_of_check_select_bench select_bench)

  foreach(folder IN ITEMS benchmarks examples)
    file(GLOB scripts CONFIGURE_DEPENDS ${folder}/check_*.py)
    foreach(script IN LISTS scripts)
      get_filename_component(name ${script} NAME_WE)
      set(program ${program_of_${folder}})
      if(program_of_${name})
        set(program ${program_of_${name}})
      endif()
      if(NOT TARGET ${program})
        continue()
      endif()
      set(launcher "")
      if(OKTOPK_ENABLE_MPI)
        set(launcher --mpirun ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG})
      endif()
      add_test(NAME programs.${name} COMMAND ${Python3_EXECUTABLE} ${script} $<TARGET_FILE:${program}> ${launcher})
      set_tests_properties(programs.${name} PROPERTIES
        ENVIRONMENT "${oktopk_mpi_environment}" PROCESSORS 2 TIMEOUT ${OKTOPK_TEST_SECONDS})
    endforeach()
  endforeach()
endfunction()
