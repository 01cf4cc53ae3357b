# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Run by ctest: configure and install with no option at all, on a machine without Catch2 and MPI. Nothing is built or
# compiled, as the readme promises; the time limit of the test is that of the whole.
include(${CMAKE_CURRENT_LIST_DIR}/scratch.cmake)

set(without -D CMAKE_DISABLE_FIND_PACKAGE_MPI=ON -D CMAKE_DISABLE_FIND_PACKAGE_Catch2=ON)
set(configure ${CMAKE_COMMAND} -S ${project_folder} -G ${generator} -D CMAKE_CXX_COMPILER=${compiler}
  -D Kokkos_DIR=${kokkos_folder} ${without})
run(${configure} -B ${scratch}/build)
if(NOT output MATCHES "no MPI for C\\+\\+ was found, so the target oktopk::mpi is left out")
  fault("a missing MPI is not reported:\n${output}")
endif()
run(${CMAKE_COMMAND} --install ${scratch}/build --prefix ${scratch}/prefix)
foreach(file IN ITEMS include/oktopk/allreduce.hpp include/oktopk/mpi.hpp share/cmake/oktopk/oktopkConfig.cmake
                      lib/pkgconfig/oktopk.pc share/doc/oktopk/LICENSE share/doc/oktopk/README.md
                      share/doc/oktopk/CHANGELOG.md share/doc/oktopk/CITATION.cff share/doc/oktopk/docs/training.md)
  if(NOT EXISTS ${scratch}/prefix/${file})
    fault("there is no ${file}")
  endif()
endforeach()

# Whoever asks for MPI or for tests hears what is missing.
refused(SAYING "no MPI for C\\+\\+ was found" COMMAND ${configure} -B ${scratch}/mpi -D OKTOPK_ENABLE_MPI=ON)
refused(SAYING "tests need Catch2" COMMAND ${configure} -B ${scratch}/tests -D OKTOPK_ENABLE_TESTS=ON)
file(REMOVE_RECURSE ${scratch})
