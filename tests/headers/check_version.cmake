# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Run by ctest with -D version=<version of the project> -D project_folder=<folder>: every file that names it agrees.
foreach(check IN ITEMS "CITATION.cff=^version: (.*)" "CHANGELOG.md=^## ([0-9.]+)"
                       "include/oktopk/core/version.hpp=STRING \"(.*)\""
                       "packaging/conan/conanfile.py=^    version.*\"(.*)\""
                       "packaging/vcpkg/oktopk/vcpkg.json=\"version\": \"(.*)\"")
  string(REGEX MATCH "([^=]*)=(.*)" check ${check})
  set(file ${CMAKE_MATCH_1})
  set(expression ${CMAKE_MATCH_2})
  file(STRINGS ${project_folder}/${file} lines REGEX "${expression}" LIMIT_COUNT 1)
  if(NOT lines MATCHES "${expression}" OR NOT CMAKE_MATCH_1 STREQUAL version)
    message(FATAL_ERROR "${file} has version \"${CMAKE_MATCH_1}\", and CMakeLists.txt ${version}")
  endif()
endforeach()
