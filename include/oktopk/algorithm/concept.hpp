// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/select/concept.hpp>

#include <optional>

namespace oktopk {

namespace detail {

template <class Input>
inline constexpr bool is_accumulation = false;

template <class Index, class Value, class MemorySpace>
inline constexpr bool is_accumulation<accumulation<Index, Value, MemorySpace>> = true;

template <class Input>
concept vector_or_accumulation = kokkos_vector<Input> || is_accumulation<Input>;

} // namespace detail

/// The argument of a call: an accumulator in memory, or an `accumulation`, which forms the accumulator during the
/// selection. That saves one pass over memory, and afterwards the accumulator lies in memory. The first two parts of
/// the concept let the compiler name the part that fails.
template <class Input, class Index, class Value, class E>
concept accumulator_input = detail::vector_or_accumulation<Input> && detail::same_value_type<Input, Value> &&
                            (detail::accumulator_view<Input, Value, E> ||
                             std::same_as<Input, detail::accumulation<Index, Value, typename E::memory_space>>);

namespace detail {

/// The fault in the shape of this rank's accumulator, if any. The selection checks the values.
template <kokkos_vector View>
fault_report check_accumulator(View const& accumulator, std::int64_t length) {
  auto const size = static_cast<std::int64_t>(accumulator.extent(0));
  if (size != length) {
    return {fault::length_mismatch, size};
  }
  if (!accumulator.span_is_contiguous()) {
    return {fault::not_contiguous, 0};
  }
  return {};
}

template <class Index, class Value, class MemorySpace>
fault_report check_accumulator(accumulation<Index, Value, MemorySpace> const& making, std::int64_t length) {
  for (std::size_t const size : {making.residual.extent(0), making.gradient.extent(0), making.accumulator.extent(0)}) {
    if (static_cast<std::int64_t>(size) != length) {
      return {fault::length_mismatch, static_cast<std::int64_t>(size)};
    }
  }
  return {};
}

template <gradient_value Value, execution_space E>
using view_of_any_stride =
    Kokkos::View<Value const*, Kokkos::LayoutStride, typename E::memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// Returns an input as one of two types, so that calls are compiled once for all layouts of views. Any stride is
/// allowed, since the shape is checked later.
template <gradient_value Value, execution_space E, class Input>
auto with_any_stride(Input const& input) {
  if constexpr (is_accumulation<Input>) {
    return input;
  } else {
    return view_of_any_stride<Value, E>(
        input.data(), Kokkos::LayoutStride(input.extent(0), static_cast<std::size_t>(input.stride(0))));
  }
}

/// Returns an input as the source of a selection.
template <gradient_index Index, gradient_value Value, execution_space E, class Input>
auto as_source(Input const& input) {
  if constexpr (is_accumulation<Input>) {
    return input;
  } else {
    using memory_space = typename E::memory_space;
    return candidates<Index, Value, memory_space>(array_ref<Value const, memory_space>(input.data(), input.extent(0)),
                                                  {});
  }
}

template <class A>
concept names_allreduce_types = execution_space<typename A::execution_space> &&
                                communicator<typename A::communicator_type> && gradient_value<typename A::value_type> &&
                                gradient_index<typename A::index_type> && std::copyable<typename A::state_type>;

/// The members of `sparse_update`; an algorithm may have an update type of its own.
template <class U>
concept update_of_entries = requires(U const& update) {
  update.indices().extent(0);
  update.values().extent(0);
  update.contributed().extent(0);
  update.returned().indices.extent(0);
  update.returned().values.extent(0);
};

template <class A>
concept describes_itself = requires(A& algorithm, A const& fixed) {
  { fixed.length() } -> std::same_as<std::int64_t>;
  { fixed.k() } -> std::same_as<std::int64_t>;
  { fixed.name() } -> std::convertible_to<std::string_view>;
  { fixed.bound_words() } -> std::same_as<double>;
  { fixed.last_call() } -> std::same_as<call_statistics const&>;
  { fixed.execution() } -> std::same_as<typename A::execution_space const&>;
  { algorithm.comm() } -> std::same_as<typename A::communicator_type&>;
};

template <class A>
concept saves_its_state = requires(A& algorithm, A const& fixed, typename A::state_type const& saved) {
  { fixed.state() } -> std::same_as<typename A::state_type const&>;
  { algorithm.restore(saved) } -> std::same_as<void>;
};

template <class A>
concept reduces_accumulators = requires(
    A& algorithm, Kokkos::View<typename A::value_type const*, typename A::execution_space::memory_space> accumulator) {
  { algorithm(accumulator) } -> std::same_as<typename A::update_type const&>;
};

template <class A>
concept reports_faults = requires(A& algorithm, fault_report const& why) {
  { algorithm.fail(why) } -> std::same_as<void>;
};

} // namespace detail

/// A scheme that turns every rank's accumulator into one sparse update: the interface for `sgd`, tests and benchmarks.
///
/// 1. Call operator — collective; takes an accumulator of `length()` values, returns the update. The update lies in the
///    algorithm's workspace until the next call. Throws an `error` on every rank if the accumulator of some rank is
///    bad; the object is then as it was before the call.
///    `fail(fault)` — takes the place of the call on a rank that has no accumulator: the others make the call, and
///    every rank throws an `error` with this fault and this rank, or with that of a lower rank. Never returns.
/// 2. `execution()` — the instance of the execution space that kernels run on, the same for the object's whole life.
/// 3. `bound_words()` — documented bound on the words of 4 bytes that one rank sends in a call.
/// 4. `state()`, `restore(state)` — all that is carried from one iteration to the next; `restore` is collective.
/// 5. `length()`, `k()`, `name()`, `last_call()`, `comm()` — the options it was made with, the scheme's name, the
///    statistics of the last call, the communicator.
template <class A>
concept gradient_allreduce = detail::names_allreduce_types<A> && detail::update_of_entries<typename A::update_type> &&
                             detail::describes_itself<A> && detail::saves_its_state<A> &&
                             detail::reduces_accumulators<A> && detail::reports_faults<A>;

/// What an algorithm promises of each result, composed of what its policies promise: `Allreduce::promises(options)`. By
/// default only that it loses nothing, and gives the same in every run. `bound_words()` bounds what is sent.
struct allreduce_promises {
  /// The order in which the values of an index are added: with it the same selections give the same bits.
  enum class order : std::uint8_t {
    any,       ///< the same on all ranks
    of_ranks,  ///< from rank 0 on
    of_owners, ///< from the owner of the index on, each time the rank below, round the ring; or in stages of `schedule`
    of_tree,   ///< up a binomial tree whose nodes keep the k largest
  };

  std::optional<selection_promises> local = selection_promises(); ///< of the entries of a rank; none: all are summed
  std::optional<selection_promises> global{}; ///< of the sums; none: all are in the result, of a tree k
  double result = 1;                          ///< entries of the result where `global` has k of them, in k
  bool full_sums = false; ///< sums of all that the ranks have at the result's indices, which contribute all
  order sums = order::any;
  std::string rounding{};      ///< the code that rounds values on the wire, with its options; empty if none does
  bool all_contribute = false; ///< a selected entry leaves the residual also if the result does not have it
  bool conserves = true;       ///< what leaves the residuals is in the result
  bool repeats = true;         ///< the same calls give the same bits in every run
  std::string partition{};     ///< who owns which index, as `describe()` of the partitioner has it; empty: nobody does
  std::string schedule{};      ///< how entries reach their owners, likewise
  std::string gather{};        ///< how parts of the result reach all ranks, likewise
};

/// Returns a state from which another number of ranks can continue, such as the ranks that are left when one has died.
///
/// `state` is that of an algorithm or of an optimizer. Residual and learning rate of an optimizer are kept, so only the
/// residual of a rank that has died is lost. The P+1 boundaries of the regions are removed, and the next call makes new
/// ones. For `bucketed` the thresholds of its buckets are removed, too. All other thresholds are kept, since sums of
/// fewer ranks are about as large; if they are not, the next due evaluation corrects them. A rank whose last call
/// failed may be one call behind the ranks that completed it: all continue from the state before the earliest of these
/// calls. Sends nothing.
template <class State>
State for_other_ranks(State state) {
  static_assert(
      !requires { State::of_any_allreduce; },
      "oktopk: the state of an any_allreduce is known to it alone: for_other_ranks(state, allreduce)");
  state.forget_ranks();
  return state;
}

/// The same for an algorithm of the catalogue, or an optimizer that uses one. `of` is an `any_allreduce` of the
/// algorithm that the state belongs to, over any number of ranks. An `error` (bad_state) on this rank if it belongs to
/// another one.
template <class State, class Allreduce>
State for_other_ranks(State state, Allreduce const& of) {
  if constexpr (requires { state.allreduce; }) {
    state.allreduce = of.for_other_ranks(state.allreduce);
    return state;
  } else {
    return of.for_other_ranks(state);
  }
}

} // namespace oktopk
