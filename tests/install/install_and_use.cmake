# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Run by ctest: cmake -D <variable>=<value>... -P install_and_use.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    file(REMOVE_RECURSE ${scratch})
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "failed (${result}): ${command}")
  endif()
endfunction()

set(temporary_folder $ENV{TMPDIR})
if(NOT temporary_folder)
  set(temporary_folder /tmp)
endif()
string(RANDOM LENGTH 12 suffix)
set(scratch ${temporary_folder}/oktopk_install_${suffix})

run(${CMAKE_COMMAND} --install ${build_folder} --config "${config}" --prefix ${scratch}/prefix)
file(COPY ${source_folder}/ DESTINATION ${scratch}/source)

set(with_mpi OFF)
if(mpi_compiler)
  set(with_mpi ON)
endif()
set(options -G ${generator} -D CMAKE_BUILD_TYPE=${config} -D CMAKE_CXX_COMPILER=${compiler}
  -D CMAKE_PREFIX_PATH=${scratch}/prefix -D Kokkos_DIR=${kokkos_folder})
run(${CMAKE_COMMAND} -S ${scratch}/source -B ${scratch}/build ${options}
  -D WITH_MPI=${with_mpi} -D MPI_CXX_COMPILER=${mpi_compiler})
run(${CMAKE_COMMAND} --build ${scratch}/build --config "${config}")
run(${scratch}/build/alone)
if(with_mpi)
  separate_arguments(launcher)
  run(${launcher} 2 ${scratch}/build/with_mpi)
endif()

# Once more as by the oldest CMake that is supported: it skips what a newer one writes to the exported files for itself.
run(${CMAKE_COMMAND} -S ${scratch}/source -B ${scratch}/older ${options} -D SEEN_BY=3.22.1)
run(${CMAKE_COMMAND} --build ${scratch}/older --config "${config}" --target alone)
file(REMOVE_RECURSE ${scratch})
