// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/concept.hpp>
#include <oktopk/algorithm/options.hpp>
#include <oktopk/comm/agreement.hpp>
#include <oktopk/comm/call_context.hpp>
#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/revocation.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>

#include <utility>

namespace oktopk::detail {

/// Base of every algorithm, with what `gradient_allreduce` asks for beside the bound and the call operator. Keeps copies
/// of the execution-space instance and of the communicator. `State` is what goes from one iteration to the next.
template <class E, class Comm, class Index, class Value, class State>
class algorithm_base {
public:
  using execution_space = E;
  using communicator_type = Comm;
  using index_type = Index;
  using value_type = Value;
  using state_type = State;
  using memory_space = typename E::memory_space;
  using entries_type = sparse_ref<Index, Value, memory_space>;
  using update_type = sparse_update<Index, Value, memory_space>;

  algorithm_base(algorithm_base const&) = delete;
  algorithm_base& operator=(algorithm_base const&) = delete;

  std::string_view name() const { return name_; }
  std::int64_t length() const { return length_; }
  std::int64_t k() const { return k_; }
  Comm& comm() { return comm_; }
  E const& execution() const { return exec_; }
  call_statistics const& last_call() const { return statistics_; }
  State const& state() const { return state_; }

  /// Goes on from a saved state. Collective; an `error` on every rank where it does not fit or differs between ranks.
  void restore(State const& saved) {
    agreement terms(std::string(scheme_) + "::restore");
    detail::check_state(saved, comm_.size(), length_, terms);
    terms.check_on(comm_);
    state_ = saved;
  }

protected:
  /// `scheme` is the name in errors of the constructor and of `restore`.
  algorithm_base(E exec, Comm comm, std::int64_t length, char const* scheme)
      : exec_(std::move(exec)), comm_(std::move(comm)), length_(length), k_(length), name_(scheme), scheme_(scheme) {}
  ~algorithm_base() = default;

  /// Makes a call: `steps(call_context, next)` gives the update, and writes the next state. A call that throws leaves the
  /// state as it was. An `error` is on all ranks, or one after which the communicator is given up; so it is where a rank
  /// leaves the call by any other exception, such as memory that runs out, or the others would wait for it.
  template <class Steps>
  update_type const& make_call(char const* region, Steps const& steps) {
    detail::profiling_region const profiled(region);
    statistics_ = {};
    auto const start = clock::now();
    call_context<E, Comm> call{exec_, comm_, name_, length_, k_, state_.iteration, {}, {}};
    try {
      begin_operation(comm_, name_, state_.iteration);
      State next = state_;
      update_type const update = steps(call, next);
      finish_call(call, start, std::move(next), update);
      return update_;
    } catch (error const& why) {
      if (detail::breaks_communicator(why.code())) {
        leave(comm_, why); // this rank alone may have found it
      }
      throw;
    } catch (...) {
      leave(comm_, lost_);
      throw;
    }
  }

  E exec_;
  Comm comm_;
  std::int64_t length_;
  std::int64_t k_;
  std::string name_;
  State state_;

private:
  using clock = std::chrono::steady_clock;

  // Waits for the instance, and keeps the next state, the update and the figures.
  void finish_call(call_context<E, Comm>& call, clock::time_point start, State&& next, update_type const& update) {
    next.iteration = call.iteration + 1;
    state_ = std::move(next);
    update_ = update;
    detail::fence(exec_, "oktopk::finish_call");
    call.statistics.global_selected = static_cast<std::int64_t>(update.indices().extent(0));
    call.statistics.exchange_seconds =
        std::chrono::duration<double>(clock::now() - start).count() - call.statistics.select_seconds;
    statistics_ = call.statistics;
  }

  char const* scheme_;
  error lost_ = detail::order_is_lost(comm_.rank()); // made before memory can be missing
  call_statistics statistics_;
  update_type update_;
};

} // namespace oktopk::detail
