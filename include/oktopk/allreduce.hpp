// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The main header: algorithms, their policies, and the communicators that need no MPI.

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/algorithm/gtopk.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/algorithm/paper_ok_topk.hpp>
#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/algorithm/topk_dsa.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/comm/self.hpp>
#include <oktopk/core/version.hpp>
#include <oktopk/format/coo.hpp>
#include <oktopk/partition/balanced.hpp>
#include <oktopk/partition/uniform.hpp>
#include <oktopk/select/exact.hpp>
#include <oktopk/select/reused_threshold.hpp>
#include <oktopk/sgd.hpp>
