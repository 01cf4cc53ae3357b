// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/core/number_text.hpp>

namespace oktopk {

/// Time limit of each wait of a communicator unless it was set; zero stands for none.
inline constexpr std::chrono::nanoseconds usual_time_limit = std::chrono::minutes(10);

namespace detail {

/// "0.020000 s"; in nanoseconds if it is no whole number of microseconds.
inline std::string duration_text(std::chrono::nanoseconds time) {
  return time % std::chrono::microseconds(1) != std::chrono::nanoseconds(0)
             ? std::to_string(time.count()) + " ns"
             : decimal_text(std::chrono::duration<double>(time).count()) + " s";
}

/// Checks the limit of every `set_time_limit`; an `error` on this rank alone if it is negative.
inline std::chrono::nanoseconds checked_time_limit(std::chrono::nanoseconds limit) {
  if (limit < std::chrono::nanoseconds(0)) {
    throw error(fault::option_out_of_range,
                "a time limit of " + duration_text(limit) + " is negative; 0 stands for no limit");
  }
  return limit;
}

} // namespace detail

/// Sets another time limit for one scope: `time_limit_scope const limit(comm, std::chrono::seconds(5));`.
///
/// All copies of the communicator on this rank share the limit, and get the previous one when the scope ends; of two
/// halves (`paired`) each gets its own. The same on all ranks. Zero stands for none; an `error` (option_out_of_range)
/// if it is negative, or if the communicator has no time limit.
template <class Comm>
class time_limit_scope {
public:
  time_limit_scope(Comm& comm, std::chrono::nanoseconds limit) : comm_(comm), before_(comm.time_limits()) {
    detail::checked_time_limit(limit);
    comm_.set_time_limits({limit, limit});
  }

  ~time_limit_scope() { comm_.set_time_limits(before_); }

  time_limit_scope& operator=(time_limit_scope&&) = delete;

private:
  Comm& comm_;
  time_limit_pair before_;
};

} // namespace oktopk
