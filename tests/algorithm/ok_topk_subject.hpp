// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "algorithm/suite.hpp"
#include "support/policies.hpp"

#include <oktopk/algorithm/ok_topk.hpp>

// What is expected of an ok_topk: its words, call by call, and its results.
namespace oktopk_tests {

/// What bounds the words of an ok_topk.
struct volume_terms {
  bool sizes_announced = false;     ///< the local selector has no capacity
  bool candidates_gathered = false; ///< the global threshold comes from a gather of all candidates: no bound then
  bool gather_bounded = true;       ///< balanced_allgatherv with `bound_sent`
};

inline std::string more_than(char const* what, double is, double most) {
  return is <= most ? std::string()
                    : std::string(what) + ": " + std::to_string(is) + " words sent, at most " + std::to_string(most);
}

/// Whatever the accumulators are, a call sends no more than this, phase by phase. With L and G entries selected locally
/// and globally, e words an entry, R = ceil(log2 P):
///   reduce     e L               what is selected, and at most all of it travels
///              + 2 (P-1)         a header of two words a message
///   balance,   2 e G (P-1)/P     each of the two no more than all entries but one part
///   gather     + e (P-1)         parts differ by one entry
///              + P-1             parts start at multiples of two words, where e is 3
///   control    2 x 2 (P-1)       the sizes of the parts; twice where a threshold has gone stale
///              + 2 (P-1)         announced sizes, where the local selector has no capacity
///   threshold  max(3k/8, least)  histograms of the candidates, where the global threshold is evaluated; the least is
///                                8 digits of 16 counts of half a word for 31 bits, twice as many for 63; times R
///              + max(k/8, least) of a range of 24 bits or 56, where it is looked for around the last one first
///              + max(k/16, 8 (P-1))  the candidates that the histograms leave undecided
///              + 4 (P-1)         how many each rank has beside them
///   partition  3 x 2 P R         the sum of P boundaries and twice of P counts, where regions are decided
template <class Subject>
std::string ok_topk_volume_fault(record_of<Subject> const& call, int rank_count, shape what, volume_terms terms) {
  using oktopk::phase;
  double const ranks = rank_count;
  double const log_ranks = std::bit_width(static_cast<unsigned>(rank_count - 1));
  double const entry_words = (sizeof(typename Subject::value_type) + sizeof(typename Subject::index_type)) / 4.0;
  auto const local = static_cast<double>(call.statistics.local_selected);
  auto const global = static_cast<double>(call.statistics.global_selected);
  auto const k = static_cast<double>(what.k);

  std::string fault = more_than("reduce", call.of(phase::reduce).words_sent(), entry_words * local + 2 * (ranks - 1));
  double const rounding = entry_words == 3 ? 1 : 0;
  double even_gather = 2 * entry_words * global * (ranks - 1) / ranks + (entry_words + rounding) * (ranks - 1);
  if (!terms.gather_bounded) { // uneven parts are forwarded as they are: in each step everything at most
    even_gather = std::max(even_gather, log_ranks * entry_words * global);
  }
  bool const gathered_twice = terms.candidates_gathered && call.statistics.global_reevaluated;
  if (!gathered_twice) {
    fault += more_than("balance and gather", call.of(phase::balance).words_sent() + call.of(phase::gather).words_sent(),
                       even_gather);
  }
  fault += more_than("control", call.of(phase::control).words_sent(), (ranks - 1) * (terms.sizes_announced ? 6 : 4));
  bool const single = sizeof(typename Subject::value_type) == 4;
  double const most = std::max(3 * k / 8, (single ? 64 : 128) * log_ranks) +
                      std::max(k / 8, (single ? 48 : 112) * log_ranks) + std::max(k / 16, 8 * (ranks - 1)) +
                      4 * (ranks - 1);
  if (!call.statistics.global_reevaluated) {
    fault += more_than("threshold", call.of(phase::threshold).words_sent(), 0);
  } else if (!terms.candidates_gathered) {
    fault += more_than("threshold", call.of(phase::threshold).words_sent(), what.k == 0 ? 0 : most);
  }
  fault += more_than("partition", call.of(phase::partition).words_sent(),
                     call.statistics.repartitioned ? 3 * 2 * ranks * log_ranks : 0);

  // One message per peer in the first phase, and P + 2R in the second (equation 3), R more for each further choice.
  auto const reduce = call.of(phase::reduce);
  if (reduce.messages_sent != rank_count - 1 || reduce.messages_received != rank_count - 1) {
    fault += "reduce: " + std::to_string(reduce.messages_sent) + " messages sent, " +
             std::to_string(reduce.messages_received) + " received; one per peer is expected";
  }
  auto const second = call.of(phase::balance).messages_sent + call.of(phase::gather).messages_sent;
  if (static_cast<double>(second) > ranks + (gathered_twice ? 2 : 1) * log_ranks) {
    fault += "balance and gather: " + std::to_string(second) + " messages sent";
  }
  return fault;
}

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

/// A base of subjects of ok_topk, which say by `Self::rules` how they are to choose and to partition, and by
/// `Self::options(length, k)` with which periods.
template <class Self, class Policies>
struct ok_topk_subject : subject_of<typename Policies::format::value_type, typename Policies::format::index_type> {
  template <class Comm>
  using algorithm = oktopk::ok_topk<execution, Comm, Policies>;

  static constexpr volume_terms terms{};

  static std::string volume_fault(record_of<ok_topk_subject> const& call, int ranks, shape what) {
    return ok_topk_volume_fault<ok_topk_subject>(call, ranks, what, Self::terms);
  }
  static std::string reference_fault(run_of<ok_topk_subject> const& run, shape what) {
    return ok_topk_reference_fault<ok_topk_subject>(run, what, Self::rules);
  }
};

} // namespace oktopk_tests
