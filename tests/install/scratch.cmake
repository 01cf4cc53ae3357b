# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Included by the scripts that ctest runs here: a scratch folder, and commands that must succeed or fail.
set(temporary_folder $ENV{TMPDIR})
if(NOT temporary_folder)
  set(temporary_folder /tmp)
endif()
string(RANDOM LENGTH 12 suffix)
set(scratch ${temporary_folder}/oktopk_install_${suffix})

# fault(TEXT...): removes the scratch folder and ends the test.
function(fault)
  file(REMOVE_RECURSE ${scratch})
  message(FATAL_ERROR ${ARGN})
endfunction()

# run(COMMAND ARGUMENT...): it must succeed. Leaves its text in `output`.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    fault("failed (${result}): ${command}\n${output}\n${errors}")
  endif()
  set(output "${output}${errors}" PARENT_SCOPE)
endfunction()

# configured_quietly(COMMAND ARGUMENT...): it must succeed without a warning. Leaves its text in `output`.
function(configured_quietly)
  run(${ARGN})
  if(output MATCHES "Warning")
    list(JOIN ARGN " " command)
    fault("warns: ${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# refused(SAYING EXPRESSION... COMMAND COMMAND ARGUMENT...): it must fail and say each of the regular expressions.
function(refused)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "SAYING;COMMAND")
  execute_process(COMMAND ${arg_COMMAND} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  list(JOIN arg_COMMAND " " command)
  if(result EQUAL 0)
    fault("succeeded, and should have failed: ${command}")
  endif()
  string(REGEX REPLACE "[ \n]+" " " text "${output} ${errors}") # CMake breaks lines
  foreach(expression IN LISTS arg_SAYING)
    if(NOT text MATCHES "${expression}")
      fault("does not say \"${expression}\": ${command}\n${output}\n${errors}")
    endif()
  endforeach()
endfunction()
