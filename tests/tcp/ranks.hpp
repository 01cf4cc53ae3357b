// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/numbered_ranks.hpp"
#include "support/same_everywhere.hpp"

#include <oktopk/tcp.hpp>

#include <cstdlib>

// Ranks that meet in the folder where STORE is.
namespace oktopk_tests {

inline std::filesystem::path folder() {
  char const* const store = std::getenv("STORE");
  return store == nullptr ? std::filesystem::temp_directory_path() : std::filesystem::path(store).parent_path();
}

/// By way of files, whatever has become of the connections.
inline std::vector<std::string> texts_of_all(std::string const& mine) {
  static int calls = 0;
  if (world_size() == 1) {
    return {mine};
  }
  auto const store = oktopk::rendezvous_store::in_folder(folder(), std::chrono::minutes(2));
  std::string const key = "text." + std::to_string(calls++) + ".of.";
  store.set(key + std::to_string(world_rank()), mine);
  std::vector<std::string> texts;
  for (int rank = 0; rank < world_size(); ++rank) {
    texts.push_back(store.get(key + std::to_string(rank)));
  }
  return texts;
}

/// New connections of all ranks. Collective.
inline oktopk::tcp_communicator connected(oktopk::tcp_options how = {std::chrono::minutes(1), {"127.0.0.1"}}) {
  static int made = 0;
  return oktopk::tcp_communicator::rendezvous(folder(), "world." + std::to_string(made++), world_rank(), world_size(),
                                              how);
}

/// Runs a test on all ranks; what one of them throws fails it on every rank. Collective.
template <class Body>
void on_all_ranks(Body const& body) {
  detail::on_all_ranks(body);
}

/// The same where there are several ranks: one alone has nobody to disagree with, or to wait for.
template <class Body>
void on_several_ranks(Body const& body) {
  if (world_size() > 1) {
    on_all_ranks(body);
  }
}

} // namespace oktopk_tests
