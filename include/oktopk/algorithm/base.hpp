// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/concept.hpp>

#include <chrono>
#include <cstdint>
#include <utility>

namespace oktopk {

/// What every algorithm has: where it launches, whom it talks to, for which length and k, and what it did last.
///
/// Not to be used by itself; the algorithms inherit its accessors, which `gradient_allreduce` asks for. Keeps copies of
/// the execution-space instance and of the communicator.
template <execution_space E, communicator Comm, gradient_index Index, gradient_value Value>
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
  using clock = std::chrono::steady_clock;

  algorithm_base(E exec, Comm comm, std::int64_t length)
      : exec_(std::move(exec)), comm_(std::move(comm)), length_(length), k_(length) {}
  ~algorithm_base() = default;

  static double seconds(clock::time_point from, clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
  }

  /// (P-1)/P, the share of everything that lies on other ranks.
  double others_share() const { return (comm_.size() - 1.0) / comm_.size(); }

  /// Words of 4 bytes that an entry of index and value takes.
  static constexpr double words_per_entry = (sizeof(Index) + sizeof(Value)) / 4.0;

  E exec_;
  Comm comm_;
  std::int64_t length_;
  std::int64_t k_;
  call_statistics statistics_;
  update_type update_;
};

} // namespace oktopk
