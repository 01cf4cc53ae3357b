// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "exchange/parts.hpp"
#include "support/catch.hpp"

#include <oktopk/exchange/balance.hpp>

using namespace oktopk_tests;

namespace {

/// What is wrong with a scheme, by moving every single entry as it says.
std::string scheme_fault(std::vector<std::int64_t> const& sizes, std::vector<oktopk::detail::transfer> const& scheme) {
  std::vector<int> holder; // of each entry, before
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    holder.insert(holder.end(), static_cast<std::size_t>(sizes[rank]), static_cast<int>(rank));
  }
  std::vector<int> landed(holder.size(), -1);
  std::int64_t before = 0;
  for (auto const& piece : scheme) {
    if (piece.first != before || piece.last <= piece.first) {
      return "the pieces do not ascend without gaps";
    }
    before = piece.last;
    for (std::int64_t i = piece.first; i < piece.last; ++i) {
      if (holder.at(static_cast<std::size_t>(i)) != piece.from || landed[static_cast<std::size_t>(i)] != -1) {
        return "an entry is sent by a rank that has not got it, or twice";
      }
      landed[static_cast<std::size_t>(i)] = piece.to;
    }
  }
  if (std::find(landed.begin(), landed.end(), -1) != landed.end()) {
    return "an entry lands nowhere";
  }
  if (!std::is_sorted(landed.begin(), landed.end())) {
    return "the order is lost";
  }
  std::vector<std::int64_t> after(sizes.size(), 0);
  for (int const rank : landed) {
    after.at(static_cast<std::size_t>(rank)) += 1;
  }
  auto const [least, most] = std::minmax_element(after.begin(), after.end());
  if (*most - *least > 1) {
    return "the sizes differ by more than one";
  }
  if (scheme.size() > 2 * sizes.size() - 1) {
    return "there are more than 2P-1 pieces";
  }
  // No rank sends more than it has, nor more than (P-1)/P of everything and the rounding of one entry.
  double const others = static_cast<double>(holder.size()) * (1 - 1 / static_cast<double>(sizes.size()));
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    std::int64_t sent = 0;
    for (auto const& piece : scheme) {
      bool const leaves = piece.from == static_cast<int>(rank) && piece.to != piece.from;
      sent += leaves ? piece.last - piece.first : 0;
    }
    if (sent > sizes[rank] || static_cast<double>(sent) >= others + 1) {
      return "rank " + std::to_string(rank) + " sends " + std::to_string(sent) + " entries";
    }
  }
  return {};
}

} // namespace

TEST_CASE("the balancing scheme moves every entry once, keeps the order, and evens the sizes") {
  std::vector<oktopk::detail::transfer> scheme;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    auto const sizes = random_sizes(seed);
    oktopk::detail::balancing_scheme(sizes, scheme);
    INFO("sizes " << Catch::Detail::stringify(sizes));
    std::string const fault = scheme_fault(sizes, scheme);
    if (!fault.empty()) {
      FAIL(fault);
    }
  }
}

TEST_CASE("the balancing scheme of the paper's kind: one rank has everything") {
  std::vector<oktopk::detail::transfer> scheme;
  std::vector<std::int64_t> const sizes{0, 0, 8, 0};
  oktopk::detail::balancing_scheme(sizes, scheme);
  std::vector<oktopk::detail::transfer> const expected{{2, 0, 0, 2}, {2, 1, 2, 4}, {2, 2, 4, 6}, {2, 3, 6, 8}};
  CHECK((scheme == expected));
  oktopk::detail::balancing_scheme(std::vector<std::int64_t>{0, 0, 0}, scheme);
  CHECK(scheme.empty());
  oktopk::detail::balancing_scheme(std::vector<std::int64_t>{5}, scheme);
  CHECK((scheme == std::vector<oktopk::detail::transfer>{{0, 0, 0, 5}}));
}
