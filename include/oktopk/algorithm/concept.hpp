// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/core/sparse.hpp>

#include <concepts>
#include <cstdint>
#include <string_view>

namespace oktopk {

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

/// A scheme that turns every rank's accumulator into one sparse update: the interface for `sgd`, tests and benchmarks.
///
/// 1. Call operator — collective; an accumulator of `length()` values in, the update out. The update lies in the
///    algorithm's workspace until the next call. Throws an `error` on every rank when some rank's accumulator is bad,
///    and is then as if it had not been called.
/// 2. `execution()` — the instance of the execution space that kernels run on, the same for the object's whole life.
/// 3. `bound_words()` — documented bound on the words of 4 bytes that one rank sends in a call.
/// 4. `state()`, `restore(state)` — all that is carried from one iteration to the next; `restore` is collective.
/// 5. `length()`, `k()`, `name()`, `last_call()`, `comm()` — the options it was made with, the scheme's name, the
///    figures of the last call, the communicator.
template <class A>
concept gradient_allreduce = names_allreduce_types<A> && update_of_entries<typename A::update_type> &&
                             describes_itself<A> && saves_its_state<A> && reduces_accumulators<A>;

} // namespace oktopk
