// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/select/concept.hpp>
#include <oktopk/select/count_digit.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>

namespace oktopk {

/// The k-th largest magnitude, and who among those equal to it belongs to the k.
template <gradient_value Value>
struct kth {
  detail::bits_of<Value> threshold = 0; ///< pattern of the k-th largest magnitude
  std::int64_t ties = 0;                ///< candidates with exactly that magnitude
  std::int64_t ties_wanted = 0;         ///< how many of them complete the k; the lowest indices
};

/// What `exact` carries from one call to the next to find the k-th magnitude sooner.
template <gradient_value Value>
struct kth_guess {
  Value magnitude = 0; ///< one rank: about 5/4 k values reach it; several: the last k-th; none yet when 0
  detail::signed_bits_of<Value> bits = 0; ///< several ranks: how many patterns around it, as a power of two

  /// The widest range that is worth a guess: half of the exponents of float, an eighth of those of double.
  static constexpr int most_bits = detail::magnitude_bit_count<Value> - 7;

  /// Whether a search can have left it behind.
  bool is_sound() const { return detail::is_finite_magnitude(magnitude) && bits >= 0 && bits <= most_bits; }

  void list_facts(agreement& terms) const { terms.fact("guess", magnitude).fact("range of the guess", bits); }

  bool operator==(kth_guess const&) const = default;

  /// For `save` and `load`.
  template <class Guess, class Visit>
  static void each_part(Guess& guess, Visit& visit) {
    visit(guess.magnitude);
    visit(guess.bits);
  }
};

/// What is known of the k-th magnitude after some digits: it is one of 2^shift patterns.
template <gradient_value Value>
struct kth_bracket {
  bool found = false;               ///< whether it is in the range at all
  detail::bits_of<Value> floor = 0; ///< the lowest of the patterns
  int shift = 0;                    ///< the logarithm of how many there are
  std::int64_t above = 0;           ///< candidates of this rank with a larger pattern
  std::int64_t inside = 0;          ///< candidates of this rank with one of the patterns
  std::int64_t inside_total = 0;    ///< of all ranks in the scope
  std::int64_t wanted = 0;          ///< how many of `inside_total` belong to the k largest

  KOKKOS_INLINE_FUNCTION bool holds(detail::bits_of<Value> magnitude) const {
    return magnitude >= floor && ((magnitude - floor) >> shift) == 0;
  }
};

/// Brackets the k-th largest magnitude of all candidates in the scope, until no more than `enough` of them are inside.
///
/// By radix on the bit pattern of |x|: digit by digit from the top, a histogram of the candidates that share the digits
/// found so far decides the next one. No sort, no copy of the values, any magnitudes (denormal, infinite, NaN) ordered
/// as their patterns are. Reads the candidates once a digit: 3 times (float) with the local scope's 12 bits. Sends one
/// histogram a digit through `scope.sum`. With fewer than k candidates all are wanted. k must be positive.
///
/// A narrower range, the same on all ranks of the scope, takes fewer digits; where the k-th magnitude is not in it (or
/// is the last pattern of it) it is not found, on any rank.
template <execution_space E, gradient_index Index, gradient_value Value, selection_scope Scope>
kth_bracket<Value> bracket_kth(E const& exec, candidates<Index, Value, typename E::memory_space> from, std::int64_t k,
                               Scope& scope, selection_workspace<Index, Value, E>& workspace,
                               magnitude_range<Value> range, std::int64_t enough) {
  bool const whole = range.bits == detail::magnitude_bit_count<Value>;
  int const digit_bits = scope.kth_digit_bits(k, range.bits);
  std::int64_t const most_bins = std::int64_t(1) << digit_bits;
  std::int64_t const rows = detail::is_device<E> ? 64 : std::max<std::int64_t>(1, exec.concurrency());
  workspace.histograms.reserve(exec, rows * most_bins);
  workspace.numbers.reserve(exec, 2 * most_bins);

  kth_bracket<Value> result;
  detail::digit<Value> which{range, 0, 0, 0};
  std::int64_t wanted = k;
  bool at_the_end = !whole;
  for (int left = range.bits; left > 0 && (left == range.bits || at_the_end || result.inside_total > enough);
       left = which.shift) {
    which.width = std::min(digit_bits, left);
    which.shift = left - which.width;
    std::int64_t const bins = which.bins();
    detail::count_digit(exec, from.values, which, rows, workspace.histograms.data());
    detail::add_histograms(exec, rows, bins, workspace.histograms.data(), workspace.numbers.device().data());
    workspace.numbers.to_host(exec, bins, "oktopk::select::bracket_kth");
    std::int64_t* const mine = workspace.numbers.host();
    std::int64_t* const all = mine + most_bins;
    std::copy(mine, mine + bins, all);
    scope.sum(std::span<std::int64_t>(all, static_cast<std::size_t>(bins)));
    if (left == range.bits) {
      std::int64_t const reaching = std::accumulate(all, all + bins, std::int64_t(0));
      if (!whole && reaching < k) {
        return {};
      }
      wanted = std::min(wanted, reaching);
    }
    std::int64_t bin = bins - 1;
    while (bin > 0 && (all[bin] < wanted || wanted == 0)) { // without candidates, to the lowest of all patterns
      wanted -= all[bin];
      result.above += mine[bin];
      bin -= 1;
    }
    which.prefix =
        static_cast<detail::bits_of<Value>>((which.prefix << which.width) | static_cast<detail::bits_of<Value>>(bin));
    result.inside = mine[bin];
    result.inside_total = all[bin];
    // The last place of a range stands for all that is above, too.
    at_the_end = at_the_end && bin == bins - 1;
  }
  if (at_the_end) {
    return {};
  }
  result.found = true;
  result.floor = static_cast<detail::bits_of<Value>>(which.prefix << which.shift) + range.floor;
  result.shift = which.shift;
  result.wanted = std::min(wanted, result.inside_total);
  return result;
}

/// The exact k-th largest magnitude of one rank's candidates; see `bracket_kth`. It must be in the range.
template <execution_space E, gradient_index Index, gradient_value Value>
kth<Value> kth_magnitude(E const& exec, candidates<Index, Value, typename E::memory_space> from, std::int64_t k,
                         selection_workspace<Index, Value, E>& workspace, magnitude_range<Value> range = {}) {
  local_scope alone;
  auto const bracket = bracket_kth(exec, from, k, alone, workspace, range, 0);
  return {bracket.floor, bracket.inside, bracket.wanted};
}

} // namespace oktopk
