// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/algorithm/paper/gathered_threshold.hpp>
#include <oktopk/core/options.hpp>
#include <oktopk/partition/balanced.hpp>
#include <oktopk/select/reused_threshold.hpp>

#include <utility>

namespace oktopk {

/// The gather of `paper_ok_topk`: balance above 4 x the mean and not otherwise.
struct paper_allgatherv : balanced_allgatherv {
  struct options {
    double ratio = 4; ///< of the largest part to the mean, above which to balance; at least 1

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("ratio", how.ratio, "largest part to mean above which the gather balances", at_least(1));
    }
  };

  paper_allgatherv() : paper_allgatherv(options{}) {}
  explicit paper_allgatherv(options how) : balanced_allgatherv({how.ratio, false, -1}) {}
};

/// Ok-Topk as published: thresholds reused for tau' = 32 iterations whatever they select, the global one from a gather
/// of all reduced entries; averaged balanced regions, tau = 64; rotated destinations in buckets; balance above 4 x the
/// mean; COO. For comparison: on re-evaluating iterations, and when a threshold has gone stale, it exceeds 6k(P-1)/P
/// words.
template <execution_space E, communicator Comm, sparse_format Format = coo<>>
class paper_ok_topk
    : public ok_topk<E, Comm, Format, unguarded_threshold, gathered_threshold, balanced, rotated, paper_allgatherv> {
  using base = ok_topk<E, Comm, Format, unguarded_threshold, gathered_threshold, balanced, rotated, paper_allgatherv>;

public:
  using options = typename base::options;

  /// Collective.
  paper_ok_topk(E exec, Comm comm, options const& how) : base(std::move(exec), std::move(comm), how, "paper_ok_topk") {}
};

/// As `ok_topk`'s.
template <execution_space E, communicator Comm, class Options = typename paper_ok_topk<E, Comm>::options>
paper_ok_topk(E, Comm, Options const&) -> paper_ok_topk<E, Comm>;

} // namespace oktopk
