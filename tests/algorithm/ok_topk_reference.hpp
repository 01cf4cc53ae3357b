// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "algorithm/record.hpp"
#include "support/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace oktopk_tests {

enum class rule {
  exact,     ///< the k largest in every iteration
  guarded,   ///< reused for a while, evaluated anew when the count leaves [2/3 k, 3/2 k]
  unguarded, ///< reused for a while, whatever it selects
  chunked,   ///< k in all from chunks of 64
};

/// How an ok_topk is to choose and to partition.
struct ok_topk_rules {
  rule local = rule::guarded;
  rule global = rule::guarded;
  bool global_keeps_ties = false; ///< evaluation keeps all entries that tie with the k-th
  int tau_prime = 1;
  int tau = 0; ///< regions are decided every tau iterations; once where 0
};

/// The largest of each chunk of 64, k in all: as many of each as it has values in proportion, the last chunk rounded
/// down.
template <class Value>
sparse_vector<Value> top_of_chunks(sparse_vector<Value> const& from, std::int64_t k) {
  constexpr std::int64_t chunk = 64;
  std::int64_t const whole = from.size() / chunk;
  std::int64_t const rest = from.size() % chunk;
  std::int64_t const last = rest > 0 ? k * rest / from.size() : 0;
  sparse_vector<Value> chosen;
  for (std::int64_t which = 0; which * chunk < from.size(); ++which) {
    sparse_vector<Value> own;
    for (std::int64_t i = which * chunk; i < std::min((which + 1) * chunk, from.size()); ++i) {
      own.push_back(from.indices[static_cast<std::size_t>(i)], from.values[static_cast<std::size_t>(i)]);
    }
    auto const best = top(own, which == whole ? last : (which + 1) * (k - last) / whole - which * (k - last) / whole);
    for (std::size_t i = 0; i < best.indices.size(); ++i) {
      chosen.push_back(best.indices[i], best.values[i]);
    }
  }
  return chosen;
}

/// A threshold with its age, followed from call to call.
template <class Value>
struct followed_threshold {
  Value threshold = 0;
  int evaluated = -1;

  /// What a selector must choose from these entries; one that `trims` leaves out again what it has beyond k.
  /// `reevaluated` is what it says about itself, and is checked; `carried` is the threshold it carries on.
  sparse_vector<Value> choose(rule how, bool keeps_ties, bool trims, int tau_prime, sparse_vector<Value> const& from,
                              std::int64_t k, int iteration, bool reevaluated, std::vector<Value> const& carried,
                              std::string& fault) {
    if (k == 0) {
      return {};
    }
    if (how == rule::chunked) {
      return top_of_chunks(from, k);
    }
    sparse_vector<Value> const reused = at_least(from, threshold);
    bool const in_band = 3 * reused.size() >= 2 * k && 2 * reused.size() <= 3 * k;
    bool const due = how == rule::exact || evaluated < 0 || iteration - evaluated >= tau_prime;
    if (reevaluated != (due || (how == rule::guarded && !in_band))) {
      fault = std::string("the threshold was ") + (reevaluated ? "" : "not ") + "evaluated; it would select " +
              std::to_string(reused.size());
    }
    if (!reevaluated) {
      return trims && how == rule::guarded && reused.size() > k ? top(reused, k) : reused;
    }
    sparse_vector<Value> const best = top(from, k);
    evaluated = iteration;
    if (!carried.empty() && best.size() < k && (best.size() == 0 || carried.front() <= smallest(best))) {
      threshold = carried.front(); // any that keeps all there are
    } else if (best.size() > 0) {
      threshold = smallest(best);
    }
    if (!carried.empty() && std::fabs(carried.front()) != threshold) {
      fault = "another threshold than the reference";
    }
    return keeps_ties ? at_least(from, threshold) : best;
  }
};

/// Follows a run of an ok_topk call by call and gives the first thing that differs from Topk(sum of Topk(accumulator)):
/// with exact selectors in every iteration, else by the thresholds that the run must have had.
template <class Subject>
std::string ok_topk_reference_fault(run_of<Subject> const& run, shape what, ok_topk_rules rules) {
  using value_type = typename Subject::value_type;
  std::vector<followed_threshold<value_type>> local(run.size());
  followed_threshold<value_type> global;
  std::vector<std::int64_t> boundaries;
  for (int iteration = 0; iteration < what.iterations; ++iteration) {
    auto const now = static_cast<std::size_t>(iteration);
    auto const& call = run[0][now];
    std::string fault;
    std::string const where = "iteration " + std::to_string(iteration) + ": ";

    bool const due = rules.tau > 0 ? iteration % rules.tau == 0 : iteration == 0;
    if (call.statistics.repartitioned != due || (!due && call.boundaries != boundaries)) {
      return where + "the regions were decided when they were not due, or not when they were";
    }
    boundaries = call.boundaries;

    std::vector<sparse_vector<value_type>> parts;
    for (std::size_t rank = 0; rank < run.size(); ++rank) {
      auto const& mine = run[rank][now];
      parts.push_back(local[rank].choose(rules.local, false, true, rules.tau_prime, all_entries(mine.accumulator),
                                         what.k, iteration, mine.statistics.local_reevaluated, mine.local_threshold,
                                         fault));
      if (!fault.empty()) {
        return where + "rank " + std::to_string(rank) + ": local: " + fault;
      }
      if (mine.statistics.local_selected != parts.back().size()) {
        return where + "rank " + std::to_string(rank) + " selected " + std::to_string(mine.statistics.local_selected) +
               ", expected " + std::to_string(parts.back().size());
      }
    }
    sparse_vector<value_type> const chosen =
        global.choose(rules.global, rules.global_keeps_ties, false, rules.tau_prime, sum_by_regions(parts, boundaries),
                      what.k, iteration, call.statistics.global_reevaluated, call.global_threshold, fault);
    if (!fault.empty()) {
      return where + "global: " + fault;
    }
    if (!std::equal(call.indices.begin(), call.indices.end(), chosen.indices.begin(), chosen.indices.end())) {
      return where + "other indices than the reference, " + std::to_string(call.indices.size()) + " instead of " +
             std::to_string(chosen.indices.size());
    }
    if (bits(call.values) != bits(chosen.values)) {
      return where + "other values than the reference";
    }
    for (std::size_t rank = 0; rank < run.size(); ++rank) {
      std::vector<typename Subject::index_type> contributed;
      for (std::int64_t const index : parts[rank].indices) {
        if (std::binary_search(chosen.indices.begin(), chosen.indices.end(), index)) {
          contributed.push_back(static_cast<typename Subject::index_type>(index));
        }
      }
      if (run[rank][now].contributed != contributed) {
        return where + "rank " + std::to_string(rank) + " contributed other indices than the reference";
      }
    }
  }
  return {};
}

} // namespace oktopk_tests
