// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/in_process.hpp>
#include <oktopk/comm/simulation.hpp>

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <utility>
#include <vector>

namespace oktopk_simulate {

/// Leads a simulated world through every order of its events, one run after the other.
///
/// A run repeats the choices that led to a state, takes one that was not taken there, and goes on until it meets a
/// state that is known: how many steps each rank has gone, and which messages have arrived with which bytes. Ranks do
/// the same in the same state, unless they look at what they have not waited for and tell nobody.
class every_order final : public oktopk::in_process::event_order {
public:
  /// Until `from`, in number of events, there is only one order.
  explicit every_order(std::int64_t from = 0) : from_(from) { open_.emplace_back(); }

  bool is_done() const { return open_.empty(); }
  std::int64_t states() const { return static_cast<std::int64_t>(known_.size()); }
  std::int64_t runs() const { return runs_; }
  std::int64_t complete() const { return complete_; }

  /// Before each run.
  void begin() {
    path_ = std::move(open_.back());
    open_.pop_back();
    at_ = 0;
    cut_ = false;
    runs_ += 1;
  }

  /// After it: whether it came to its end.
  bool finish() {
    complete_ += cut_ ? 0 : 1;
    return !cut_;
  }

  std::size_t next(std::size_t possible, std::uint64_t state) override {
    if (at_ < path_.size()) {
      return path_[at_++];
    }
    if (static_cast<std::int64_t>(at_) >= from_) {
      if (!known_.insert(state).second) {
        cut_ = true;
        return end;
      }
      for (std::size_t other = 1; other < possible; ++other) {
        open_.push_back(path_);
        open_.back().push_back(static_cast<std::uint8_t>(other));
      }
    }
    path_.push_back(0);
    at_ += 1;
    return 0;
  }

private:
  std::int64_t from_;
  std::vector<std::vector<std::uint8_t>> open_; // choices that lead to where none was taken
  std::unordered_set<std::uint64_t> known_;
  std::vector<std::uint8_t> path_;
  std::size_t at_ = 0;
  bool cut_ = false;
  std::int64_t runs_ = 0;
  std::int64_t complete_ = 0;
};

/// Runs `body(comm)`, which gives what a rank has computed, in every order of events; calls `see(results)` for each run
/// that came to its end, and where a rank threw rethrows it.
template <class Result, class Body, class See>
void explore(every_order& order, int ranks, bool yields_at_messages, Body const& body, See const& see) {
  oktopk::in_process::options how;
  how.stack_bytes = std::size_t(1) << 20;
  how.simulated = oktopk::in_process::simulation{.order = &order, .yields_at_messages = yields_at_messages};
  while (!order.is_done()) {
    std::vector<Result> results(static_cast<std::size_t>(ranks));
    order.begin();
    oktopk::in_process::run(
        ranks,
        [&](oktopk::in_process_communicator comm) { results[static_cast<std::size_t>(comm.rank())] = body(comm); },
        how);
    if (order.finish()) {
      see(results);
    }
  }
}

} // namespace oktopk_simulate
