# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# The target docs: the site, in <build>/docs/html. A warning of Doxygen is an error, there and in the test docs.site,
# which also follows every link.
find_package(Doxygen QUIET)
find_package(Python3 QUIET COMPONENTS Interpreter)
if(NOT Doxygen_FOUND OR NOT Python3_FOUND)
  if(OKTOPK_ENABLE_DOCS)
    message(FATAL_ERROR
      "oktopk: the documentation needs Doxygen and Python 3, which were not both found. Install them (on Debian and "
      "Ubuntu: doxygen, python3), or do without with -DOKTOPK_ENABLE_DOCS=OFF.")
  endif()
  message(STATUS "oktopk: no Doxygen or no Python 3, so the documentation is not checked")
  return()
endif()

set(oktopk_docs_folder ${CMAKE_CURRENT_BINARY_DIR}/docs)
file(MAKE_DIRECTORY ${oktopk_docs_folder})
configure_file(docs/Doxyfile.in ${oktopk_docs_folder}/Doxyfile @ONLY)
add_custom_target(docs
  COMMAND ${DOXYGEN_EXECUTABLE} ${oktopk_docs_folder}/Doxyfile
  WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
  COMMENT "Writing the documentation to ${oktopk_docs_folder}/html"
  VERBATIM)
if(OKTOPK_ENABLE_TESTS AND NOT OKTOPK_TEST_ONLY_MPI)
  add_test(NAME docs.site
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/tests/style/check_site.py
                   ${oktopk_docs_folder}/html ${DOXYGEN_EXECUTABLE} ${oktopk_docs_folder}/Doxyfile
           WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(docs.site PROPERTIES LABELS full)
endif()
