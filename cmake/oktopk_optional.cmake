# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Libraries that a program may use beside Kokkos, each with a component of the package. Included by the project and, once
# installed, by oktopkConfig.cmake.
set(oktopk_optional_components nccl torch xxhash zfp)
set(oktopk_torch_name libtorch)
set(oktopk_nccl_name NCCL)
set(oktopk_xxhash_name xxHash)
set(oktopk_zfp_name zfp)

# oktopk_find_mpi(): the target MPI::MPI_CXX, where MPI is installed. A macro, for FindMPI leaves variables.
#
# The C++ bindings that MPI dropped with version 3 only bring warnings. Not by MPI_CXX_SKIP_MPICXX: FindMPI keeps what comes of
# it in the cache, for the whole project, which may use them. Where a project has found MPI before, it has chosen.
macro(oktopk_find_mpi)
  if(NOT TARGET MPI::MPI_CXX)
    find_package(MPI QUIET COMPONENTS CXX)
    set(oktopk_mpi_definitions MPICH_SKIP_MPICXX OMPI_SKIP_MPICXX) # of oktopk::mpi
  endif()
endmacro()

# oktopk_find_library(<variable> <names> <folder of headers>): in the cache, unless it is there; beside the headers first.
function(oktopk_find_library variable names headers)
  if(NOT DEFINED ${variable})
    get_filename_component(installed "${headers}" DIRECTORY)
    find_library(${variable} NAMES ${names} NO_DEFAULT_PATH
      PATHS ${installed} PATH_SUFFIXES lib/${CMAKE_LIBRARY_ARCHITECTURE} lib64 lib)
  endif()
  find_library(${variable} NAMES ${names})
  mark_as_advanced(${variable})
endfunction()

# oktopk_find_optional(<component>): the target oktopk_<component>_library, where that library is installed.
#
# By header and library, not by the package files of the libraries: NCCL has none in all its releases; zfp's wants
# OpenMP for C, which a project of C++ alone cannot have; Torch's takes seconds, prints a lot and changes CMAKE_CXX_FLAGS.
# RCCL, for AMD's devices, counts as NCCL.
#
# Libraries are sought beside the headers first, and torch where the project has its own: what it has found, or names with
# Torch_DIR. Their names in the cache are ours, for TORCH_LIBRARY and C10_LIBRARY are those of Torch's package.
function(oktopk_find_optional component)
  set(target oktopk_${component}_library)
  if(TARGET ${target})
    return()
  endif()
  set(header_of_nccl nccl.h rccl/rccl.h)
  set(library_of_nccl nccl rccl)
  set(header_of_xxhash xxhash.h) # and no library: all of it is used from the header
  set(header_of_zfp zfp.h)
  set(library_of_zfp zfp)
  set(name_in_zfp zfp_false)       # since 1.0
  set(name_in_xxhash XXH3_64bits) # since 0.8
  set(header_of_torch torch/csrc/distributed/c10d/ProcessGroup.hpp)
  set(library_of_torch torch)
  set(more_libraries_of_torch torch_cpu c10)
  set(more_folders_of_torch torch/csrc/api/include)
  set(definitions_of_torch USE_DISTRIBUTED USE_C10D_GLOO) # as Torch's own package file has them

  string(TOUPPER ${component} prefix)
  set(theirs "")
  if(component STREQUAL "torch")
    set(prefix OKTOPK_TORCH)
    if(TARGET torch)
      get_target_property(theirs torch INTERFACE_INCLUDE_DIRECTORIES)
    endif()
    set(first ${theirs})
    if(Torch_DIR)
      list(APPEND first ${Torch_DIR}/../../../include)
    endif()
    find_path(${prefix}_INCLUDE_DIR NAMES ${header_of_torch} PATHS ${first} NO_DEFAULT_PATH)
  endif()
  find_path(${prefix}_INCLUDE_DIR NAMES ${header_of_${component}})
  mark_as_advanced(${prefix}_INCLUDE_DIR)
  if(NOT ${prefix}_INCLUDE_DIR)
    return()
  endif()
  set(libraries "")
  if(library_of_${component})
    oktopk_find_library(${prefix}_LIBRARY "${library_of_${component}}" ${${prefix}_INCLUDE_DIR})
    set(libraries ${${prefix}_LIBRARY})
  endif()
  set(folders ${${prefix}_INCLUDE_DIR})
  foreach(folder IN LISTS more_folders_of_${component})
    list(APPEND folders ${${prefix}_INCLUDE_DIR}/${folder})
  endforeach()
  foreach(library IN LISTS more_libraries_of_${component})
    string(TOUPPER OKTOPK_${library}_LIBRARY variable)
    oktopk_find_library(${variable} ${library} ${${prefix}_INCLUDE_DIR})
    list(APPEND libraries ${${variable}})
  endforeach()
  if("${libraries}" MATCHES "NOTFOUND")
    return()
  endif()
  foreach(folder IN LISTS theirs)
    if(EXISTS "${folder}/torch/csrc" AND NOT "${OKTOPK_TORCH_INCLUDE_DIR}" IN_LIST theirs)
      set(oktopk_missing_torch "the torch of this project is in ${folder}, and the cache of this build has another one, in \
${OKTOPK_TORCH_INCLUDE_DIR}. Configure anew, in an empty folder" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  # What the library uses since the least version that it takes.
  if(name_in_${component})
    list(GET header_of_${component} 0 header)
    file(STRINGS ${${prefix}_INCLUDE_DIR}/${header} lines REGEX ${name_in_${component}})
    if(NOT lines)
      return()
    endif()
  endif()
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} SYSTEM INTERFACE ${folders})
  target_link_libraries(${target} INTERFACE ${libraries})
  target_compile_definitions(${target} INTERFACE ${definitions_of_${component}})
endfunction()
