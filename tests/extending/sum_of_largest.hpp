// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/local_selection.hpp>
#include <oktopk/algorithm/policies.hpp>
#include <oktopk/exchange/allgatherv.hpp>
#include <oktopk/exchange/concept.hpp>
#include <oktopk/select/kernel/source.hpp>
#include <oktopk/sparse/arithmetic.hpp>

/// The sum of every rank's k largest entries: an allgather of the selections. 2k(P-1) words, and 2(P-1) of sizes.
template <oktopk::execution_space E, oktopk::communicator Comm, oktopk::sparse_format Format = oktopk::coo<>>
class sum_of_largest : public oktopk::selecting_base<E, Comm, oktopk::with_format<Format>> {
  using base = oktopk::selecting_base<E, Comm, oktopk::with_format<Format>>;

public:
  using typename base::index_type;
  using typename base::state_type;
  using typename base::update_type;
  using typename base::value_type;

  struct options {
    std::int64_t length = 0;
    std::optional<std::int64_t> k{}; // this or density
    std::optional<double> density{};
    oktopk::exact::options local_select{};
    Format format{};
  };

  /// Collective: the ranks agree on length, k, format and selector, or throw the same error.
  sum_of_largest(E exec, Comm comm, options const& how)
      : base(std::move(exec), std::move(comm), how, "sum_of_largest"), allgatherv_(how.format) {}

  double bound_words() const {
    int const ranks = this->comm_.size();
    return (gather_counts_.bound_words(ranks) + allgatherv_.bound_words(ranks, this->k_, {0, this->length_})).total();
  }

  template <oktopk::accumulator_input<index_type, value_type, E> Input>
  update_type const& operator()(Input const& accumulator) { // collective
    return base::make_call("sum_of_largest", [&](oktopk::call_context<E, Comm>& call, state_type& next) {
      auto const mine = this->local_selection_.run(call, accumulator, next.local);
      auto const sizes = gather_counts_.run(call, mine.size()); // faults travel with the sizes
      auto const all = allgatherv_.run(call, mine, sizes);
      sum_.open(call.exec, {0, this->length_});
      std::int64_t position = 0;
      for (std::int64_t const size : sizes) {
        sum_.add(call.exec, all.slice(position, position + size)); // in the order of ranks
        position += size;
      }
      auto const sums = sum_.extract_sums(call); // notes an overflow
      call.throw_if_faulty();                    // every rank has formed the same sums
      return update_type(sums, mine.indices, {});
    });
  }

private:
  oktopk::count_gathering<Comm> gather_counts_;
  oktopk::allgatherv<E, Comm, Format> allgatherv_;
  oktopk::region_sum<index_type, value_type, E> sum_;
};
