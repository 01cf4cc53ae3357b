// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/base.hpp>
#include <oktopk/algorithm/local_selection.hpp>
#include <oktopk/algorithm/options.hpp>
#include <oktopk/exchange/allgatherv.hpp>
#include <oktopk/exchange/step.hpp>
#include <oktopk/format/coo.hpp>
#include <oktopk/select/exact.hpp>
#include <oktopk/select/kernel/non_finite.hpp>
#include <oktopk/sparse/region_sum.hpp>

/// The sum of every rank's k largest entries: an allgather of the selections. 2k(P-1) words, and 2(P-1) of sizes.
template <oktopk::execution_space E, oktopk::communicator Comm, oktopk::sparse_format Format = oktopk::coo<>>
class sum_of_largest
    : public oktopk::algorithm_base<E, Comm, typename Format::index_type, typename Format::value_type> {
  using base = oktopk::algorithm_base<E, Comm, typename Format::index_type, typename Format::value_type>;

public:
  using typename base::index_type;
  using typename base::update_type;
  using typename base::value_type;
  using state_type = oktopk::selection_state<value_type, oktopk::exact>;

  struct options {
    std::int64_t length = 0;
    std::optional<std::int64_t> k{}; // this or density
    std::optional<double> density{};
  };

  /// Collective: the ranks agree on length, k, format and selector, or throw the same error.
  sum_of_largest(E exec, Comm comm, options const& how)
      : base(std::move(exec), std::move(comm), how.length), local_selection_(oktopk::exact()) {
    this->k_ = oktopk::detail::agree_on_selection<Format>(name().data(), this->length_, how.k, how.density, Format(),
                                                          oktopk::exact(), this->comm_, [](oktopk::agreement&) {});
  }

  std::string_view name() const { return "sum_of_largest"; }

  double bound_words() const {
    int const ranks = this->comm_.size();
    return (gather_counts_.bound_words(ranks) + allgatherv_.bound_words(ranks, this->k_, {0, this->length_})).total();
  }

  state_type const& state() const { return state_; }

  void restore(state_type const& saved) { // collective
    oktopk::detail::agree_on_selection_state(std::string(name()), saved, this->comm_);
    state_ = saved;
  }

  template <oktopk::accumulator_input<index_type, value_type, E> Input>
  update_type const& operator()(Input const& accumulator) { // collective
    using context = oktopk::call_context<E, Comm>;
    return base::make_call(name(), state_.iteration, [&](context& call) -> update_type const& {
      state_type next = state_; // kept when the call succeeds
      auto const mine = local_selection_.run(call, accumulator, next.local);
      auto const sizes = gather_counts_.run(call, mine.size()); // faults travel with the sizes
      auto const all = allgatherv_.run(call, mine, sizes);
      sum_.open(call.exec, {0, this->length_});
      std::int64_t position = 0;
      for (std::int64_t const size : sizes) {
        sum_.add(call.exec, all.slice(position, position + size)); // in the order of ranks
        position += size;
      }
      auto const sums = oktopk::detail::extract_sums(call, sum_); // notes an overflow
      call.throw_if_faulty();                                     // every rank has formed the same sums
      return base::finish_call(call, state_, std::move(next), update_type(sums, mine.indices, {}));
    });
  }

private:
  state_type state_;
  oktopk::local_selection<E, Format, oktopk::exact> local_selection_;
  oktopk::count_gathering<Comm> gather_counts_;
  oktopk::allgatherv<E, Comm, Format> allgatherv_;
  oktopk::region_sum<index_type, value_type, E> sum_;
};
