// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Open MPI's header of this name does not compile beside another mpi.h, as that of MPI's standard ABI.
#error "mpi-ext.h is included with another MPI than Open MPI"
