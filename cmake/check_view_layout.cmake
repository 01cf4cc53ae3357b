# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# With a Kokkos for CUDA: whether host and device code agree on where things lie behind a View, looked at in device code.
# The headers refuse the pairs of Kokkos and nvcc of which it is known that they do not; this finds others.
get_target_property(imported Kokkos::kokkos IMPORTED)
if(Kokkos_DEVICES MATCHES "CUDA" AND imported AND NOT DEFINED OKTOPK_VIEWS_LIE_ALIKE)
  message(STATUS "oktopk: looking at how device code lays out what follows a View")
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY) # nothing is linked or run
  try_compile(alike ${CMAKE_CURRENT_BINARY_DIR}/view_layout ${CMAKE_CURRENT_LIST_DIR}/view_layout.cpp
    LINK_LIBRARIES Kokkos::kokkos CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON OUTPUT_VARIABLE said)
  unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
  if(alike)
    set(OKTOPK_VIEWS_LIE_ALIKE TRUE CACHE INTERNAL "Host and device code agree on what follows a View")
  elseif(said MATCHES "oktopk_views_lie_differently")
    message(FATAL_ERROR
      "oktopk: with this Kokkos (${Kokkos_VERSION}) and this compiler, kernels would read garbage behind a Kokkos::View: "
      "device code lays it out in another way than host code. Take Kokkos 4.7.02 or later, or configure this one (up to 5.2) with "
      "-DKokkos_ENABLE_IMPL_VIEW_LEGACY=ON; docs/backends.md says why.")
  else()
    message(WARNING "oktopk: the layout of Kokkos::View in device code could not be looked at:\n${said}")
  endif()
endif()
