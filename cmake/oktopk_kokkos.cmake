# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Shared by the build and by the installed oktopkConfig.cmake.

# The oldest Kokkos that the library compiles with.
set(oktopk_kokkos_version 3.4)
set(oktopk_missing_kokkos "no Kokkos ${oktopk_kokkos_version} or later was found. Install one (on Debian and Ubuntu: \
libtrilinos-kokkos-dev), or name the prefix of your own with -DKokkos_ROOT=<prefix>")

# oktopk_find_kokkos(): the target Kokkos::kokkos, where Kokkos is installed. A macro, for Kokkos leaves variables.
#
# A Kokkos that was built without extensions of the compiler wants users without them. Where a project has not chosen,
# it warns and writes OFF to the cache. The same is done here without the warning.
macro(oktopk_find_kokkos)
  if(NOT TARGET Kokkos::kokkos)
    if(DEFINED CMAKE_CXX_EXTENSIONS)
      find_package(Kokkos ${oktopk_kokkos_version} CONFIG QUIET)
    else()
      set(CMAKE_CXX_EXTENSIONS OFF)
      find_package(Kokkos ${oktopk_kokkos_version} CONFIG QUIET)
      unset(CMAKE_CXX_EXTENSIONS)
      if(Kokkos_FOUND AND DEFINED KOKKOS_USE_CXX_EXTENSIONS AND NOT KOKKOS_USE_CXX_EXTENSIONS)
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
