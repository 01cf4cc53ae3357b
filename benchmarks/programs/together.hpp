// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/agreement.hpp>

#include <exception>
#include <new>
#include <optional>
#include <string>
#include <type_traits>

namespace oktopk_programs {

/// Runs what may fail on this rank alone and gives its result; throws on all ranks, with one sentence, where it threw
/// on any. Collective; `what` is the same on all ranks.
template <oktopk::communicator Comm, class Action>
auto together(Comm& comm, std::string const& what, oktopk::fault code, Action const& action) {
  using result = std::invoke_result_t<Action const&>;
  oktopk::agreement agreed(what);
  std::conditional_t<std::is_void_v<result>, char, std::optional<result>> made{};
  try {
    if constexpr (std::is_void_v<result>) {
      action();
    } else {
      made.emplace(action());
    }
  } catch (std::bad_alloc const&) {
    agreed.note(code, "there is not enough memory");
  } catch (std::exception const& found) {
    agreed.note(code, found.what());
  }
  agreed.check_on(comm);
  if constexpr (!std::is_void_v<result>) {
    if (!made) { // cannot be: a rank without a result has noted why
      throw oktopk::error(code, what + " gave nothing");
    }
    return std::move(*made);
  }
}

} // namespace oktopk_programs
