// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/exchange/global_scope.hpp>
#include <oktopk/select/reused_threshold.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace oktopk {

/// The paper's global selection to the letter (Algorithm 1, lines 9 to 12): every tau' iterations all ranks gather all
/// reduced entries and take the k-th magnitude of them; in between the threshold is reused, whatever it selects.
///
/// On a re-evaluating iteration this sends the union of all selections, several times the bound of the others; it is
/// here for comparison. Works in a `global_scope` only.
struct gathered_threshold {
  struct options {
    std::int64_t tau_prime = 32; ///< iterations from one re-evaluation to the next, at least 1
  };

  template <gradient_value Value>
  using state = reused_threshold::state<Value>;

  gathered_threshold() : gathered_threshold(options{}) {}
  explicit gathered_threshold(options how) : options_(how) {}

  static std::string name() { return "gathered_threshold"; }
  std::string describe() const { return name() + " (tau' " + std::to_string(options_.tau_prime) + ")"; }
  std::string fault() const {
    return options_.tau_prime < 1
               ? "tau' = " + std::to_string(options_.tau_prime) + " of gathered_threshold is not positive"
               : std::string();
  }
  static bool bounded() { return false; }
  static std::int64_t capacity(std::int64_t, std::int64_t length) { return length; }

  template <execution_space E, selection_source Source, selection_scope Scope>
  selected select(E const& exec, Source const& from, std::int64_t k, std::int64_t iteration,
                  state<typename Source::value_type>& carried, Scope& scope,
                  selection_workspace<typename Source::index_type, typename Source::value_type, E>& workspace) const {
    using value_type = typename Source::value_type;
    using all_candidates = candidates<typename Source::index_type, value_type, typename E::memory_space>;
    selected result;
    if (k > 0) {
      result.reevaluated = carried.evaluated < 0 || iteration - carried.evaluated >= options_.tau_prime;
      if (result.reevaluated) {
        auto const all = scope.gather(from);
        if (all.size() > 0) { // of nothing there is no threshold
          auto const found = kth_magnitude(exec, all_candidates{all.values, all.indices}, k, workspace);
          carried.threshold = detail::magnitude_from_bits<value_type>(found.threshold);
          carried.evaluated = iteration;
        }
      }
      workspace.reserve(exec, from.size());
      result.count = compact(exec, from, keep<value_type>{detail::magnitude_bits(carried.threshold)}, workspace);
    }
    result.total = scope.share(result.count);
    return result;
  }

private:
  options options_;
};

} // namespace oktopk
