// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/core/call_statistics.hpp>
#include <oktopk/core/fault_report.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace oktopk {

/// One call of an algorithm: all that its steps share, made by the call operator and handed from step to step.
///
/// A step is an object that owns its buffers; `run(call, input)` returns everything that later steps need. The
/// references outlive the call. `length`, `k` and `iteration` are the same on all ranks.
template <execution_space E, communicator Comm>
struct call_context {
  using execution_space = E;
  using communicator_type = Comm;

  E const& exec;              ///< the instance that every step launches on
  Comm& comm;                 ///< the ranks of this call
  std::string_view algorithm; ///< who calls, for sentences of errors
  std::int64_t length = 0;    ///< of the gradient
  std::int64_t k = 0;         ///< entries to select
  std::int64_t iteration = 0; ///< calls before this one
  first_fault faults;         ///< of this rank, and of others as soon as an exchange has told of them
  call_statistics statistics; ///< what the steps did; each writes its own part

  /// Notes a fault of this rank. The rank goes on with nothing to send, so that every rank hears of it.
  void note(fault_report const& what) { faults.hear(what, comm.rank()); }

  /// Hears the faults that ranks have put in the first place of their rows, a row of `width` numbers each and the same
  /// on all ranks, and throws that of the lowest faulty rank, if any.
  void hear_all(std::span<std::int64_t const> rows, std::size_t width) {
    for (std::size_t rank = 0; rank * width < rows.size(); ++rank) {
      faults.hear(fault_report::unpacked(static_cast<std::uint64_t>(rows[rank * width])), static_cast<int>(rank));
    }
    throw_if_faulty();
  }

  /// Throws the fault of the lowest faulty rank, if any. All ranks must have heard of the same faults.
  void throw_if_faulty() const { faults.throw_if_any(algorithm, length); }
};

namespace detail {

/// Adds the time until it goes out of scope to a figure in seconds.
class stopwatch {
public:
  explicit stopwatch(double& seconds) : seconds_(seconds), start_(clock::now()) {}
  stopwatch(stopwatch const&) = delete;
  stopwatch& operator=(stopwatch const&) = delete;
  ~stopwatch() { seconds_ += std::chrono::duration<double>(clock::now() - start_).count(); }

private:
  using clock = std::chrono::steady_clock;
  double& seconds_;
  clock::time_point start_;
};

} // namespace detail

} // namespace oktopk
