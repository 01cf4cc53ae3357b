// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/base.hpp>
#include <oktopk/algorithm/policies.hpp>
#include <oktopk/core/cost.hpp>
#include <oktopk/exchange/allgatherv.hpp>
#include <oktopk/exchange/losses.hpp>
#include <oktopk/select/gaussian.hpp>
#include <oktopk/sparse/region_sum.hpp>

#include <algorithm>
#include <utility>

namespace oktopk {

/// TopkA: allgather of the local selections, summed on every rank (SparCML's SSAR_Allgather, Renggli et al. 2019; Shi
/// et al. 2019; Table 1 of the paper).
///
/// The update is the exact sum of all ranks' selections: up to kP entries, every selected entry contributes. For
/// selections of k each rank sends 2k(P-1) words in ceil(log2 P) messages, and 2(P-1) words of sizes in as many: any P.
/// The volume grows with P; from P about n/k on it exceeds that of a dense allreduce. Holds one value and one bit per
/// element of the gradient.
template <class E, class Comm, class Policies = default_policies>
class topk_a : detail::checked_selection<E, Comm, Policies>, public selecting_base<E, Comm, Policies> {
  using base = selecting_base<E, Comm, Policies>;
  using typename base::format_type;

public:
  using typename base::entries_type;
  using typename base::index_type;
  using typename base::update_type;
  using typename base::value_type;

  struct options {
    detail::element_count length = 0;         ///< of the accumulators
    std::optional<detail::element_count> k{}; ///< entries to select, in [0, length]; this or density
    std::optional<double> density{};          ///< k / length, in (0, 1]; k is rounded, and at least 1
    typename Policies::local_selector::options local_select{};
    format_type format{}; ///< of the entries on the wire

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("format", how.format, "entries on the wire");
      visit("local", how.local_select, "selection of a rank's own entries");
    }
  };

  /// Collective.
  topk_a(E exec, Comm comm, options const& how) : topk_a(std::move(exec), std::move(comm), how, "topk_a") {}

  /// 2k(P-1) for selections of k and entries of two words, and 2(P-1) of sizes; P-1 words of rounding if an entry is no
  /// multiple of 8 bytes. If the selector has no bound, the largest selection of a rank in the last call takes the
  /// place of k; it is 0 before the first call.
  double bound_words() const {
    std::int64_t const most = local_selection_.selector().bounded() ? base::k_ : largest_selection_;
    return (detail::count_gathering<Comm>::bound_words(comm_.size()) +
            allgatherv_.bound_words(comm_.size(), most, {0, length_}))
        .total(comm_);
  }

  /// The work of a steady call, which merges P selections in ceil(log2 P) passes.
  static detail::call_cost expected_cost(options const& how, int ranks) {
    double const k = detail::expected_k(how);
    auto const n = static_cast<double>(how.length);
    detail::call_cost const selecting{
        .messages = detail::doubling_steps(ranks), .bytes = 8.0 * (ranks - 1), .selected = n, .passes = 1};
    double const steps = detail::doubling_steps(ranks);
    detail::call_cost const merging{.decoded = k * ranks * steps, .passes = steps};
    return selecting + encoded_allgatherv<E, Comm, format_type>::expected_cost(how.format, ranks, n, k) + merging;
  }

  static allreduce_promises promises(options const& how) {
    return base::promises(how, allreduce_promises::order::of_ranks, true);
  }

  /// As in `gradient_allreduce`.
  void fail(detail::fault_report const& why) { base::fail_in(*this, why); }

  /// One iteration. Collective. The accumulator is only read.
  template <accumulator_input<index_type, value_type, E> Input>
  update_type const& operator()(Input const& accumulator) {
    return base::make_call("oktopk::topk_a", [&](call_context<E, Comm>& call, typename base::state_type& next) {
      entries_type const selection = local_selection_.run(call, accumulator, next.local).entries;
      std::span<std::int64_t const> const sizes = gather_counts_.run(call, selection.size());
      largest_selection_ = *std::max_element(sizes.begin(), sizes.end());
      entries_type const selections = allgatherv_.run(call, selection, sizes);
      entries_type const sums = sum_of_parts(call, selections, sizes);
      entries_type const losses = rounding_losses_.run(call, selection, selections, sizes);
      return update_type(sums, selection.indices, losses);
    });
  }

protected:
  topk_a(E exec, Comm comm, options const& how, char const* name)
      : base(std::move(exec), std::move(comm), how, name), allgatherv_(how.format), rounding_losses_(how.format) {}

private:
  using base::comm_;
  using base::gather_counts_;
  using base::length_;
  using base::local_selection_;

  // Every rank forms the same sums, in the order of the ranks, and sees the same overflow.
  entries_type sum_of_parts(call_context<E, Comm>& call, entries_type const& all, std::span<std::int64_t const> sizes) {
    sum_.open(call.exec, {0, length_});
    std::int64_t position = 0;
    for (std::int64_t const size : sizes) {
      sum_.add(call.exec, all.slice(position, position + size));
      position += size;
    }
    auto const [sums, overflow] = sum_.extract_checked(call.exec);
    call.note(overflow);
    call.throw_if_faulty();
    return sums;
  }

  std::int64_t largest_selection_ = 0;
  encoded_allgatherv<E, Comm, format_type> allgatherv_;
  detail::rounding_losses<E, format_type> rounding_losses_;
  region_sum<index_type, value_type, E> sum_;
};

/// Gaussian-k (Shi et al. 2019, "Understanding top-k sparsification in distributed deep learning"): a threshold from
/// mean and standard deviation, then as `topk_a`.
///
/// The update is the exact sum of the ranks' selections. Each may have far more or fewer entries than k: the cost is
/// that of `topk_a` with the count that the Gaussian threshold selects. All other values stay in the residual.
template <class E, class Comm, class Format = coo<>>
class gaussian_k : public topk_a<E, Comm, detail::with_local_selector<gaussian, with_format<Format>>> {
  using base = topk_a<E, Comm, detail::with_local_selector<gaussian, with_format<Format>>>;

public:
  using options = typename base::options;

  /// Collective.
  gaussian_k(E exec, Comm comm, options const& how) : base(std::move(exec), std::move(comm), how, "gaussian_k") {}
};

/// These deduce from options in braces, as `ok_topk` does.
template <class E, class Comm, class Options = typename topk_a<E, Comm>::options>
topk_a(E, Comm, Options const&) -> topk_a<E, Comm>;

template <class E, class Comm, class Options = typename gaussian_k<E, Comm>::options>
gaussian_k(E, Comm, Options const&) -> gaussian_k<E, Comm>;

} // namespace oktopk
