// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/case.hpp"
#include "fuzz/mutation.hpp"
#include "fuzz/record.hpp"

#include <cstdint>

namespace oktopk_fuzz {

/// What was done.
struct counts {
  std::int64_t cases = 0;
  std::int64_t calls = 0;      ///< on all ranks together each, of replicas too
  std::int64_t rank_calls = 0; ///< the same on each rank
  std::int64_t threw = 0;      ///< calls that threw as promised
  std::int64_t refusals = 0;   ///< objects, states and files that were refused as promised
  std::int64_t mutated = 0;    ///< cases into which something was put

  counts& operator+=(counts const& other) {
    cases += other.cases;
    calls += other.calls;
    rank_calls += other.rank_calls;
    threw += other.threw;
    refusals += other.refusals;
    mutated += other.mutated;
    return *this;
  }
};

struct case_result {
  verdict wrong;
  int at_call = -1; ///< the call that it was seen in
  counts done;
};

/// Runs a case of a subject, whose name is in `about`, on ranks of this process.
case_result run_case(facts const& about, fuzz_case const& what, mutation put_in_on_purpose = mutation::none);

} // namespace oktopk_fuzz
