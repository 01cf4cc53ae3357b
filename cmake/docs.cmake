# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# The target docs: the site, in <build>/docs/html. A warning of Doxygen is an error.
find_package(Doxygen REQUIRED)
set(oktopk_docs_folder ${CMAKE_CURRENT_BINARY_DIR}/docs)
file(MAKE_DIRECTORY ${oktopk_docs_folder})
configure_file(docs/Doxyfile.in ${oktopk_docs_folder}/Doxyfile @ONLY)
add_custom_target(docs
  COMMAND ${DOXYGEN_EXECUTABLE} ${oktopk_docs_folder}/Doxyfile
  WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
  COMMENT "Writing the documentation to ${oktopk_docs_folder}/html"
  VERBATIM)
