// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"

#include <oktopk/core/hash.hpp>

#include <cstdint>
#include <string>

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
