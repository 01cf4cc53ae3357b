# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Shared by the build and by the installed oktopkConfig.cmake.

# The oldest Kokkos that the library compiles with.
set(oktopk_kokkos_version 3.4)
set(oktopk_missing_kokkos "no Kokkos ${oktopk_kokkos_version} or later was found. Install one (on Debian and Ubuntu: \
libtrilinos-kokkos-dev), or name the prefix of your own with -DKokkos_ROOT=<prefix>")

# oktopk_find_incomplete_kokkos(): the target Kokkos::kokkos, made of headers and libraries, where Kokkos' own package names
# libraries that are not there, which stops CMake even where Kokkos is not required. Debian's libkokkos-dev 5.2.2 does: it
# leaves out libkokkosalgorithms.a and libkokkossimd.a, which hold nothing that programs need.
function(oktopk_find_incomplete_kokkos)
  unset(OKTOPK_KOKKOS_HEADERS CACHE) # of another Kokkos, perhaps
  set(given "${Kokkos_DIR}")
  find_package(Kokkos CONFIG QUIET CONFIGS KokkosConfigVersion.cmake) # finds the folder, and loads no targets
  set(folder "${Kokkos_DIR}")
  if(NOT given)
    unset(Kokkos_DIR CACHE)
  endif()
  get_filename_component(libraries "${folder}/../.." ABSOLUTE)
  string(REGEX REPLACE "([[*?])" "[\\1]" pattern "${folder}")
  file(GLOB lists "${pattern}/KokkosTargets-*.cmake")
  set(there "")
  set(absent "")
  foreach(list IN LISTS lists)
    file(STRINGS ${list} lines REGEX "IMPORTED_LOCATION")
    foreach(line IN LISTS lines)
      string(REGEX MATCH "[^/\"]+\"$" name "${line}")
      string(REPLACE "\"" "" name "${name}")
      if(EXISTS "${libraries}/${name}")
        list(APPEND there "${libraries}/${name}")
      else()
        list(APPEND absent ${name})
      endif()
    endforeach()
  endforeach()
  if(NOT absent OR NOT there MATCHES "kokkoscore")
    return()
  endif()
  find_path(OKTOPK_KOKKOS_HEADERS KokkosCore_config.h NO_DEFAULT_PATH PATH_SUFFIXES kokkos
    HINTS ${libraries}/../include ${libraries}/../../include)
  mark_as_advanced(OKTOPK_KOKKOS_HEADERS)
  if(NOT OKTOPK_KOKKOS_HEADERS)
    return()
  endif()
  file(STRINGS ${OKTOPK_KOKKOS_HEADERS}/KokkosCore_config.h lines REGEX "^#define KOKKOS_ENABLE_[A-Z]+$")
  if(lines MATCHES "ENABLE_(CUDA|HIP|SYCL|THREADS|HPX|OPENMPTARGET|OPENACC)") # whose flags only the package knows
    return()
  endif()
  set(devices SERIAL)
  if(lines MATCHES "ENABLE_OPENMP")
    find_package(OpenMP REQUIRED COMPONENTS CXX)
    set(devices OPENMP)
    list(APPEND there OpenMP::OpenMP_CXX)
  endif()
  string(REPLACE ";" ", " absent "${absent}")
  message(STATUS "oktopk: the package of Kokkos in ${folder} lacks ${absent}, and is used without")
  add_library(Kokkos::kokkos INTERFACE IMPORTED)
  set_target_properties(Kokkos::kokkos PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${OKTOPK_KOKKOS_HEADERS}" INTERFACE_LINK_LIBRARIES "${there};${CMAKE_DL_LIBS}")
  set(Kokkos_DIR "${folder}" PARENT_SCOPE)
  set(Kokkos_VERSION "${PACKAGE_VERSION}" PARENT_SCOPE) # of the file of its version
  set(Kokkos_DEVICES ${devices} PARENT_SCOPE)
endfunction()

# oktopk_find_kokkos(): the target Kokkos::kokkos, where Kokkos is installed. A macro, for Kokkos leaves variables.
#
# A Kokkos that was built without extensions of the compiler warns a project that has not chosen, and writes OFF to its
# cache, for all of its programs. They do no harm but with nvcc, whose wrapper refuses them: for CUDA the same is done here,
# and said; else nothing changes.
macro(oktopk_find_kokkos)
  if(NOT TARGET Kokkos::kokkos)
    oktopk_find_incomplete_kokkos()
  endif()
  if(NOT TARGET Kokkos::kokkos)
    if(DEFINED CMAKE_CXX_EXTENSIONS)
      find_package(Kokkos ${oktopk_kokkos_version} CONFIG QUIET)
    else()
      set(CMAKE_CXX_EXTENSIONS OFF)
      find_package(Kokkos ${oktopk_kokkos_version} CONFIG QUIET)
      unset(CMAKE_CXX_EXTENSIONS)
      if(Kokkos_FOUND AND DEFINED KOKKOS_USE_CXX_EXTENSIONS AND NOT KOKKOS_USE_CXX_EXTENSIONS AND Kokkos_DEVICES MATCHES "CUDA")
        message(STATUS "oktopk: CMAKE_CXX_EXTENSIONS is OFF from here on, for the whole project, as this Kokkos was built")
        set(CMAKE_CXX_EXTENSIONS OFF CACHE BOOL "Whether C++ has extensions of the compiler; as Kokkos was built")
      endif()
    endif()
  endif()
endmacro()

# Debian and Ubuntu keep the headers of Kokkos in <prefix>/include/trilinos, but the target of their package names a
# folder that does not exist, which stops CMake. Where that is so, name the folder that the package's own
# Kokkos_INCLUDE_DIRS gives. A sound package is left alone.
function(oktopk_correct_kokkos)
  get_target_property(folders Kokkos::kokkos INTERFACE_INCLUDE_DIRECTORIES)
  set(wrong FALSE)
  foreach(folder IN LISTS folders)
    if(IS_ABSOLUTE "${folder}" AND NOT EXISTS "${folder}")
      set(wrong TRUE)
    endif()
  endforeach()
  if(NOT wrong)
    return()
  endif()
  # The variable is missing where a function of the calling project found Kokkos before: then seek from its folder.
  foreach(folder IN LISTS Kokkos_INCLUDE_DIRS
                 ITEMS "${Kokkos_DIR}/../../../../include/trilinos"
                       "${Kokkos_DIR}/../../../include/trilinos")
    if(EXISTS "${folder}/Kokkos_Core.hpp")
      get_filename_component(folder "${folder}" ABSOLUTE)
      set_target_properties(Kokkos::kokkos PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${folder}")
      return()
    endif()
  endforeach()
  message(WARNING "oktopk: the Kokkos in ${Kokkos_DIR} names include folders that do not exist (${folders}), and "
                  "Kokkos_Core.hpp was not found beside it.")
endfunction()
