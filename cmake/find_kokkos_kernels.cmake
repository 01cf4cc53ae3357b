# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# oktopk_find_kokkos_kernels(): the target oktopk_kokkos_kernels, where a Kokkos-Kernels for the Kokkos in use is found.
function(oktopk_find_kokkos_kernels)
  find_package(KokkosKernels CONFIG QUIET)
  if(TARGET Kokkos::kokkoskernels)
    add_library(oktopk_kokkos_kernels INTERFACE)
    target_link_libraries(oktopk_kokkos_kernels INTERFACE Kokkos::kokkoskernels)
    return()
  endif()

  # The package of Debian and Ubuntu. It fits only the Kokkos packaged with it; its headers lie beside that one's.
  get_target_property(kokkos_libraries Kokkos::kokkos INTERFACE_LINK_LIBRARIES)
  if(NOT TARGET trilinos_kokkoskernels OR NOT "trilinos_kokkoscore" IN_LIST kokkos_libraries)
    return()
  endif()
  # It names libblas.so and liblapack.so, which only the -dev packages of a BLAS have. The shared library knows by
  # itself what it needs at run time, so what is absent may be left out.
  get_target_property(named trilinos_kokkoskernels INTERFACE_LINK_LIBRARIES)
  set(present "")
  foreach(library IN LISTS named)
    if(NOT IS_ABSOLUTE "${library}" OR EXISTS "${library}")
      list(APPEND present ${library})
    endif()
  endforeach()
  set_target_properties(trilinos_kokkoskernels PROPERTIES INTERFACE_LINK_LIBRARIES "${present}")
  add_library(oktopk_kokkos_kernels INTERFACE)
  target_link_libraries(oktopk_kokkos_kernels INTERFACE trilinos_kokkoskernels)
endfunction()
