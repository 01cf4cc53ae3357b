// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "counts.hpp"

#include <oktopk/comm/in_process.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace device_cost {

/// The parts of a call that are counted apart.
enum class part : std::size_t { selection, partition, reduce, global_selection, balance, gather, rest };

inline constexpr std::size_t parts = static_cast<std::size_t>(part::rest) + 1;

std::string_view name(part which);

/// Who caused what: all counts go to the rank that runs and to the part of the call that it is in.
///
/// Ranks in process are fibres of one thread, which change in a wait for a message alone (`noted_communicator`). The
/// parts are the regions that the library opens for Kokkos Tools.
class ledger {
public:
  explicit ledger(int ranks) : regions_(static_cast<std::size_t>(ranks)), last_(count_now()) {}

  /// From now on `rank` runs.
  void enter(int rank);
  void push(std::string_view region);
  void pop();

  /// Forgets what was counted so far.
  void reset();

  /// Of a part, all ranks together.
  counts const& of(part which) const { return totals_[static_cast<std::size_t>(which)]; }

  /// Makes this the one that hears of regions. To be called after `prepare_counting`.
  void listen();

private:
  void settle();

  std::vector<std::vector<part>> regions_; // that each rank is in
  std::size_t rank_ = 0;
  counts last_;
  std::array<counts, parts> totals_{};
};

/// Ranks in process, noted in a ledger.
class noted_communicator : public oktopk::in_process_communicator {
public:
  noted_communicator(oktopk::in_process_communicator const& inner, ledger& book)
      : oktopk::in_process_communicator(inner), book_(&book) {
    book_->enter(rank());
  }

  void wait_all(std::span<request> requests) {
    in_process_communicator::wait_all(requests);
    book_->enter(rank());
  }

  template <class T>
  void allreduce(std::span<T> data, oktopk::reduction op, oktopk::phase use) {
    in_process_communicator::allreduce(data, op, use);
    book_->enter(rank());
  }

private:
  ledger* book_;
};

} // namespace device_cost
