// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/call_context.hpp>
#include <oktopk/core/cost.hpp>
#include <oktopk/core/workspace.hpp>
#include <oktopk/dense/rabenseifner.hpp>
#include <oktopk/exchange/concept.hpp>
#include <oktopk/exchange/result_sums.hpp>
#include <oktopk/format/concept.hpp>
#include <oktopk/sparse/arithmetic.hpp>

#include <string>

namespace oktopk {

namespace detail {

template <class Indices, class Accumulator, gradient_value Value>
struct value_gathering {
  Indices indices;
  Accumulator accumulator;
  Value* values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    values[i] = accumulator(static_cast<std::int64_t>(indices(i)));
  }
};

} // namespace detail

/// What a result has at its indices: the sums of all that the ranks have there, selected or not.
///
/// One more dense sum, of a value an entry of the result, by `rabenseifner`, which has its words and messages: 2k(P-1)/P
/// words where P is a power of two. So residuals are 0 at all indices of the result, and none waits for a rank to select it.
/// Formats that round values do not round these. A sum that is not finite is an `error` on every rank.
struct full_sums {
  struct options {
    bool fill = true;

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("fill", how.fill, "sums of all values at the indices of the result, not of the selected ones alone");
    }
  };

  full_sums() = default;
  explicit full_sums(options const& how) : fills(how.fill) {}

  static constexpr bool may_fill = true;
  std::string describe() const { return fills ? "full" : "selected"; }
  bool fills = true;

  template <execution_space E, communicator Comm, sparse_format Format>
  class step {
    using index_type = typename Format::index_type;
    using value_type = typename Format::value_type;
    using memory_space = typename E::memory_space;

  public:
    explicit step(full_sums const& how) : fills_(how.fills) {}

    /// Collective. `values` are all of this rank's. `result` is the same on all ranks; gives the same indices with the sums,
    /// valid until the next run.
    template <class Values>
    entries_of<Format, E> run(call_context<E, Comm>& call, Values const& values, entries_of<Format, E> const& result) {
      {
        detail::cancel_on_unwind const alone(call.comm); // room may be missing on one rank
        values_.reserve(call.exec, result.size());
      }
      using gathering = detail::value_gathering<decltype(result.indices), Values, value_type>;
      Kokkos::parallel_for("oktopk::full_sums::gather", detail::index_range<E>(call.exec, 0, result.size()),
                           gathering{result.indices, values, values_.data()});
      sum_.run(call.exec, call.comm, values_.data(), nullptr, result.size());
      array_ref<value_type const, memory_space> const sums(values_.data(), static_cast<std::size_t>(result.size()));
      std::int64_t const bad = detail::first_non_finite<E, value_type>(call.exec, sums);
      call.note(detail::fault_at<E, index_type>(call.exec, result.indices, bad, detail::fault_subject::sum));
      call.throw_if_faulty(); // all ranks have the same sums
      return {result.indices.data(), values_.data(), result.size()};
    }

    double bound_words(int ranks, std::int64_t entries) const { return fills_ ? sum_.bound_words(entries, ranks) : 0; }

    static detail::call_cost expected_cost(full_sums const& how, int ranks, double k) {
      return how.fills ? detail::call_cost{.messages = 2.0 * detail::doubling_steps(ranks),
                                           .bytes = 2 * sizeof(value_type) * k * (ranks - 1) / ranks}
                       : detail::call_cost();
    }

  private:
    bool fills_;
    detail::buffer<value_type, memory_space> values_{"oktopk::full_sums::values"};
    rabenseifner<E, Comm, value_type> sum_;
  };
};

} // namespace oktopk
