// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/range.hpp>
#include <oktopk/select/compact.hpp>
#include <oktopk/select/count.hpp>
#include <oktopk/select/kth_magnitude.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

// From all candidates of one rank to few that hold the k largest, in one read.
namespace oktopk {

namespace detail {

/// How many of so many values a sample has.
inline std::int64_t sample_size(std::int64_t values) {
  return std::min<std::int64_t>(values, 1 << 15);
}

/// Copies evenly spread values, each from a place of its own stretch that a hash picks, so that no period is in step.
template <execution_space E, selection_source Source>
void take_sample(E const& exec, Source const& from, std::int64_t samples, typename Source::value_type* out) {
  std::int64_t const stretch = from.size() / samples;
  Kokkos::parallel_for(
      "oktopk::select::sample", detail::index_range<E>(exec, 0, samples), KOKKOS_LAMBDA(std::int64_t i) {
        std::uint64_t h = (static_cast<std::uint64_t>(i) + 1) * 0x9e3779b97f4a7c15U;
        h = (h ^ (h >> 31)) * 0xbf58476d1ce4e5b9U;
        out[i] = from.peek(i * stretch + static_cast<std::int64_t>((h >> 33) % static_cast<std::uint64_t>(stretch)));
      });
}

/// Two magnitudes from a sample of the values: one that k of them reach but for bad luck, and the one that is the k-th
/// if the values are spread just as the sample is. Zero where the sample is too small to tell.
template <gradient_value Value>
struct sampled_guess {
  Value safe = 0;
  Value likely = 0;
};

/// Deterministic: the same values give the same guess.
template <execution_space E, selection_source Source>
sampled_guess<typename Source::value_type>
guess_from_sample(E const& exec, Source const& from, std::int64_t k,
                  selection_workspace<typename Source::index_type, typename Source::value_type, E>& workspace) {
  using value_type = typename Source::value_type;
  std::int64_t const samples = sample_size(from.size());
  workspace.reserve(exec, samples);
  take_sample(exec, from, samples, workspace.values.data());
  double const expected = static_cast<double>(k) * static_cast<double>(samples) / static_cast<double>(from.size());
  candidates<typename Source::index_type, value_type, typename E::memory_space> const sample(
      workspace.entries(samples));
  auto const at = [&](double rank) {
    auto const whole = std::max<std::int64_t>(static_cast<std::int64_t>(rank), 1);
    return whole >= samples ? value_type(0)
                            : magnitude_from_bits<value_type>(kth_magnitude(exec, sample, whole, workspace).threshold);
  };
  // Four standard deviations on the safe side: too many candidates cost little, too few another pass.
  return {at(expected + 4 * std::sqrt(expected) + 4), at(expected + 0.5)};
}

/// Whether `likely` is the k-th magnitude, as it is where very many values tie there.
template <execution_space E, gradient_index Index, gradient_value Value>
bool confirm_ties(E const& exec, candidates<Index, Value, typename E::memory_space> from, std::int64_t k, Value likely,
                  kth<Value>& found) {
  found.threshold = magnitude_bits(likely);
  std::int64_t const above = count_at_least(exec, from, static_cast<bits_of<Value>>(found.threshold + 1));
  std::int64_t const reaching = above < k ? count_at_least(exec, from, found.threshold) : 0;
  found.ties = reaching - above;
  found.ties_wanted = k - above;
  return above < k && k <= reaching;
}

/// The most candidates that are few, for a selection of k.
inline std::int64_t few_candidates(std::int64_t k) {
  return 2 * k + 1024;
}

/// Takes the whole source and puts aside what reaches the guess: gives how many these are, or -1 where they are fewer
/// than k or more than there is always room for, and a guess failed. What else the buffers were used for plays no part,
/// so that the same state gives the same guesses.
template <execution_space E, selection_source Source>
std::int64_t narrow(E const& exec, Source const& from, std::int64_t k, typename Source::value_type guess,
                    selection_workspace<typename Source::index_type, typename Source::value_type, E>& workspace) {
  std::int64_t const most = std::max(few_candidates(k), sample_size(from.size()));
  workspace.reserve(exec, most);
  std::int64_t const count = compact(exec, from, keep<typename Source::value_type>{magnitude_bits(guess)}, workspace);
  if (count < k || count > most) {
    return -1;
  }
  workspace.put_aside();
  return count;
}

/// The range from a magnitude that all candidates reach to the largest of them: the fewer digits, the narrower it is.
template <execution_space E, gradient_index Index, gradient_value Value>
magnitude_range<Value> range_above(E const& exec, candidates<Index, Value, typename E::memory_space> from,
                                   bits_of<Value> floor) {
  signed_bits_of<Value> largest = 0;
  Kokkos::parallel_reduce(
      "oktopk::select::largest", detail::index_range<E>(exec, 0, from.size()),
      KOKKOS_LAMBDA(std::int64_t i, signed_bits_of<Value> & most) {
        auto const magnitude = static_cast<signed_bits_of<Value>>(magnitude_bits(from.values.data()[i]));
        most = magnitude > most ? magnitude : most;
      },
      Kokkos::Max<signed_bits_of<Value>>(largest));
  magnitude_range<Value> range{floor, 1};
  // The last place of a range is nobody's.
  while (range.bits < magnitude_bit_count<Value> &&
         (static_cast<bits_of<Value>>(largest) - floor + 1) >> range.bits != 0) {
    range.bits += 1;
  }
  return range.bits < magnitude_bit_count<Value> ? range : magnitude_range<Value>{};
}

/// The k-th magnitude among at least k candidates of one rank that all reach `floor`.
template <execution_space E, gradient_index Index, gradient_value Value>
kth<Value> kth_above(E const& exec, candidates<Index, Value, typename E::memory_space> from, std::int64_t k,
                     bits_of<Value> floor, selection_workspace<Index, Value, E>& workspace) {
  return kth_magnitude(exec, from, k, workspace, range_above<E, Index, Value>(exec, from, floor));
}

/// The k-th magnitude where no few candidates hold it, because very many tie, or are about to.
template <execution_space E, gradient_index Index, gradient_value Value>
kth<Value> kth_among_ties(E const& exec, candidates<Index, Value, typename E::memory_space> from, std::int64_t k,
                          Value likely, selection_workspace<Index, Value, E>& workspace) {
  kth<Value> found;
  return confirm_ties<E, Index, Value>(exec, from, k, likely, found) ? found : kth_magnitude(exec, from, k, workspace);
}

} // namespace detail

/// The exact k-th largest magnitude of one rank's candidates, for the price of little more than one read of them.
///
/// What a sample says is certainly below the k-th magnitude narrows the candidates to few, in which the histograms of
/// `kth_magnitude` find it; only where the sample misleads do these read all. k must be positive. Overwrites the
/// selection in the workspace.
template <execution_space E, gradient_index Index, gradient_value Value>
kth<Value> kth_magnitude_by_narrowing(E const& exec, candidates<Index, Value, typename E::memory_space> from,
                                      std::int64_t k, selection_workspace<Index, Value, E>& workspace) {
  if (detail::few_candidates(k) >= from.size()) {
    return kth_magnitude(exec, from, k, workspace);
  }
  auto const sampled = detail::guess_from_sample(exec, from, k, workspace);
  std::int64_t const count = detail::narrow(exec, from, k, sampled.safe, workspace);
  if (count < 0) {
    return detail::kth_among_ties<E, Index, Value>(exec, from, k, sampled.likely, workspace);
  }
  return detail::kth_above(exec, candidates<Index, Value, typename E::memory_space>(workspace.aside(count)), k,
                           detail::magnitude_bits(sampled.safe), workspace);
}

} // namespace oktopk
