// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/core/options.hpp>
#include <oktopk/partition/balanced.hpp>
#include <oktopk/select/exact.hpp>
#include <oktopk/select/kernel/compact.hpp>
#include <oktopk/select/reused_threshold.hpp>

#include <utility>

namespace oktopk {

/// The paper's global selection exactly as published (Algorithm 1, lines 9 to 12): every tau' iterations all ranks
/// gather all reduced entries and take the k-th magnitude of them. In between the threshold is reused, however many
/// entries it selects.
///
/// On a re-evaluating iteration this sends the union of all selections, several times the bound of the other selectors.
/// It is for comparison. Needs a group that gathers (`gathering_group`), so it cannot select on one rank alone.
struct gathered_threshold : selector_base {
  using options = unguarded_threshold::options;

  template <gradient_value Value>
  using state = reused_threshold::state<Value>;

  gathered_threshold() : gathered_threshold(options{}) {}
  explicit gathered_threshold(options how) : options_(how) {}

  static std::string name() { return "gathered_threshold"; }
  std::string describe() const { return detail::describe_options(name(), options_); }
  std::string problem() const { return detail::fault_of_options(name(), options_); }
  static bool bounded() { return false; }
  static bool gathers_candidates() { return true; }
  selection_promises promises() const { return {.rule = describe(), .largest = true}; }
  static std::int64_t capacity(std::int64_t, std::int64_t length) { return length; }

  template <execution_space E, gradient_index Index, gradient_value Value, class Group, selection_source Source>
    requires detail::gathering_group<Group, E, Index, Value>
  selection<Index, Value, typename E::memory_space> select(selection_context<E, Index, Value, Group> const& context,
                                                           Source const& from, state<Value>& carried) const {
    auto const& [exec, k, iteration, group, workspace] = context;
    std::int64_t count = 0;
    bool reevaluated = false;
    from.materialize(exec);
    if (k > 0) {
      reevaluated = carried.evaluated < 0 || iteration - carried.evaluated >= options_.tau_prime;
      if (reevaluated) {
        detail::candidates<Index, Value, typename E::memory_space> const all(group.gather(exec, from.materialized()));
        if (all.size() > 0) { // without entries there is no threshold
          carried.threshold = detail::magnitude_from_bits<Value>(
              detail::kth_magnitude<E, Index, Value>(exec, all, k, workspace).threshold);
          carried.evaluated = iteration;
        }
      }
      workspace.reserve(exec, from.size());
      count = detail::compact(exec, from.materialized(), detail::magnitude_bits(carried.threshold), workspace);
    }
    return {workspace.entries(count), group.gather_counts(count), reevaluated};
  }

private:
  options options_;
};

namespace detail {

/// The gather of `paper_ok_topk`: balances only if the largest part exceeds 4 x the mean.
struct paper_allgatherv : balanced_allgatherv {
  struct options {
    double ratio = 4; ///< largest part divided by the mean, above which the gather balances; at least 1

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("ratio", how.ratio, "largest part to mean above which the gather balances", at_least(1));
    }
  };

  paper_allgatherv() : paper_allgatherv(options{}) {}
  explicit paper_allgatherv(options how) : balanced_allgatherv({how.ratio, false, -1}) {}
};

} // namespace detail

/// The paper's choice in every step: thresholds reused for tau' = 32 iterations however many entries they select, the
/// global one from a gather of all reduced entries; averaged balanced regions, tau = 64; rotated destinations in
/// buckets; balance above 4 x the mean; COO.
struct paper_policies : default_policies {
  using local_selector = unguarded_threshold;
  using partitioner = balanced;
  using deliverer = search_and_gather<gathered_threshold, detail::paper_allgatherv>;
};

/// Ok-Topk as published, under a name of its own. For comparison: it exceeds 6k(P-1)/P words on re-evaluating
/// iterations, and when a reused threshold no longer fits the gradients.
template <class E, class Comm, class Policies = paper_policies>
class paper_ok_topk : public ok_topk<E, Comm, Policies> {
  using base = ok_topk<E, Comm, Policies>;

public:
  using options = typename base::options;

  /// Collective.
  paper_ok_topk(E exec, Comm comm, options const& how) : base(std::move(exec), std::move(comm), how, "paper_ok_topk") {}
};

/// Deduces from options in braces, as `ok_topk` does.
template <class E, class Comm, class Options = typename paper_ok_topk<E, Comm>::options>
paper_ok_topk(E, Comm, Options const&) -> paper_ok_topk<E, Comm>;

} // namespace oktopk
