// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/agreement.hpp>
#include <oktopk/core/kokkos_ext/bits.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace oktopk::detail {

/// What the selections of the last calls foretell of the next k-th magnitude: how far below the last one it will not
/// fall. The same on all ranks; it is computed with patterns of magnitudes, so that no rounding can differ.
template <gradient_value Value>
struct foresight {
  static constexpr signed_bits_of<Value> octave = signed_bits_of<Value>(1) << (std::numeric_limits<Value>::digits - 1);
  static constexpr std::int64_t most_misses = 6;
  static constexpr std::int64_t forgetting = 16; ///< hits that make up for a miss

  Value kth = 0;                             ///< the last k-th magnitude; none yet when 0
  signed_bits_of<Value> drift = 0;           ///< patterns by which it moves from call to call, smoothed
  signed_bits_of<Value> reach = octave / 96; ///< patterns from the floor to where it is expected
  std::int64_t misses = 0;                   ///< gathers that failed of late, up to `most_misses`
  std::int64_t pause = 0;                    ///< calls until a gather is tried again
  std::int64_t hits = 0;                     ///< gathers that did not fail since one did, modulo `forgetting`

  /// Sums that should be gathered beyond k, in multiples of k, while no gather fails. `reach` begins as if numbers of
  /// sums fell with the fourth power of magnitudes.
  static constexpr double extra = 1.0 / 32;

  bool is_sound() const {
    return is_finite_magnitude(kth) && drift >= -octave && drift <= octave && reach >= 0 && reach <= octave &&
           misses >= 0 && misses <= most_misses && pause >= 0 && pause <= (1 << most_misses) && hits >= 0 &&
           hits < forgetting;
  }

  bool is_ready() const { return kth > 0 && pause == 0; }

  /// The pattern of the magnitude that a few more than k sums should reach.
  bits_of<Value> floor() const {
    auto const next = static_cast<signed_bits_of<Value>>(magnitude_bits(kth)) + drift;
    return static_cast<bits_of<Value>>(std::max<signed_bits_of<Value>>(next - reach, 1));
  }

  /// Learns the k-th magnitude of a search; 0 if there were not so many sums.
  void learn_search(Value found) {
    move_to(found);
    pause = std::max<std::int64_t>(pause - 1, 0);
  }

  /// Learns from `gathered` sums, of which this is the k-th: the floor moves to where `extra` times k more are expected,
  /// and more after misses, by how densely these lie.
  void learn_hit(Value found, std::int64_t gathered, std::int64_t k) {
    auto const below = static_cast<double>(magnitude_bits(found)) - static_cast<double>(floor());
    double const wanted = extra * static_cast<double>(1 + misses) * static_cast<double>(k);
    double const surplus = static_cast<double>(std::max<std::int64_t>(gathered - k, 1));
    auto const before = static_cast<double>(reach);
    reach = limited(std::clamp(below * (wanted / surplus), before / 4, before * 4));
    move_to(found);
    hits = (hits + 1) % forgetting;
    misses -= hits == 0 && misses > 0 ? 1 : 0;
  }

  /// Learns that a gather had fewer than k sums, or too many of a rank. The pauses grow while it goes on.
  void learn_miss(bool too_few) {
    misses = std::min(misses + 1, most_misses);
    pause = std::int64_t(1) << (misses - 1);
    hits = 0;
    reach = limited((too_few ? 4.0 : 0.25) * static_cast<double>(reach));
  }

  void list_facts(agreement& terms) const {
    terms.fact("foreseen magnitude", kth).fact("drift", drift).fact("reach", reach);
    terms.fact("misses", misses).fact("pause", pause).fact("hits", hits);
  }

  bool operator==(foresight const&) const = default;

  template <class Foresight, class Visit>
  static void each_part(Foresight& carried, Visit& visit) {
    visit(carried.kth);
    visit(carried.drift);
    visit(carried.reach);
    visit(carried.misses);
    visit(carried.pause);
    visit(carried.hits);
  }

private:
  // A jump tells nothing of the next call.
  void move_to(Value found) {
    auto const moved = static_cast<signed_bits_of<Value>>(magnitude_bits(found)) -
                       static_cast<signed_bits_of<Value>>(magnitude_bits(kth));
    bool const jumps = kth == 0 || found == 0 || moved > octave / 4 || moved < -octave / 4;
    drift = jumps ? 0 : drift + (moved - drift) / 4;
    kth = found;
  }

  static signed_bits_of<Value> limited(double patterns) {
    return static_cast<signed_bits_of<Value>>(std::clamp(patterns, 64.0, static_cast<double>(octave)));
  }
};

} // namespace oktopk::detail
