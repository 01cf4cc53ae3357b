// expect: error.*oktopk: <mpi.h> was not found; link oktopk::mpi
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The MPI adapter in a program that does not link the component: the compiler must name what to link.

#include <oktopk/mpi.hpp>
