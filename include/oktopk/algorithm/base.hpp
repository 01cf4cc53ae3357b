// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/concept.hpp>
#include <oktopk/comm/call_context.hpp>
#include <oktopk/comm/cancel_on_unwind.hpp>
#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/revocation.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/instance.hpp>

#include <chrono>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

namespace oktopk {

/// Base of every algorithm, with the accessors that `gradient_allreduce` asks for. Keeps copies of the execution-space
/// instance and of the communicator.
template <class E, class Comm, class Index, class Value>
class algorithm_base {
public:
  using execution_space = E;
  using communicator_type = Comm;
  using index_type = Index;
  using value_type = Value;
  using memory_space = typename E::memory_space;
  using entries_type = sparse_ref<Index, Value, memory_space>;
  using update_type = sparse_update<Index, Value, memory_space>;

  algorithm_base(algorithm_base const&) = delete;
  algorithm_base& operator=(algorithm_base const&) = delete;

  std::int64_t length() const { return length_; }
  std::int64_t k() const { return k_; }
  Comm& comm() { return comm_; }
  E const& execution() const { return exec_; }
  call_statistics const& last_call() const { return statistics_; }

protected:
  algorithm_base(E exec, Comm comm, std::int64_t length)
      : exec_(std::move(exec)), comm_(std::move(comm)), length_(length), k_(length) {}
  ~algorithm_base() = default;

  /// Makes a call of `steps(call_context)`; `name` is for errors. An `error` is on all ranks, or one after
  /// which the communicator is given up; so it is where a rank leaves the call by any other exception, such as memory
  /// that runs out, or the others would wait for it.
  template <class Steps>
  update_type const& make_call(std::string_view name, std::int64_t iteration, Steps const& steps) {
    statistics_ = {};
    call_start_ = clock::now();
    begin_operation(comm_, name, iteration);
    call_context<E, Comm> call{exec_, comm_, name, length_, k_, iteration, {}, {}};
    try {
      return steps(call);
    } catch (error const& why) {
      if (detail::breaks_communicator(why.code())) {
        leave(comm_, why); // this rank alone may have found it
      }
      throw;
    } catch (...) {
      leave(comm_, detail::order_is_lost(comm_.rank()));
      throw;
    }
  }

  /// Ends a call that has succeeded: waits for the instance, and keeps the next state, the update and the figures.
  template <class State>
  update_type const& finish_call(call_context<E, Comm>& call, State& kept, std::type_identity_t<State>&& next,
                                 update_type const& update) {
    next.iteration = call.iteration + 1;
    kept = std::move(next);
    update_ = update;
    detail::fence(exec_, "oktopk::finish_call");
    call.statistics.global_selected = static_cast<std::int64_t>(update.indices().extent(0));
    call.statistics.exchange_seconds =
        std::chrono::duration<double>(clock::now() - call_start_).count() - call.statistics.select_seconds;
    statistics_ = call.statistics;
    return update_;
  }

  E exec_;
  Comm comm_;
  std::int64_t length_;
  std::int64_t k_;

private:
  using clock = std::chrono::steady_clock;

  clock::time_point call_start_;
  call_statistics statistics_;
  update_type update_;
};

} // namespace oktopk
