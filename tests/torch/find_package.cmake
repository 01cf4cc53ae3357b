# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Run by ctest: a project that finds torch by torch's own package beside an installed oktopk, in both orders.
include(${CMAKE_CURRENT_LIST_DIR}/../install/scratch.cmake)

run(${CMAKE_COMMAND} --install ${build_folder} --config "${config}" --prefix ${scratch}/prefix)
foreach(first IN ITEMS Torch oktopk)
  set(folder ${scratch}/${first})
  run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/find_package -B ${folder} -G ${generator} -D FIRST=${first}
    -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_PREFIX_PATH=${scratch}/prefix -D Kokkos_DIR=${kokkos_folder})
  run(${CMAKE_COMMAND} --build ${folder})
  run(${folder}/both)
endforeach()
file(REMOVE_RECURSE ${scratch})
