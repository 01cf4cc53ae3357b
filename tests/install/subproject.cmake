# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Run by ctest: a project with the library as a part installs its own files and, unless told to, none of ours.
include(${CMAKE_CURRENT_LIST_DIR}/scratch.cmake)

set(configure ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/subproject -G ${generator}
  -D CMAKE_CXX_COMPILER=${compiler} -D Kokkos_DIR=${kokkos_folder} -D OKTOPK_SOURCE=${project_folder})
# Nothing is built: other tests compile the program.
configured_quietly(${configure} -B ${scratch}/build)
run(${CMAKE_COMMAND} --install ${scratch}/build --prefix ${scratch}/prefix)
file(GLOB_RECURSE installed RELATIVE ${scratch}/prefix ${scratch}/prefix/*)
if(NOT installed STREQUAL "share/owner/CMakeLists.txt")
  fault("the owner's prefix has ${installed}")
endif()
if(EXISTS ${scratch}/build/oktopk/tests)
  fault("the tests of the library are part of the owner's build")
endif()

run(${configure} -B ${scratch}/with -D OKTOPK_INSTALL=ON)
run(${CMAKE_COMMAND} --install ${scratch}/with --prefix ${scratch}/both)
foreach(file IN ITEMS include/oktopk/allreduce.hpp share/cmake/oktopk/oktopkConfig.cmake share/doc/oktopk/README.md
                      share/owner/CMakeLists.txt)
  if(NOT EXISTS ${scratch}/both/${file})
    fault("with OKTOPK_INSTALL=ON there is no ${file}")
  endif()
endforeach()
file(REMOVE_RECURSE ${scratch})
