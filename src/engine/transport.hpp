// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/any_communicator.hpp>

#include <functional>
#include <string>

namespace oktopk::detail {

/// What `oktopk_engine_group_options` says; see there.
struct group_terms {
  int rank = 0;
  int size = 1;
  std::string name;
  std::string folder;
  std::function<void(std::string const& key, std::string const& bytes)> set; ///< empty: the folder counts
  std::function<std::string(std::string const& key)> get;
  std::string interface_name;
  std::chrono::nanoseconds time_limit{};
};

/// Ranks that have met.
struct transport {
  any_communicator comm;
  std::function<void(error const& why)> abort; ///< for any thread: ends a wait of `comm` that is under way
};

/// Collective: waits until all ranks have come.
transport meet(group_terms const& terms);

} // namespace oktopk::detail
