# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# oktopk.pc, and oktopk_engine.pc, for C. Kokkos installs no such file, so its flags are written into ours: all that its CMake
# targets name. Programs compile the headers of Kokkos and call what is linked to it, so no library is private.
# The prefix follows the file when the installation moves; the folders of Kokkos are absolute.

# oktopk_add_library_file(PATH): adds to oktopk_link_flags of the caller: as -l where the linker finds it under that
# name, so that oktopk.pc stays valid when the library gets another version.
function(oktopk_add_library_file path)
  get_filename_component(folder "${path}" DIRECTORY)
  get_filename_component(name "${path}" NAME)
  set(flags "${path}")
  if(name MATCHES "^lib(.+)\\.(so|a|dylib)[.0-9]*$")
    set(name ${CMAKE_MATCH_1})
    set(shared FALSE)
    if(EXISTS "${folder}/lib${name}.so" OR EXISTS "${folder}/lib${name}.dylib")
      set(shared TRUE)
    endif()
    if(shared OR EXISTS "${folder}/lib${name}.a")
      set(flags -l${name})
      if(NOT folder IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
        list(APPEND flags -L${folder})
        if(shared)
          list(APPEND flags -Wl,-rpath,${folder})
        endif()
      endif()
    endif()
  endif()
  set(oktopk_link_flags ${oktopk_link_flags} ${flags} PARENT_SCOPE)
endfunction()

# oktopk_add_flags_of(TARGET): adds to oktopk_compile_flags and oktopk_link_flags of the caller.
function(oktopk_add_flags_of target)
  get_target_property(compile_folders ${target} INTERFACE_INCLUDE_DIRECTORIES)
  get_target_property(compile_definitions ${target} INTERFACE_COMPILE_DEFINITIONS)
  get_target_property(compile_options ${target} INTERFACE_COMPILE_OPTIONS)
  get_target_property(link_options ${target} INTERFACE_LINK_OPTIONS)
  get_target_property(libraries ${target} INTERFACE_LINK_LIBRARIES)
  get_target_property(type ${target} TYPE)
  set(prefix_of_compile_folders "-isystem ") # warnings in them are not the user's
  set(prefix_of_compile_definitions -D)

  foreach(kind IN ITEMS compile_folders compile_definitions compile_options link_options)
    string(REGEX REPLACE "^(compile|link)_.*" "oktopk_\\1_flags" flags ${kind})
    foreach(item IN LISTS ${kind})
      if(item)
        list(APPEND ${flags} "${prefix_of_${kind}}${item}")
      endif()
    endforeach()
  endforeach()

  if(NOT type STREQUAL "INTERFACE_LIBRARY")
    get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
    set(location "")
    if(configurations)
      list(GET configurations 0 configuration)
      get_target_property(location ${target} IMPORTED_LOCATION_${configuration})
    endif()
    if(NOT location)
      get_target_property(location ${target} IMPORTED_LOCATION)
    endif()
    if(location)
      oktopk_add_library_file("${location}")
    endif()
  endif()
  foreach(library IN LISTS libraries)
    if(TARGET "${library}")
      oktopk_add_flags_of(${library})
    elseif(library MATCHES "^/")
      oktopk_add_library_file("${library}")
    elseif(library MATCHES "^-")
      list(APPEND oktopk_link_flags "${library}")
    elseif(library AND NOT library MATCHES "[$]<|::")
      list(APPEND oktopk_link_flags "-l${library}")
    endif()
  endforeach()
  set(oktopk_compile_flags "${oktopk_compile_flags}" PARENT_SCOPE)
  set(oktopk_link_flags "${oktopk_link_flags}" PARENT_SCOPE)
endfunction()

file(RELATIVE_PATH oktopk_prefix_from_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" oktopk_prefix_from_pc "${oktopk_prefix_from_pc}")
foreach(kind IN ITEMS include lib)
  string(TOUPPER ${kind} folder)
  set(oktopk_pc_${kind}dir "\${prefix}/${CMAKE_INSTALL_${folder}DIR}")
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${folder}DIR}")
    set(oktopk_pc_${kind}dir "${CMAKE_INSTALL_${folder}DIR}")
  endif()
endforeach()
if(TARGET oktopk_engine) # which has what it needs of Kokkos inside, or finds it
  configure_file(cmake/oktopk_engine.pc.in oktopk_engine.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/oktopk_engine.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

get_target_property(imported Kokkos::kokkos IMPORTED)
if(NOT imported)
  message(STATUS "oktopk: no oktopk.pc is installed, since Kokkos is part of this build")
  return()
endif()

set(oktopk_compile_flags "")
set(oktopk_link_flags "")
oktopk_add_flags_of(Kokkos::kokkos)
foreach(kind IN ITEMS compile link)
  # Options of Kokkos come as $<$<COMPILE_LANGUAGE:CXX>:options>, possibly empty.
  string(REGEX REPLACE "[$]<[$]<(COMPILE|LINK)_LANGUAGE:CXX>:([^<>]*)>" "\\2" flags "${oktopk_${kind}_flags}")
  list(TRANSFORM flags REPLACE "^SHELL:" "") # how CMake keeps options together; its FindOpenMP has it
  list(FILTER flags EXCLUDE REGEX "[$]<|^$|^-isystem /usr/include$")
  if(kind STREQUAL "compile")
    list(REMOVE_DUPLICATES flags)
  else() # a static library comes after all that need it
    list(REVERSE flags)
    list(REMOVE_DUPLICATES flags)
    list(REVERSE flags)
    list(REMOVE_ITEM flags -DKOKKOS_DEPENDENCE) # for the compiler launcher of Kokkos, which CMake alone uses
    set(folders ${flags})
    list(FILTER folders INCLUDE REGEX "^-L|^-Wl,-rpath")
    list(FILTER flags EXCLUDE REGEX "^-L|^-Wl,-rpath")
    set(flags ${folders} ${flags})
  endif()
  string(REPLACE ";" " " oktopk_kokkos_${kind}_flags "${flags}")
endforeach()

# C++20 where the user names no standard: the last -std would win, also over a newer one before these flags, but compilers
# put what -Wp gives them before it. nvcc_wrapper gives that to the host's compiler alone.
set(oktopk_pc_standard -Wp,-std=c++20)
if(Kokkos_DEVICES MATCHES "CUDA")
  set(oktopk_pc_standard -std=c++20)
endif()
# Warnings in the headers are not the user's. A folder of the compiler's own, named with -isystem, would come before those
# of the standard library, which then finds no <stdlib.h>: -I leaves it where it is. The prefix of `cmake --install` counts.
set(oktopk_pc_include_flag "-isystem ")
configure_file(cmake/oktopk.pc.in oktopk.pc @ONLY)
set(oktopk_pc_include_flag -I)
configure_file(cmake/oktopk.pc.in oktopk_in_system.pc @ONLY)
set(oktopk_system_folders ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES} /usr/include /usr/local/include)
install(CODE "
  get_filename_component(oktopk_includes \"${CMAKE_INSTALL_INCLUDEDIR}\" ABSOLUTE BASE_DIR \"\${CMAKE_INSTALL_PREFIX}\")
  set(oktopk_pc oktopk.pc)
  string(FIND \";${oktopk_system_folders};\" \";\${oktopk_includes};\" oktopk_place)
  if(NOT oktopk_place EQUAL -1)
    set(oktopk_pc oktopk_in_system.pc)
  endif()
  get_filename_component(oktopk_pc_folder \"${CMAKE_INSTALL_LIBDIR}/pkgconfig\" ABSOLUTE BASE_DIR \"\${CMAKE_INSTALL_PREFIX}\")
  file(INSTALL DESTINATION \"\${oktopk_pc_folder}\" TYPE FILE RENAME oktopk.pc
    FILES \"${CMAKE_CURRENT_BINARY_DIR}/\${oktopk_pc}\")")
