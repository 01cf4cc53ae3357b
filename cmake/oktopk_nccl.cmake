# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# oktopk_find_nccl(): the target oktopk_nccl_library, where NCCL, or RCCL for AMD's devices, is installed. Neither has a
# package file of CMake's in all its releases.
function(oktopk_find_nccl)
  if(TARGET oktopk_nccl_library)
    return()
  endif()
  find_path(NCCL_INCLUDE_DIR NAMES nccl.h rccl/rccl.h)
  find_library(NCCL_LIBRARY NAMES nccl rccl)
  mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)
  if(NCCL_INCLUDE_DIR AND NCCL_LIBRARY)
    add_library(oktopk_nccl_library INTERFACE IMPORTED GLOBAL)
    target_include_directories(oktopk_nccl_library SYSTEM INTERFACE ${NCCL_INCLUDE_DIR})
    target_link_libraries(oktopk_nccl_library INTERFACE ${NCCL_LIBRARY})
  endif()
endfunction()
