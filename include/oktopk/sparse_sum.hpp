// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// Sums of vectors that are sparse already, and the communicators that need no MPI.

#include <oktopk/algorithm/sparse_reduce.hpp>
#include <oktopk/algorithm/sparse_sum.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/comm/self.hpp>
#include <oktopk/core/version.hpp>
#include <oktopk/exchange/radix.hpp>
#include <oktopk/partition/uniform.hpp>
