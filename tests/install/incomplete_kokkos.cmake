# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Run by ctest: a package of Kokkos that names a library which is not there, as Debian's libkokkos-dev 5.2.2. Its own file
# ends CMake; the library and its users are built nevertheless, by what is there.
include(${CMAKE_CURRENT_LIST_DIR}/scratch.cmake)

set(package ${scratch}/kokkos/lib/cmake/Kokkos)
file(WRITE ${package}/KokkosConfigVersion.cmake "set(PACKAGE_VERSION 5.2.2)\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n")
file(WRITE ${package}/KokkosConfig.cmake "message(FATAL_ERROR \"a file that the package names does not exist\")\n")
file(WRITE ${package}/KokkosTargets-none.cmake
  "set_target_properties(Kokkos::kokkoscore PROPERTIES\n"
  "  IMPORTED_LOCATION_NONE \"\${_IMPORT_PREFIX}/lib/libkokkoscore.so\"\n  )\n"
  "set_target_properties(Kokkos::kokkosalgorithms PROPERTIES\n"
  "  IMPORTED_LOCATION_NONE \"\${_IMPORT_PREFIX}/lib/libkokkosalgorithms.a\"\n  )\n")
file(MAKE_DIRECTORY ${scratch}/kokkos/include)
file(CREATE_LINK ${kokkos_library} ${scratch}/kokkos/lib/libkokkoscore.so SYMBOLIC)
file(CREATE_LINK ${kokkos_headers} ${scratch}/kokkos/include/kokkos SYMBOLIC)

set(options -G ${generator} -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_DISABLE_FIND_PACKAGE_MPI=ON)
run(${CMAKE_COMMAND} -S ${project_folder} -B ${scratch}/build ${options} -D Kokkos_ROOT=${scratch}/kokkos)
foreach(text IN ITEMS "lacks libkokkosalgorithms.a, and is used without" "Kokkos 5.2.2 \\([A-Z]+\\) from ${package}")
  if(NOT output MATCHES "${text}")
    fault("it does not say \"${text}\":\n${output}")
  endif()
endforeach()
run(${CMAKE_COMMAND} --install ${scratch}/build --prefix ${scratch}/prefix)
file(READ ${scratch}/prefix/lib/pkgconfig/oktopk.pc flags)
if(NOT flags MATCHES "-lkokkoscore" OR flags MATCHES "SHELL:|[$]<")
  fault("oktopk.pc has\n${flags}")
endif()

file(WRITE ${scratch}/user/CMakeLists.txt
  "cmake_minimum_required(VERSION 3.16)\nproject(user LANGUAGES CXX)\nfind_package(oktopk REQUIRED)\n"
  "add_executable(user user.cpp)\ntarget_link_libraries(user PRIVATE oktopk::oktopk)\n")
file(WRITE ${scratch}/user/user.cpp
  "#include <oktopk/core/error.hpp>\n#include <Kokkos_Core.hpp>\n"
  "int main() { Kokkos::initialize(); Kokkos::finalize(); }\n")
run(${CMAKE_COMMAND} -S ${scratch}/user -B ${scratch}/user/build ${options}
    -D CMAKE_PREFIX_PATH=${scratch}/prefix -D Kokkos_ROOT=${scratch}/kokkos)
run(${CMAKE_COMMAND} --build ${scratch}/user/build)
run(${scratch}/user/build/user)
file(REMOVE_RECURSE ${scratch})
