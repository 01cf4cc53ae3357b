// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace oktopk {

/// What the ranks of a communicator are doing together, for the sentences of errors.
struct operation {
  std::string name{};       ///< of an algorithm, or of what is made together; empty before the first
  std::int64_t number = -1; ///< of the call, from 0 on; negative where that says nothing

  /// Allocates nothing once a name as long was there.
  void begin(std::string_view what, std::int64_t which) {
    name.assign(what);
    number = which;
  }

  /// "ok_topk, call 12"
  std::string text() const { return name + (number < 0 ? std::string() : ", call " + std::to_string(number)); }
};

/// Tells a communicator what its messages are for from now on, where it wants to know: it then has a member of this
/// name, with the last two arguments. Not collective; sends nothing.
template <class Comm>
void begin_operation(Comm& comm, std::string_view name, std::int64_t number = -1) {
  if constexpr (requires { comm.begin_operation(name, number); }) {
    comm.begin_operation(name, number);
  }
}

} // namespace oktopk
