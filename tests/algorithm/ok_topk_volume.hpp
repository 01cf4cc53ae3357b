// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "algorithm/record.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

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
  double log_ranks = 0;
  for (int reach = 1; reach < rank_count; reach *= 2) {
    log_ranks += 1;
  }
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

} // namespace oktopk_tests
