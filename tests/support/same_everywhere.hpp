// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/catch.hpp"

#include <exception>

// What tests on ranks that are processes say together. The header of their kind defines these three.
namespace oktopk_tests {

inline int world_rank();
inline int world_size();

/// Every rank's text, to every rank. Collective.
inline std::vector<std::string> texts_of_all(std::string const& mine);

/// The neighbours in a ring of all ranks.
inline int next_rank() {
  return (world_rank() + 1) % world_size();
}

inline int previous_rank() {
  return (world_rank() + world_size() - 1) % world_size();
}

/// Whether every rank has the same text. Collective.
inline bool same_everywhere(std::string const& mine) {
  std::vector<std::string> const all = texts_of_all(mine);
  return std::all_of(all.begin(), all.end(), [&](std::string const& text) { return text == all[0]; });
}

namespace detail {

template <class Body>
void on_all_ranks(Body const& body) {
  std::string thrown;
  try {
    body();
  } catch (std::exception const& caught) {
    thrown = caught.what();
  }
  std::vector<std::string> const all = texts_of_all(thrown);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    INFO("what rank " << rank << " threw");
    CHECK(all[rank] == "");
  }
}

} // namespace detail
} // namespace oktopk_tests
