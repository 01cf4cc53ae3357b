// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dense/suite.hpp"

#include <oktopk/comm/collectives.hpp>
#include <oktopk/dense/halving_doubling.hpp>

using namespace oktopk_tests;
using namespace oktopk_tests::dense;

namespace {

// The part of a vector that a place of a block of `size` ends up with, cut in halves by the place's bits.
std::int64_t part_of(std::int64_t count, int place, int size) {
  std::int64_t width = count;
  for (int bit = 1; bit < size; bit *= 2) {
    width = (place & bit) == 0 ? width / 2 : width - width / 2;
  }
  return width;
}

struct subject {
  template <class Comm, class Value>
  using algorithm = oktopk::halving_doubling<execution, Comm, Value>;

  static sent expected(int rank, int ranks, std::int64_t count) {
    sent all;
    auto const message = [&](std::int64_t width) {
      all.messages += width > 0 ? 1 : 0;
      all.values += width;
    };
    int base = 0;
    int before = 0; // the size of the block before
    for (int bit = 1 << 20; bit > 0; bit /= 2) {
      if ((ranks & bit) == 0) {
        continue;
      }
      if (rank < base || rank >= base + bit) {
        base += bit;
        before = bit;
        continue;
      }
      int const place = rank - base;
      for (int half = 1; half < bit; half *= 2) {
        message(part_of(count, place ^ half, 2 * half)); // halving: what the partner keeps
        message(part_of(count, place, 2 * half));        // doubling: what this rank has
      }
      for (int there = place; there < before; there += bit) {
        message(part_of(count, there, before)); // up, one part for each rank of the larger block
      }
      if ((ranks & (bit - 1)) != 0) {
        message(part_of(count, place, bit)); // down to the smaller block
      }
      break;
    }
    return all;
  }
};

} // namespace

TEST_CASE("halving_doubling reduces, in the messages and bytes it says") {
  check_lossless<subject>();
}

TEST_CASE("halving_doubling sends 2S(P-1)/P bytes in 2 log2 P messages where P is a power of two") {
  for (int const ranks : {1, 2, 4, 8, 16}) {
    auto const got = run<subject>(whole_inputs<double>(ranks, 16 * 5), reduction::sum);
    for (auto const& traffic : got.traffic) {
      CHECK(traffic.messages_sent == 2 * 2 * oktopk::detail::ceil_log2(ranks));
      CHECK(traffic.bytes_sent == 2 * 2 * 16 * 5 * 8 / ranks * (ranks - 1));
    }
  }
}
