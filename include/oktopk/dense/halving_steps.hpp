// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/dense/pieces.hpp>

#include <algorithm>
#include <cstdint>

namespace oktopk::detail {

/// P ranks as blocks of powers of two, the largest first; where this rank is, and the blocks beside its own.
struct binary_blocks {
  int base = 0;    ///< first rank of this rank's block
  int size = 1;    ///< ranks of it
  int larger = 0;  ///< size of the block before, 0 where there is none
  int smaller = 0; ///< size of the block behind, 0 where there is none

  binary_blocks(int rank, int ranks) {
    int bit = 1;
    while (bit * 2 <= ranks) {
      bit *= 2;
    }
    int begin = 0;
    for (; bit > 0; bit /= 2) {
      if ((ranks & bit) == 0) {
        continue;
      }
      if (rank >= begin + bit) {
        larger = bit;
      } else if (rank >= begin) {
        base = begin;
        size = bit;
      } else {
        smaller = bit;
        return;
      }
      begin += bit;
    }
  }
};

/// The node of a tree of halves that a path leads to: bit 0 of the path tells the half of the vector (0 the lower one),
/// bit 1 the half of that, and so on, to `depth` bits.
inline piece halved(std::int64_t count, std::int64_t path, int depth) {
  std::int64_t begin = 0;
  std::int64_t end = count;
  for (int level = 0; level < depth; ++level) {
    std::int64_t const middle = begin + (end - begin) / 2;
    ((path >> level & 1) == 0 ? end : begin) = middle;
  }
  return {0, begin, end - begin};
}

/// The messages of recursive halving in a block of 2^`steps` ranks. In step i a place keeps the node of its first i+1
/// bits and gives the other half of its node away. What is kept is received in pieces: the nodes of it at depth
/// `fewest_halves`, or itself where it lies deeper.
///
/// Pieces are in the order in which the place gives them on: in the next step, in the step after, ..., never. So the
/// pieces of the first half are, in order, those that the next step sends.
class halving_steps {
public:
  halving_steps() = default;
  halving_steps(std::int64_t count, int steps, int fewest_halves)
      : count_(count), steps_(steps), fewest_halves_(fewest_halves) {}

  int steps() const { return steps_; }
  std::int64_t pieces(int step) const { return std::int64_t(1) << (depth(step) - step - 1); }

  /// Number of pieces of the steps before one.
  std::int64_t first(int step) const {
    std::int64_t sum = 0;
    for (int each = 0; each < step; ++each) {
      sum += pieces(each);
    }
    return sum;
  }

  std::int64_t all() const { return first(steps_); }

  /// The part that all steps leave to a place.
  piece part_of(int place) const { return halved(count_, place, steps_); }

  piece piece_of(int place, int step, std::int64_t number) const {
    std::int64_t path = place & ((std::int64_t(2) << step) - 1);
    for (int level = step + 1; level < depth(step); ++level) {
      // Of the levels below the last step the lower half comes first.
      std::int64_t const own = level < steps_ ? place >> level & 1 : 1;
      std::int64_t const later = number >> (depth(step) - 1 - level) & 1;
      path |= (later == 0 ? 1 - own : own) << level;
    }
    return halved(count_, path, depth(step));
  }

  std::int64_t longest_piece() const {
    std::int64_t const nodes = std::int64_t(1) << depth(0);
    return count_ / nodes + (count_ % nodes != 0 ? 1 : 0);
  }

private:
  int depth(int step) const { return std::max(step + 1, fewest_halves_); }

  std::int64_t count_ = 0;
  int steps_ = 0;
  int fewest_halves_ = 0;
};

} // namespace oktopk::detail
