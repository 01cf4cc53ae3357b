// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/options.hpp>
#include <oktopk/comm/call_context.hpp>

#include <utility>

namespace oktopk::detail {

/// Base of every collective that is an object: its communicator and number there, its state, and how a call is made.
/// Keeps copies of the execution-space instance and of the communicator. `State`, a `call_state`, goes from one call to
/// the next; `Result` has `size()`, the number of its entries.
template <class E, class Comm, class State, class Result>
class collective_base {
public:
  using execution_space = E;
  using communicator_type = Comm;
  using state_type = State;

  collective_base& operator=(collective_base&&) = delete;

  std::string_view name() const { return name_; }
  std::int64_t length() const { return length_; }
  Comm& comm() { return comm_; }
  E const& execution() const { return exec_; }
  call_statistics const& last_call() const { return statistics_; }
  State const& state() const { return state_; }

  /// Continues from a saved state. Collective. An `error` on every rank if it does not fit or differs between ranks.
  void restore(State const& saved) {
    agreement terms(std::string(scheme_) + "::restore");
    check_state(saved, comm_.size(), length_, terms);
    terms.check_on(comm_);
    state_ = saved;
  }

protected:
  /// `scheme` is the name in errors of the constructor and of `restore`.
  collective_base(E exec, Comm comm, std::int64_t length, char const* scheme)
      : exec_(std::move(exec)), comm_(std::move(comm)), length_(length), name_(scheme), scheme_(scheme) {}
  ~collective_base() = default;

  /// Brings a fault of this rank to its next call.
  void bring(fault_report const& why) {
    bool const is_of_rank = why && !breaks_communicator(why.code);
    fault_ = fault_report::unpacked(why.packed()); // as the other ranks read it
    fault_.code = is_of_rank ? why.code : fault::caller_failed;
  }

  /// Makes a call: `steps(call_context, next)` returns the result, and writes the next state. A call that throws leaves
  /// the state as it was. An `error` is thrown on all ranks, or the communicator is given up. After any other
  /// exception, such as memory that runs out, the communicator is given up too: otherwise the other ranks would wait
  /// for this one.
  template <class Steps>
  Result const& make_call(char const* region, std::int64_t k, Steps const& steps) {
    profiling_region const profiled(region);
    statistics_ = {};
    auto const start = clock::now();
    call_context<E, Comm> call{exec_, comm_, name_, length_, k, state_.iteration, {}, {}, object_};
    call.note(std::exchange(fault_, {}));
    try {
      comm_.begin_operation(name_, state_.iteration);
      State next = state_;
      Result const result = steps(call, next);
      finish_call(call, start, std::move(next), result);
      return result_;
    } catch (error const& why) {
      if (breaks_communicator(why.code())) {
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
  std::string name_;
  State state_;

private:
  using clock = std::chrono::steady_clock;

  // Waits for the instance, and stores the next state, the result and the statistics.
  void finish_call(call_context<E, Comm>& call, clock::time_point start, State&& next, Result const& result) {
    next.iteration = call.iteration + 1;
    state_ = std::move(next);
    result_ = result;
    fence(exec_, "oktopk::finish_call");
    call.statistics.global_selected = result.size();
    call.statistics.exchange_seconds =
        std::chrono::duration<double>(clock::now() - start).count() - call.statistics.select_seconds;
    statistics_ = call.statistics;
  }

  char const* scheme_;
  std::int64_t const object_ = comm_.number_object();
  error lost_ = order_is_lost(comm_.rank()); // made before memory can be missing
  call_statistics statistics_;
  Result result_;
  fault_report fault_; // of this rank, before its next call
};

} // namespace oktopk::detail
