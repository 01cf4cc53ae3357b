# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# oktopk_find_kokkos_kernels(): the target oktopk_kokkos_kernels, where a Kokkos-Kernels for the Kokkos in use is found.
function(oktopk_find_kokkos_kernels)
  if(OKTOPK_KOKKOS_HEADERS) # an incomplete package, which that of Kokkos-Kernels would load
    return()
  endif()
  find_package(KokkosKernels CONFIG QUIET)
  if(TARGET Kokkos::kokkoskernels)
    add_library(oktopk_kokkos_kernels INTERFACE)
    target_link_libraries(oktopk_kokkos_kernels INTERFACE Kokkos::kokkoskernels)
    return()
  endif()

  # The package of Debian and Ubuntu. It fits only the Kokkos packaged with it: with Trilinos before 16 that of these names,
  # later that of the same version.
  get_target_property(kokkos_libraries Kokkos::kokkos INTERFACE_LINK_LIBRARIES)
  set(kernels trilinos_kokkoskernels)
  if(TARGET KokkosKernels::trilinos_kokkoskernels)
    set(kernels KokkosKernels::trilinos_kokkoskernels)
    get_target_property(headers ${kernels} INTERFACE_INCLUDE_DIRECTORIES)
    file(STRINGS ${headers}/KokkosKernels_config.h version REGEX "define KOKKOSKERNELS_VERSION_(MAJOR|MINOR) [0-9]+")
    string(REGEX REPLACE "[^;]* " "" version "${version}")
    list(JOIN version "." version)
    if(NOT Kokkos_VERSION MATCHES "^${version}\\.")
      return()
    endif()
  elseif(NOT TARGET trilinos_kokkoskernels OR NOT "trilinos_kokkoscore" IN_LIST kokkos_libraries)
    return()
  endif()
  # It names libblas.so and liblapack.so, which only the -dev packages of a BLAS have. The shared library knows by
  # itself what it needs at run time, so what is absent may be left out.
  get_target_property(named ${kernels} INTERFACE_LINK_LIBRARIES)
  set(present "")
  foreach(library IN LISTS named)
    if(NOT library MATCHES "::all_libs$" AND (NOT IS_ABSOLUTE "${library}" OR EXISTS "${library}"))
      list(APPEND present ${library})
    endif()
  endforeach()
  set_target_properties(${kernels} PROPERTIES INTERFACE_LINK_LIBRARIES "${present}")
  add_library(oktopk_kokkos_kernels INTERFACE)
  target_link_libraries(oktopk_kokkos_kernels INTERFACE ${kernels})
endfunction()
