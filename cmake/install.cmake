# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_DATADIR}/cmake/oktopk)
install(TARGETS oktopk EXPORT oktopkTargets)
set(any_architecture ARCH_INDEPENDENT)
if(TARGET oktopk_catalogue)
  install(TARGETS oktopk_catalogue EXPORT oktopkTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  set(any_architecture "")
endif()
set(engines "")
foreach(engine IN ITEMS oktopk_engine oktopk_device_engine)
  if(TARGET ${engine})
    list(APPEND engines ${engine})
  endif()
endforeach()
if(engines) # a package of its own, for projects of C, which know neither C++ nor Kokkos
  set(engine_folder ${CMAKE_INSTALL_DATADIR}/cmake/oktopk_engine)
  install(TARGETS ${engines} EXPORT oktopk_engine
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(EXPORT oktopk_engine NAMESPACE oktopk:: DESTINATION ${engine_folder} FILE oktopk_engineConfig.cmake)
  write_basic_package_version_file(oktopk_engineConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/oktopk_engineConfigVersion.cmake DESTINATION ${engine_folder})
  install(FILES include/oktopk/engine.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/oktopk)
endif()
install(DIRECTORY include/oktopk DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
install(EXPORT oktopkTargets NAMESPACE oktopk:: DESTINATION ${package_folder})

configure_package_config_file(cmake/oktopkConfig.cmake.in oktopkConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(oktopkConfigVersion.cmake COMPATIBILITY SameMinorVersion ${any_architecture})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/oktopkConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/oktopkConfigVersion.cmake
              ${CMAKE_CURRENT_SOURCE_DIR}/cmake/oktopk_kokkos.cmake
              ${CMAKE_CURRENT_SOURCE_DIR}/cmake/oktopk_optional.cmake
        DESTINATION ${package_folder})

# As part of another project, CMAKE_INSTALL_DOCDIR is the folder of that project.
set(doc_folder ${CMAKE_INSTALL_DOCDIR})
if(NOT oktopk_is_top_level)
  set(doc_folder ${CMAKE_INSTALL_DATAROOTDIR}/doc/oktopk)
endif()
install(FILES README.md CHANGELOG.md CITATION.cff LICENSE DESTINATION ${doc_folder})
install(DIRECTORY docs DESTINATION ${doc_folder} FILES_MATCHING PATTERN "*.md" PATTERN "*.png")

include(cmake/pkg_config.cmake)
