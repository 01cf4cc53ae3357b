// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The headers that pieces of the documentation take for granted.
#include <oktopk/allreduce.hpp>
#include <oktopk/mpi.hpp>
#include <oktopk/sgd.hpp>

#include <cstdint>
#include <fstream>
