# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Run by ctest: cmake -D nm=NM -D library=FILE -D header=FILE -P symbols.cmake. The library shows the functions of the header,
# all of them and nothing else.
execute_process(COMMAND ${nm} -D --defined-only ${library} OUTPUT_VARIABLE shown)
string(REGEX MATCHALL "[^\n]+" shown "${shown}")
list(TRANSFORM shown REPLACE ".* " "")
list(REMOVE_ITEM shown _init _fini)
list(SORT shown)
file(READ ${header} text)
string(REGEX MATCHALL "oktopk_engine_[a-z_]+\\(" declared "${text}")
list(TRANSFORM declared REPLACE "\\(" "")
list(REMOVE_DUPLICATES declared)
list(SORT declared)
if(NOT declared OR NOT shown STREQUAL declared)
  message(FATAL_ERROR "declared: ${declared}\nshown: ${shown}")
endif()
