// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/agreement.hpp>
#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/select/kernel/digits.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace oktopk::detail {

/// The guess of one rank alone: a magnitude that about 5/4 k values reach.
template <gradient_value Value>
struct prefilter_guess {
  Value magnitude = 0; ///< none yet when 0

  bool is_sound() const { return is_finite_magnitude(magnitude); }

  /// Learns from a search: k values reach `threshold`, and `count` reached the guess, none where it failed. Between two
  /// magnitudes the tail of gradients is about a power law.
  void learn(Value threshold, std::int64_t k, std::int64_t count) {
    double exponent = 3; // of a typical tail, where the two do not tell
    if (magnitude > 0 && magnitude < threshold && count > k) {
      exponent = std::log(static_cast<double>(count) / static_cast<double>(k)) /
                 std::log(double(threshold) / double(magnitude));
    }
    double const factor = std::pow(1.25, -1 / exponent);
    magnitude = static_cast<Value>(double(threshold) * std::clamp(factor, 0.5, 0.9999));
  }

  bool operator==(prefilter_guess const&) const = default;
};

/// The guess of several ranks, the same on all of them: patterns of magnitudes around the last k-th one.
template <gradient_value Value>
struct bracket_guess {
  Value magnitude = 0;            ///< the last k-th
  signed_bits_of<Value> bits = 0; ///< 2^bits patterns; none yet when 0

  /// The widest range that is worth a guess: half of the exponents of float, an eighth of those of double.
  static constexpr int most_bits = magnitude_bit_count<Value> - 7;

  bool is_sound() const { return is_finite_magnitude(magnitude) && bits >= 0 && bits <= most_bits; }

  /// Where the k-th magnitude is looked for: as far from the last one as it has moved of late.
  magnitude_range<Value> range() const {
    bits_of<Value> const middle = magnitude_bits(magnitude);
    int const width = std::min(static_cast<int>(bits), magnitude_bit_count<Value> - 1);
    bits_of<Value> const reach = bits_of<Value>(1) << (width - 1);
    return {middle > reach ? middle - reach : 0, width};
  }

  /// Learns from a search: four times the last move is in reach at once, and reach is given up bit by bit.
  void learn(bits_of<Value> found) {
    constexpr int least = 12;
    bits_of<Value> const last = magnitude_bits(magnitude);
    bits_of<Value> const moved = found > last ? found - last : last - found;
    int wide = least;
    while (wide < most_bits && (moved >> (wide - 3)) != 0) {
      wide += 1;
    }
    int const kept = bits > 0 ? std::min(static_cast<int>(bits) - 1, most_bits) : most_bits;
    magnitude = magnitude_from_bits<Value>(found);
    bits = static_cast<signed_bits_of<Value>>(std::max(wide, kept));
  }

  bool operator==(bracket_guess const&) const = default;
};

/// The part of a selector's state with which the next exact search begins. A search of one rank uses one of the two
/// guesses, a search of several ranks the other.
template <gradient_value Value>
struct search_guess {
  prefilter_guess<Value> prefilter;
  bracket_guess<Value> bracket;

  /// True where a search can have left it behind.
  bool is_sound() const { return prefilter.is_sound() && bracket.is_sound(); }

  /// Only ranks that search together compare their guesses.
  void list_facts(agreement& terms) const {
    terms.fact("guess", bracket.magnitude).fact("range of the guess", bracket.bits);
    terms.fact("guess of one rank", prefilter.magnitude); // the same, too: a search of several ranks leaves it alone
  }

  bool operator==(search_guess const&) const = default;

  /// For `save` and `load`.
  template <class Guess, class Visit>
  static void each_part(Guess& guess, Visit& visit) {
    visit(guess.prefilter.magnitude);
    visit(guess.bracket.magnitude);
    visit(guess.bracket.bits);
  }
};

} // namespace oktopk::detail
