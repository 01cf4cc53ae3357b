# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# oktopk_find_zfp(): the target oktopk_zfp_library, where libzfp is installed. Not by zfp's own package file: that wants
# OpenMP for C, which a project of C++ alone cannot have, though nothing here needs it.
function(oktopk_find_zfp)
  if(TARGET oktopk_zfp_library)
    return()
  endif()
  find_path(ZFP_INCLUDE_DIR zfp.h)
  find_library(ZFP_LIBRARY zfp)
  mark_as_advanced(ZFP_INCLUDE_DIR ZFP_LIBRARY)
  if(ZFP_INCLUDE_DIR AND ZFP_LIBRARY)
    add_library(oktopk_zfp_library INTERFACE IMPORTED GLOBAL)
    target_include_directories(oktopk_zfp_library SYSTEM INTERFACE ${ZFP_INCLUDE_DIR})
    target_link_libraries(oktopk_zfp_library INTERFACE ${ZFP_LIBRARY})
  endif()
endfunction()
