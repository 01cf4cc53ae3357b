# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# oktopk_glob(<variable> <folder> [RECURSE] [RELATIVE] <pattern>...): file(GLOB) with patterns below a folder, whose own name
# may have what patterns have: brackets, a star. RELATIVE gives the files as seen from the folder.
function(oktopk_glob variable folder)
  cmake_parse_arguments(PARSE_ARGV 2 how "RECURSE;RELATIVE" "" "")
  string(REGEX REPLACE "([[*?])" "[\\1]" below "${folder}")
  set(kind GLOB)
  if(how_RECURSE)
    set(kind GLOB_RECURSE)
  endif()
  set(relative "")
  if(how_RELATIVE)
    set(relative RELATIVE "${folder}")
  endif()
  set(patterns "${how_UNPARSED_ARGUMENTS}")
  list(TRANSFORM patterns PREPEND "${below}/")
  set(depends "")
  if(NOT CMAKE_SCRIPT_MODE_FILE)
    set(depends CONFIGURE_DEPENDS)
  endif()
  file(${kind} found ${relative} ${depends} ${patterns})
  set(${variable} "${found}" PARENT_SCOPE)
endfunction()
