// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/self_test.hpp"

#include "fuzz/run_case.hpp"

#include <Kokkos_Core.hpp>

#include <iostream>

namespace oktopk_fuzz {

int self_test(plan const& all) {
  // Not our own arguments, which Kokkos would look through.
  int no_arguments = 0;
  Kokkos::ScopeGuard const kokkos(no_arguments, nullptr);
  bool all_found = true;
  for (named_sabotage const& each : all_sabotage) {
    int had_it = 0;
    int found = 0;
    for (std::uint64_t i = 0; had_it < 20 && i < all.cases; ++i) {
      facts const& about = all.subject_of(i);
      if (each.what == sabotage::flips_bit && about.kind == family::dense) {
        continue; // whose sums may round in any order
      }
      fuzz_case const what = draw_case(about, all.seed, i, all.staged, all.within);
      if (run_case(about, what).wrong) {
        continue; // a real one
      }
      case_result const result = run_case(about, what, each.what);
      had_it += result.done.sabotaged > 0 ? 1 : 0;
      found += result.done.sabotaged > 0 && result.wrong ? 1 : 0;
    }
    std::cout << each.name << ": found in " << found << " of " << had_it << " cases" << std::endl;
    all_found = all_found && had_it > 0 && found == had_it;
  }
  return all_found ? 0 : 1;
}

} // namespace oktopk_fuzz
