// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/base.hpp>
#include <oktopk/core/cost.hpp>
#include <oktopk/dense/native_allreduce.hpp>
#include <oktopk/exchange/allgatherv.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace oktopk {

namespace detail {

/// The state of every dense scheme between two iterations; a plain value.
struct dense_state : call_state {
  static std::string type_name() { return "dense"; }

  template <class State, class Visit>
  static void each_part(State& state, Visit& visit) {
    visit(state.iteration);
  }
};

/// The name of a dense scheme, if it differs from that of its allreduce. Recorded results of users have these names.
template <class Reduce>
inline constexpr std::string_view scheme_name{};

template <class E, class Comm, class Value>
inline constexpr std::string_view scheme_name<native_allreduce<E, Comm, Value>> = "dense";

template <gradient_index Index>
struct index_numbering {
  Index* indices;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const { indices[i] = static_cast<Index>(i); }
};

} // namespace detail

/// The dense allreduce of the whole accumulator. By default it is the communicator's own, with which sparse schemes are
/// compared; `Reduce` may be any other of `dense/`.
///
/// The update has every index, and every entry contributes. The parts of values that a lossy algorithm rounds off are
/// returned. The cost is that of `Reduce`. Sums have no tag of their object. So where another `dense` object,
/// of any kind, was made on the communicator, all ranks first tell each other which one they
/// call, in ceil(log2 P) messages and 2(P-1) words. Else a call without a fault sends no extra messages: a rank with a
/// bad accumulator contributes NaN, all ranks see it in the result, and only then they ask which rank has the fault.
template <execution_space E, communicator Comm, gradient_value Value = float, gradient_index Index = std::int32_t,
          class Reduce = native_allreduce<E, Comm, Value>>
  requires dense_allreduce<Reduce, E, Comm, Value>
class dense : public detail::algorithm_base<E, Comm, Index, Value, detail::dense_state> {
  using base = detail::algorithm_base<E, Comm, Index, Value, detail::dense_state>;

public:
  using typename base::memory_space;
  using typename base::update_type;

  struct options {
    detail::element_count length = 0;     ///< of the accumulators
    typename Reduce::options reduce = {}; ///< options of `Reduce`, if it has any

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("reduce", how.reduce, "options of the collective");
    }
  };

  /// Collective.
  dense(E exec, Comm comm, options const& how)
      : base(std::move(exec), std::move(comm), how.length, "dense"), reduce_(detail::configured<Reduce>(how.reduce)) {
    name_ = detail::scheme_name<Reduce>.empty() ? reduce_.name() : detail::scheme_name<Reduce>;
    agreement terms(name_);
    detail::check_length<Index>(length_, terms);
    if constexpr (!std::is_same_v<typename Reduce::options, detail::without_options::options>) {
      detail::check_policy("reduce", reduce_, terms);
    }
    terms.fact("length", length_).fact("value bits", 8 * sizeof(Value)).fact("index bits", 8 * sizeof(Index));
    terms.check_on(comm_);
    detail::add_untagged_object(comm_);
    detail::cancel_on_unwind const alone(comm_); // room may be missing on one rank
    sums_.reserve(exec_, length_);
    lost_.reserve(exec_, Reduce::lossless ? 0 : length_);
    indices_.reserve(exec_, length_);
    Kokkos::parallel_for("oktopk::dense::indices", detail::index_range<E>(exec_, 0, length_),
                         detail::index_numbering<Index>{indices_.data()});
  }

  /// The bound of `Reduce`. 2(P-1) more if there is another object to compare with; 2(P-1) more if the length is 0,
  /// since an empty sum cannot show a fault and ranks ask instead; 2(P-1) more if its losses may overflow; a few more
  /// if ranks may have different results.
  double bound_words() const {
    int const times =
        (detail::confuses_objects(comm_) ? 1 : 0) + (length_ == 0 ? 1 : 0) + (losses_may_overflow() ? 1 : 0);
    double const asking = 2.0 * (comm_.size() - 1) * times;
    double const agreeing = results_may_differ() ? detail::allreduce_words_at_most(comm_.size(), 1) : 0;
    return reduce_.bound_words(length_, comm_.size()) + asking + agreeing;
  }

  /// The name of `Reduce` if it rounds values on the wire; empty if not.
  static std::string coding() { return Reduce::lossless ? std::string() : std::string(Reduce().name()); }

  /// The work of a call: the messages that `Reduce` tells, the bytes of its bound, which is a good estimate, and two
  /// passes over the vector in addition to the sums. The reduction of a coded vector decodes each piece that arrives
  /// and encodes each piece that it sends.
  static detail::call_cost expected_cost(options const& how, int ranks) {
    auto const reduce = detail::configured<Reduce>(how.reduce);
    auto const n = static_cast<double>(how.length);
    double const bytes = 4 * reduce.bound_words(how.length, ranks);
    double const coded = Reduce::lossless ? 0 : 2 * n * detail::share_of_others(ranks);
    double const messages = reduce.expected_messages(how.length, ranks);
    return {.messages = messages,
            .beside = std::max(reduce.sent_messages(how.length, ranks) - messages, 0.0),
            .bytes = bytes,
            .encoded = coded,
            .decoded = coded,
            .added = 2 * n + bytes / (2 * sizeof(Value)),
            .passes = 1};
  }

  static allreduce_promises promises([[maybe_unused]] options const& how) {
    allreduce_promises all{.local = {}, .all_contribute = true};
    if constexpr (!Reduce::lossless) {
      all.rounding = detail::configured<Reduce>(how.reduce).rounding();
    }
    return all;
  }

  /// As in `gradient_allreduce`.
  void fail(detail::fault_report const& why) { base::fail_in(*this, why); }

  /// Collective. The accumulator is only read.
  template <accumulator_input<Index, Value, E> Input>
  update_type const& operator()(Input const& accumulator) {
    return base::make_call("oktopk::dense", [&](call_context<E, Comm>& call, typename base::state_type&) {
      if (detail::confuses_objects(comm_)) {
        gather_counts_.compare_calls(call);
      }
      call.note(detail::check_accumulator(accumulator, length_));
      array_ref<Value, memory_space> const sums(sums_.data(), static_cast<std::size_t>(length_));
      Value const* own = sums_.data();
      if (call.faults) {
        detail::fill_array("oktopk::dense::fill", exec_, sums_.data(), length_,
                           std::numeric_limits<Value>::quiet_NaN());
      } else {
        auto const source = detail::as_source<Index, Value, E>(accumulator);
        source.materialize(exec_);
        own = source.materialized().values.data();
      }
      Value* const lost = Reduce::lossless ? nullptr : lost_.data();
      if constexpr (detail::dense_allreduce_out_of_place<Reduce, E, Comm, Value>) {
        reduce_.run_from(exec_, comm_, own, sums.data(), lost, length_);
      } else {
        if (own != sums.data()) {
          detail::copy_values(exec_, own, length_, sums.data());
        }
        reduce_.run(exec_, comm_, sums.data(), lost, length_);
      }
      std::int64_t bad = detail::first_non_finite<E, Value>(exec_, array_ref<Value const, memory_space>(sums));
      if (results_may_differ()) {
        collective_workspace workspace;
        allreduce_integers(comm_, std::span<std::int64_t>(&bad, 1), reduction::min, phase::control, workspace);
      }
      // An empty sum cannot show NaN, so there all ranks ask.
      if (bad < length_ || length_ == 0) {
        ask_whose_fault(call, accumulator);
      }
      if (bad < length_) {
        throw_overflow(accumulator, bad);
      }
      if (losses_may_overflow()) {
        call.note(fault_of_losses());
        gather_counts_.run(call, 0);
      }
      call.statistics.local_selected = length_;
      array_ref<Index const, memory_space> const all(indices_.data(), static_cast<std::size_t>(length_));
      return update_type({indices_.data(), sums.data(), length_}, all,
                         {indices_.data(), lost_.data(), Reduce::lossless ? 0 : length_});
    });
  }

private:
  // True over a wire whose codec loses more each time that it codes.
  bool results_may_differ() const { return comm_.size() > 1 && reduce_.ranks_may_differ(); }
  bool losses_may_overflow() const { return comm_.size() > 1 && reduce_.losses_may_overflow(comm_.size()); }

  // A codec may damage the neighbours of a sum that overflows, so the exact sums are formed to find its index. They
  // show no overflow if only the coded values overflow. All ranks are here.
  template <class Input>
  [[noreturn]] void throw_overflow(Input const& accumulator, std::int64_t spoiled) {
    std::int64_t place = spoiled;
    if constexpr (!Reduce::lossless) {
      array_ref<Value, memory_space> const sums(sums_.data(), static_cast<std::size_t>(length_));
      detail::copy_values(exec_, detail::as_source<Index, Value, E>(accumulator).materialized().values.data(), length_,
                          sums_.data());
      native_allreduce<E, Comm, Value> exact; // lives until the sums have been read
      exact.run(exec_, comm_, sums_.data(), nullptr, length_);
      place = detail::first_non_finite<E, Value>(exec_, array_ref<Value const, memory_space>(sums));
    }
    if (place < length_) {
      throw detail::fault_report{fault::non_finite, place, detail::fault_subject::sum}.as_error(name_, 0, length_);
    }
    throw error(fault::non_finite, name_ + ": a partial sum overflows among the values that are coded " +
                                       "together with index " + std::to_string(spoiled));
  }

  using base::comm_;
  using base::exec_;
  using base::length_;
  using base::name_;

  // All ranks are here together, since the sums are the same everywhere. Throws the fault of the lowest rank, if any.
  template <class Input>
  void ask_whose_fault(call_context<E, Comm>& call, Input const& accumulator) {
    if (!call.faults) {
      std::int64_t const bad = detail::first_non_finite<E, Value>(
          exec_, detail::as_source<Index, Value, E>(accumulator).materialized().values);
      if (bad < length_) {
        call.note({fault::non_finite, bad});
      }
    }
    gather_counts_.run(call, 0);
  }

  // A fault if some loss is not finite: every entry contributes, so the new residual consists of the losses alone.
  detail::fault_report fault_of_losses() const {
    array_ref<Value const, memory_space> const lost(lost_.data(), static_cast<std::size_t>(length_));
    std::int64_t const bad = detail::first_non_finite<E, Value>(exec_, lost);
    return bad < length_ ? detail::fault_report{fault::non_finite, bad, detail::fault_subject::returned}
                         : detail::fault_report{};
  }

  detail::count_gathering<Comm> gather_counts_;
  Reduce reduce_;
  detail::buffer<Value, memory_space> sums_{"oktopk::dense::sums"};
  detail::buffer<Value, memory_space> lost_{"oktopk::dense::lost"};
  detail::buffer<Index, memory_space> indices_{"oktopk::dense::indices"};
};

} // namespace oktopk
