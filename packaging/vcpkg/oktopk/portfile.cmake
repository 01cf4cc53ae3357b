# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# An overlay port for the tree that it lies in. vcpkg has no port of Kokkos: CMake must find one on the system.
get_filename_component(source "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)
set(VCPKG_BUILD_TYPE release) # headers alone

# The targets for MPI, zfp and the others are made where the package is used; a feature brings what one needs.
vcpkg_cmake_configure(SOURCE_PATH "${source}"
  OPTIONS -DOKTOPK_ENABLE_MPI=OFF -DOKTOPK_ENABLE_NCCL=OFF -DOKTOPK_ENABLE_TORCH=OFF
          -DOKTOPK_ENABLE_XXHASH=OFF -DOKTOPK_ENABLE_ZFP=OFF -DOKTOPK_ENABLE_CATALOGUE=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/oktopk)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/doc")
vcpkg_install_copyright(FILE_LIST "${source}/LICENSE")
