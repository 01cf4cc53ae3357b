// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/base.hpp>
#include <oktopk/algorithm/policies.hpp>
#include <oktopk/dense/native_allreduce.hpp>
#include <oktopk/exchange/allgatherv.hpp>
#include <oktopk/select/random_k.hpp>

#include <limits>
#include <utility>

namespace oktopk {

/// Random mask (Konečný et al. 2016, "Federated learning: strategies for improving communication efficiency"; Random-k
/// with a seed that all ranks share, Stich et al. 2018, and GRACE, Xu et al. 2021): all ranks draw the same k places of
/// a call and sum the values there. No indices are sent.
///
/// `random_k` draws the places from the seed, the iteration, k and the length, which are equal on all ranks. The update
/// is the exact sum of all accumulators at these places, and every one of the k entries contributes. All other values
/// stay in the residual. The places do not depend on the values, so the density must be much higher than with a
/// selection by magnitude. With error feedback every place is drawn once in length/k calls on average.
///
/// Each rank sends the words of the communicator's own allreduce of k values, at least 2k(P-1)/P, any P. As in `dense`,
/// ranks first tell each other which object they call where another one without tags was made. Else a call without a
/// fault sends no extra messages: a rank with a bad accumulator contributes NaN, all ranks see it in the sums, and only
/// then they ask which rank has the fault. Types of values and indices are those of `Policies::format`; no other
/// policy is used.
template <class E, class Comm, class Policies = default_policies>
class random_mask : detail::checked_selection<E, Comm, Policies>,
                    public selecting_base<E, Comm, detail::with_local_selector<random_k, Policies>> {
  using base = selecting_base<E, Comm, detail::with_local_selector<random_k, Policies>>;

public:
  using typename base::entries_type;
  using typename base::update_type;
  using typename base::value_type;

  struct options {
    detail::element_count length = 0;         ///< of the accumulators
    std::optional<detail::element_count> k{}; ///< entries to select, in [0, length]; this or density
    std::optional<double> density{};          ///< k / length, in (0, 1]; k is rounded, and at least 1
    random_k::options local_select{};

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      random_k::options::each_option(how.local_select, visit);
    }
  };

  /// Collective.
  random_mask(E exec, Comm comm, options const& how)
      : base(std::move(exec), std::move(comm), how, "random_mask", [](agreement&) {}) {
    detail::add_untagged_object(comm_);
  }

  /// The lower bound of an allreduce of k values; 2(P-1) more if there is another object to compare with; 2(P-1) more
  /// if k is 0, since an empty sum cannot show a fault and ranks ask instead.
  double bound_words() const {
    int const times = (detail::confuses_objects(comm_) ? 1 : 0) + (k_ == 0 ? 1 : 0);
    double const asking = times * detail::count_gathering<Comm>::bound_words(comm_.size()).total();
    return sum_everywhere_.bound_words(k_, comm_.size()) + asking;
  }

  static allreduce_promises promises(options const& how) {
    return base::promises(how, allreduce_promises::order::any, true);
  }

  /// As in `gradient_allreduce`.
  void fail(detail::fault_report const& why) { base::fail_in(*this, why); }

  /// One iteration. Collective. The accumulator is only read.
  template <accumulator_input<typename base::index_type, value_type, E> Input>
  update_type const& operator()(Input const& accumulator) {
    return base::make_call("oktopk::random_mask", [&](call_context<E, Comm>& call, typename base::state_type& next) {
      {
        detail::cancel_on_unwind const alone(comm_); // memory may be missing on one rank
        sums_.reserve(exec_, k_);
      }
      if (detail::confuses_objects(comm_)) {
        base::gather_counts_.compare_calls(call);
      }
      entries_type const selection = base::local_selection_.run(call, accumulator, next.local).entries;
      if (call.faults) {
        detail::fill_array("oktopk::random_mask::fill", exec_, sums_.data(), k_,
                           std::numeric_limits<value_type>::quiet_NaN());
      } else {
        detail::copy_values(exec_, selection.values.data(), k_, sums_.data());
      }
      sum_everywhere_.run(exec_, comm_, sums_.data(), nullptr, k_);
      array_ref<value_type const, typename E::memory_space> const all(sums_.data(), static_cast<std::size_t>(k_));
      bool const overflows = detail::first_non_finite<E, value_type>(exec_, all) < k_;
      if (overflows || k_ == 0) {
        base::gather_counts_.run(call, 0); // throws the fault of the lowest faulty rank
      }
      entries_type const sums(selection.indices.data(), sums_.data(), k_);
      if (overflows) {
        throw detail::non_finite_in(exec_, sums, detail::fault_subject::sum).as_error(base::name_, 0, base::length_);
      }
      return update_type(sums, selection.indices, {});
    });
  }

private:
  using base::comm_;
  using base::exec_;
  using base::k_;

  native_allreduce<E, Comm, value_type> sum_everywhere_;
  detail::buffer<value_type, typename E::memory_space> sums_{"oktopk::random_mask::sums"};
};

/// Deduces from options in braces, as `ok_topk` does.
template <class E, class Comm, class Options = typename random_mask<E, Comm>::options>
random_mask(E, Comm, Options const&) -> random_mask<E, Comm>;

} // namespace oktopk
