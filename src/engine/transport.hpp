// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/any_communicator.hpp>

#include <functional>
#include <string>

namespace oktopk::detail {

enum class transport_kind : std::uint8_t { sockets, threads };

/// What `oktopk_engine_group_options` says; see there.
struct group_terms {
  int rank = 0;
  int size = 1;
  transport_kind transport = transport_kind::sockets;
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

/// True where ranks can meet so.
bool has_transport(transport_kind kind) noexcept;

/// Collective: waits until all ranks have come.
transport meet(group_terms const& terms);

} // namespace oktopk::detail
