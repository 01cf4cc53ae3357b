# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# MPI, where OKTOPK_ENABLE_MPI is ON or AUTO. Leaves ON or OFF in the variable.

# Debian and Ubuntu name the programs of each implementation with a suffix: one wrapper, its own launcher.
if(MPI_CXX_COMPILER MATCHES "mpi[a-zA-Z+]+\\.([a-z]+)$")
  find_program(MPIEXEC_EXECUTABLE mpirun.${CMAKE_MATCH_1})
endif()
oktopk_find_mpi()
if(NOT TARGET MPI::MPI_CXX)
  if(OKTOPK_ENABLE_MPI STREQUAL "AUTO")
    message(STATUS "oktopk: no MPI for C++ was found, so the target oktopk::mpi is left out")
    set(OKTOPK_ENABLE_MPI OFF)
    return()
  endif()
  message(FATAL_ERROR
    "oktopk: no MPI for C++ was found. Install one (on Debian and Ubuntu: libopenmpi-dev or libmpich-dev), name its "
    "compiler wrapper with -DMPI_CXX_COMPILER=<mpicxx>, or do without with -DOKTOPK_ENABLE_MPI=OFF.")
endif()
set(OKTOPK_ENABLE_MPI ON) # for this run of CMake; the cache keeps AUTO

# Which implementation it is, for the names of tests and the ways of its launcher.
set(oktopk_mpi_name mpi)
if(MPIEXEC_EXECUTABLE)
  execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE launcher ERROR_QUIET)
  if(launcher MATCHES "Open MPI|OpenRTE|Open-MPI")
    set(oktopk_mpi_name openmpi)
  elseif(launcher MATCHES "Intel")
    set(oktopk_mpi_name intelmpi)
  elseif(launcher MATCHES "HYDRA|MPICH")
    set(oktopk_mpi_name mpich)
  endif()
endif()
message(STATUS "oktopk: MPI ${MPI_CXX_VERSION} (${oktopk_mpi_name}), launcher ${MPIEXEC_EXECUTABLE}")

# Tests and examples start more ranks than there are cores, on one machine, perhaps as root in a container: ranks that
# wait must yield, no remote shell is sought, and shared memory must not count on reading another process's memory.
set(OKTOPK_TEST_THREADS 1 CACHE STRING
  "Threads of OpenMP of each rank in tests; 'inherited' for as many as the environment says when they run")
set(oktopk_mpi_environment OPENBLAS_NUM_THREADS=1)
if(NOT OKTOPK_TEST_THREADS STREQUAL "inherited")
  list(APPEND oktopk_mpi_environment OMP_NUM_THREADS=${OKTOPK_TEST_THREADS})
endif()
if(oktopk_mpi_name STREQUAL "openmpi")
  list(APPEND oktopk_mpi_environment
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe # the same in Open MPI 5
    PRTE_MCA_mapby=:oversubscribe                        # and in 6, which warns of the other one alone
    OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_plm=isolated OMPI_MCA_btl_vader_single_copy_mechanism=none
    OMPI_MCA_odls_base_sigkill_timeout=0) # mpirun waits a second for ranks that it ended, else
endif()
if(OKTOPK_ENABLE_SANITIZERS)
  # MPI libraries keep some memory to the end; leaks of our own show in the tests without MPI.
  list(APPEND oktopk_mpi_environment ASAN_OPTIONS=detect_leaks=0)
endif()
