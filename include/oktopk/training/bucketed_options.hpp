// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/training/buckets.hpp>
#include <oktopk/training/error_feedback_options.hpp>

namespace oktopk {

/// Options of `bucketed`; the same on all ranks.
struct bucketed_options {
  bucket_options plan{};             ///< which tensors are reduced together
  error_feedback_options feedback{}; ///< of each bucket
  bool overlap = true;               ///< reduces in the background where communicator and Kokkos allow it
};

} // namespace oktopk
