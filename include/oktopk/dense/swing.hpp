// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/dense/rabenseifner.hpp>

#include <string>

namespace oktopk {

namespace detail {

/// The pairs of Swing on a ring of 2^`steps` places: in step s an even place meets the one (1 - (-2)^(s+1)) / 3 places
/// further on, which is odd. So distances are 1, 1, 3, 5, 11, ... with alternating directions.
///
/// Before step s the same part is at all even places that are equal modulo 2^(s+1), and at the odd places that these
/// meet from step s on. So step s splits the part by bit s+1 of the even places, and the last step between the even and
/// the odd place.
struct swing_pairs {
  static std::string name() { return "swing"; }

  static int peer(int place, int step, int steps) {
    int const further = place % 2 == 0 ? distance(step) : -distance(step);
    return (place + further) & ((1 << steps) - 1);
  }

  static bool keeps_lower(int place, int step, int steps) {
    if (step == steps - 1) {
      return place % 2 == 0;
    }
    int const even = place % 2 == 0 ? place : place - distance(step + 1);
    return (even >> (step + 1) & 1) == 0;
  }

private:
  static int distance(int step) { return (1 + (step % 2 == 0 ? 1 : -1) * (2 << step)) / 3; }
};

} // namespace detail

/// Reduction of dense vectors by Swing, the bandwidth-optimal form (De Sensi et al., NSDI'24): reduce-scatter and
/// allgather between ranks that are near to each other on a ring.
///
/// As `rabenseifner` with other pairs: in step s ranks meet at distance (1 - (-2)^(s+1)) / 3 around the ring of all
/// ranks, in turn to the right and to the left. The first steps, which send the most, go to neighbours, and no distance
/// is above P/3: on rings and tori, where halving at distances P/2, P/4, ... shares links, fewer messages cross the
/// same link. Messages, words, memory and the treatment of a P that is no power of two are those of `rabenseifner`:
/// 2n(P-1)/P values in 2 log2 P messages. The result is the same to the bit everywhere.
template <execution_space E, communicator Comm, gradient_value Value>
class swing : public rabenseifner<E, Comm, Value, detail::plain_wire, detail::swing_pairs> {
  using base = rabenseifner<E, Comm, Value, detail::plain_wire, detail::swing_pairs>;

public:
  using base::base;
};

} // namespace oktopk
