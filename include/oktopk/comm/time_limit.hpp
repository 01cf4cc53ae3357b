// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>

namespace oktopk {

/// Time limit of each wait of a communicator unless it was set; zero stands for none.
inline constexpr std::chrono::nanoseconds usual_time_limit = std::chrono::minutes(10);

/// Another time limit for what is done in one scope: `time_limit_scope const limit(comm, std::chrono::seconds(5));`.
///
/// All copies of the communicator on this rank share the limit, and get the one before when the scope ends. The same on
/// all ranks. Zero stands for none.
template <class Comm>
class time_limit_scope {
public:
  time_limit_scope(Comm& comm, std::chrono::nanoseconds limit) : comm_(comm), before_(comm.time_limit()) {
    comm_.set_time_limit(limit);
  }

  ~time_limit_scope() { comm_.set_time_limit(before_); }

  time_limit_scope(time_limit_scope const&) = delete;
  time_limit_scope& operator=(time_limit_scope const&) = delete;

private:
  Comm& comm_;
  std::chrono::nanoseconds before_;
};

} // namespace oktopk
