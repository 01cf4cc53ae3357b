# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Run by ctest: a project with the library as a part installs its own files and, unless told to, none of ours.
include(${CMAKE_CURRENT_LIST_DIR}/scratch.cmake)

set(configure ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/subproject -G ${generator}
  -D CMAKE_CXX_COMPILER=${compiler} -D Kokkos_DIR=${kokkos_folder} -D OKTOPK_SOURCE=${project_folder})
# Nothing is built: other tests compile the program.
configured_quietly(${configure} -B ${scratch}/build)
run(${CMAKE_COMMAND} --install ${scratch}/build --prefix ${scratch}/prefix)
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/oktopk_glob.cmake)
oktopk_glob(installed ${scratch}/prefix RECURSE RELATIVE *)
if(NOT installed STREQUAL "share/cmake/part/partTargets.cmake;share/owner/CMakeLists.txt")
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

# A project that uses the owner's library.
file(STRINGS ${scratch}/both/share/cmake/part/partTargets.cmake links REGEX "INTERFACE_LINK_LIBRARIES.*oktopk::mpi")
if(links)
  file(WRITE ${scratch}/user/CMakeLists.txt
    "cmake_minimum_required(VERSION 3.16)\nproject(user LANGUAGES CXX)\nfind_package(oktopk REQUIRED COMPONENTS mpi)\n"
    "include(\${CMAKE_PREFIX_PATH}/share/cmake/part/partTargets.cmake)\n"
    "file(WRITE \${CMAKE_BINARY_DIR}/user.cpp \"#include <oktopk/mpi.hpp>\\nint main() {}\\n\")\n"
    "add_executable(user \${CMAKE_BINARY_DIR}/user.cpp)\ntarget_link_libraries(user PRIVATE part::part)\n")
  run(${CMAKE_COMMAND} -S ${scratch}/user -B ${scratch}/user/build -G ${generator} -D CMAKE_CXX_COMPILER=${compiler}
      -D Kokkos_DIR=${kokkos_folder} -D CMAKE_PREFIX_PATH=${scratch}/both)
  run(${CMAKE_COMMAND} --build ${scratch}/user/build)
endif()
file(REMOVE_RECURSE ${scratch})
