// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"

#include <oktopk/core/integers.hpp>

using oktopk::detail::ceil_log2;
using oktopk::detail::even_boundary;
using oktopk::detail::round_up_to_8;

TEST_CASE("bytes are rounded up to a multiple of 8, and no further") {
  for (std::int64_t bytes = 0; bytes < 100; ++bytes) {
    CAPTURE(bytes);
    CHECK(round_up_to_8(bytes) % 8 == 0);
    CHECK(round_up_to_8(bytes) >= bytes);
    CHECK(round_up_to_8(bytes) < bytes + 8);
  }
}

TEST_CASE("ceil_log2 counts the doublings that reach a number") {
  CHECK(ceil_log2(0) == 0);
  CHECK(ceil_log2(1) == 0);
  for (int steps = 1; steps < 40; ++steps) {
    std::int64_t const reach = std::int64_t(1) << steps;
    CAPTURE(reach);
    CHECK(ceil_log2(reach) == steps);
    CHECK(ceil_log2(reach + 1) == steps + 1);
    CHECK(ceil_log2(reach / 2 + 1) == steps);
  }
}

TEST_CASE("even parts cover a length, in order, and differ by one at most") {
  for (std::int64_t const length :
       {std::int64_t(0), std::int64_t(1), std::int64_t(5), std::int64_t(100), std::int64_t(1) << 62}) {
    for (std::int64_t parts = 1; parts < 20; ++parts) {
      CAPTURE(length, parts);
      CHECK(even_boundary(length, parts, 0) == 0);
      CHECK(even_boundary(length, parts, parts) == length);
      for (std::int64_t part = 0; part < parts; ++part) {
        std::int64_t const width = even_boundary(length, parts, part + 1) - even_boundary(length, parts, part);
        CHECK(width >= length / parts);
        CHECK(width <= (length - 1) / parts + 1);
      }
    }
  }
}

namespace {

std::uint64_t hash_of(std::string const& text) {
  oktopk::detail::fnv1a hash;
  hash.add(text.data(), text.size());
  return hash.value();
}

} // namespace

TEST_CASE("fnv1a gives the values that its authors published") {
  CHECK(hash_of("") == 0xcbf29ce484222325U);
  CHECK(hash_of("a") == 0xaf63dc4c8601ec8cU);
  CHECK(hash_of("foobar") == 0x85944171f73967e8U);
}

TEST_CASE("fnv1a does not tell pieces from the whole") {
  oktopk::detail::fnv1a pieces;
  pieces.add("foo", 3);
  pieces.add("", 0);
  pieces.add("bar", 3);
  CHECK(pieces.value() == hash_of("foobar"));
}
