// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The flags that this file is compiled with are those for the pieces of the pages.
#include <oktopk/mpi.hpp>
