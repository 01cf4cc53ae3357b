// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/version.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

// Arithmetic on counts, positions and bytes.
namespace oktopk::detail {

/// A number of elements in options, made from an integer of any type: `{.length = view.extent(0)}`.
///
/// Where a plain integer in braces would refuse an extent, which has no sign. One beyond 2^63 becomes negative, and is
/// refused as such. A share, as in `{.k = 0.01}`, does not compile, and a sentence says why; a plain integer in a
/// `std::optional`, or as an argument, would be 0 without a word.
class element_count {
public:
  constexpr element_count() = default;
  template <class Number>
    requires(std::is_arithmetic_v<Number> && !std::same_as<Number, bool>)
  constexpr element_count(Number elements) // NOLINT(google-explicit-constructor): it stands for the integer
      : elements_(static_cast<std::int64_t>(elements)) {
    static_assert(std::integral<Number>,
                  "oktopk: a number of elements is an integer; a share of the length is a density");
  }
  constexpr operator std::int64_t() const { return elements_; } // NOLINT(google-explicit-constructor)

private:
  std::int64_t elements_ = 0;
};

/// The smallest multiple of 8 that is at least `bytes`: the place where the next number of 8 bytes may lie.
constexpr std::int64_t round_up_to_8(std::int64_t bytes) {
  return (bytes + 7) / 8 * 8;
}

/// ceil(log2 number), 0 for numbers below 2: the steps in which a doubling collective reaches that many ranks.
constexpr int ceil_log2(std::int64_t number) {
  int steps = 0;
  for (std::int64_t reach = 1; reach < number; reach *= 2) {
    steps += 1;
  }
  return steps;
}

/// First index of part `part` where a length is split into parts that differ by one at most.
constexpr std::int64_t even_boundary(std::int64_t length, std::int64_t parts, std::int64_t part) {
  std::int64_t const extra = length % parts;
  return length / parts * part + (part < extra ? part : extra);
}

/// FNV-1a of 64 bits (Fowler, Noll, Vo), fed piece by piece: it tells texts and files apart, but stops no attack.
class fnv1a {
public:
  void add(void const* data, std::size_t bytes) {
    auto const* const begin = static_cast<unsigned char const*>(data);
    for (std::size_t i = 0; i < bytes; ++i) {
      hash_ = (hash_ ^ begin[i]) * 1099511628211U;
    }
  }

  std::uint64_t value() const { return hash_; }

private:
  std::uint64_t hash_ = 14695981039346656037U;
};

} // namespace oktopk::detail
