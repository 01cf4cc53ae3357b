# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_DATADIR}/cmake/oktopk)
install(TARGETS oktopk EXPORT oktopkTargets)
install(DIRECTORY include/oktopk DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
install(EXPORT oktopkTargets NAMESPACE oktopk:: DESTINATION ${package_folder})

configure_package_config_file(cmake/oktopkConfig.cmake.in oktopkConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(oktopkConfigVersion.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/oktopkConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/oktopkConfigVersion.cmake
              ${CMAKE_CURRENT_SOURCE_DIR}/cmake/oktopk_kokkos.cmake
              ${CMAKE_CURRENT_SOURCE_DIR}/cmake/oktopk_optional.cmake
        DESTINATION ${package_folder})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/oktopk)

include(cmake/pkg_config.cmake)
