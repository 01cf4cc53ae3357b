// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/catch.hpp"

#include <exception>

// What tests on ranks that are processes say together; `texts_of_all(mine)` gives every rank's text to every rank.
namespace oktopk_tests::detail {

template <class TextsOfAll>
bool same_everywhere(std::string const& mine, TextsOfAll const& texts_of_all) {
  std::vector<std::string> const all = texts_of_all(mine);
  return std::all_of(all.begin(), all.end(), [&](std::string const& text) { return text == all[0]; });
}

template <class Body, class TextsOfAll>
void on_all_ranks(Body const& body, TextsOfAll const& texts_of_all) {
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

} // namespace oktopk_tests::detail
