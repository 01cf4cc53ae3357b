// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#define OKTOPK_COMPILE_MPI template
#include <oktopk/allreduce.hpp>
