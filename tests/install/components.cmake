# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Run by ctest: an installed package is asked for components that it has, has not, and cannot provide here.
include(${CMAKE_CURRENT_LIST_DIR}/scratch.cmake)

run(${CMAKE_COMMAND} --install ${build_folder} --config "${config}" --prefix ${scratch}/prefix)
set(ask ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/components -G ${generator} -D CMAKE_CXX_COMPILER=${compiler}
  -D CMAKE_PREFIX_PATH=${scratch}/prefix -D Kokkos_DIR=${kokkos_folder})

refused(SAYING "there is no component ucx\\." "components are mpi, nccl, torch, xxhash and zfp"
  COMMAND ${ask} -B ${scratch}/unknown -D COMPONENTS=ucx)
refused(SAYING "no Kokkos 3\\.4 or later was found" "libtrilinos-kokkos-dev"
  COMMAND ${ask} -B ${scratch}/no_kokkos -D CMAKE_DISABLE_FIND_PACKAGE_Kokkos=ON)
refused(SAYING "component mpi cannot be provided: no MPI for C\\+\\+ was found" "components are mpi, nccl, torch, xxhash and zfp"
  COMMAND ${ask} -B ${scratch}/no_mpi -D COMPONENTS=mpi -D CMAKE_DISABLE_FIND_PACKAGE_MPI=ON)
refused(SAYING "component zfp cannot be provided: no zfp was found" "And there is no component ucx"
  COMMAND ${ask} -B ${scratch}/no_zfp -D "COMPONENTS=zfp ucx" -D ZFP_LIBRARY=ZFP_LIBRARY-NOTFOUND
          -D CMAKE_FIND_LIBRARY_PREFIXES=none)

refused(SAYING "component nccl cannot be provided: no NCCL and no RCCL was found" "components are mpi, nccl, torch, xxhash and zfp"
  COMMAND ${ask} -B ${scratch}/no_nccl -D COMPONENTS=nccl -D NCCL_LIBRARY=NCCL_LIBRARY-NOTFOUND
          -D CMAKE_FIND_LIBRARY_PREFIXES=none)
refused(SAYING "component torch cannot be provided: no libtorch with c10d was found" "are mpi, nccl, torch, xxhash and zfp"
  COMMAND ${ask} -B ${scratch}/no_torch -D COMPONENTS=torch -D OKTOPK_TORCH_LIBRARY=OKTOPK_TORCH_LIBRARY-NOTFOUND
          -D CMAKE_FIND_LIBRARY_PREFIXES=none)

# says(EXPRESSION...): the last command did.
function(says)
  foreach(expression IN LISTS ARGN)
    if(NOT output MATCHES "${expression}")
      fault("\"${expression}\" is not in:\n${output}")
    endif()
  endforeach()
endfunction()

set(without_mpi -D CMAKE_DISABLE_FIND_PACKAGE_MPI=ON)
run(${ask} -B ${scratch}/optional -D "OPTIONAL=ucx mpi" ${without_mpi})
says("oktopk_FOUND=1" "ucx=;" "mpi=;")

# The stand-in for NCCL's header, no header of libtorch, and any libraries: whether they fit is not asked before something is compiled.
foreach(library IN ITEMS nccl torch torch_cpu c10)
  file(WRITE ${scratch}/lib${library}.so "")
endforeach()
set(with_nccl -D NCCL_LIBRARY=${scratch}/libnccl.so -D NCCL_INCLUDE_DIR=${CMAKE_CURRENT_LIST_DIR}/../nccl/stand_in)
run(${ask} -B ${scratch}/found -D "COMPONENTS=nccl torch" ${with_nccl}
    -D OKTOPK_TORCH_INCLUDE_DIR=${scratch}
    -D OKTOPK_TORCH_LIBRARY=${scratch}/libtorch.so -D OKTOPK_TORCH_CPU_LIBRARY=${scratch}/libtorch_cpu.so
    -D OKTOPK_C10_LIBRARY=${scratch}/libc10.so)
says("nccl=TRUE" "torch=TRUE" "target nccl" "target torch")
if(output MATCHES "target mpi")
  fault("components were named, and there is oktopk::mpi, which was not among them:\n${output}")
endif()

# Whoever names no component has the targets of all that is there, and hears of MPI where it is not.
configured_quietly(${ask} -B ${scratch}/all_but_mpi ${with_nccl} ${without_mpi})
says("oktopk_FOUND=1" "target nccl" "no MPI for C\\+\\+ was found, so there is no target oktopk::mpi")
if(output MATCHES "target mpi")
  fault("there is oktopk::mpi without MPI:\n${output}")
endif()
if(mpi_compiler)
  configured_quietly(${ask} -B ${scratch}/all ${with_nccl} -D MPI_CXX_COMPILER=${mpi_compiler})
  says("target mpi" "target nccl")
  configured_quietly(${ask} -B ${scratch}/mpi -D COMPONENTS=mpi -D MPI_CXX_COMPILER=${mpi_compiler})
  says("mpi=TRUE" "target mpi")
endif()
file(REMOVE_RECURSE ${scratch})
