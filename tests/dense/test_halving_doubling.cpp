// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dense/suite.hpp"

#include <oktopk/comm/collectives.hpp>
#include <oktopk/dense/halving_doubling.hpp>

#include <ctime>

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

struct halving_subject {
  template <class Comm, class Value>
  using algorithm = oktopk::halving_doubling<execution, Comm, Value>;

  static sent expected(int rank, int ranks, std::int64_t count) {
    sent message;
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
    return message;
  }
};

/// Messages cut into pieces of so many bytes at most.
template <std::int64_t Bytes, std::int64_t Ahead>
struct cut_subject {
  template <class Comm, class Value>
  struct algorithm : oktopk::halving_doubling<execution, Comm, Value> {
    algorithm() : oktopk::halving_doubling<execution, Comm, Value>({.chunk_bytes = Bytes, .ahead = Ahead}) {}
  };
};

} // namespace

TEST_CASE("halving_doubling cuts long messages, and gives the same bits in the same bytes") {
  CHECK(unlike_other<halving_subject, cut_subject<40, 4>, float>(all_rank_counts, true) == "");
  CHECK(unlike_other<halving_subject, cut_subject<4, 1>, float>(all_rank_counts, true) == "");
  CHECK(unlike_other<halving_subject, cut_subject<300, 3>, float>(all_rank_counts, true) == "");
  CHECK(unlike_other<halving_subject, cut_subject<1000, 1000>, float>(all_rank_counts, true) == "");
  CHECK(wrong_results<cut_subject<64, 2>, double>() == "");
  CHECK(special_values_lost<cut_subject<40, 4>>() == "");
  CHECK(wrong_when_staged<cut_subject<40, 4>, float>() == "");
  CHECK(wrong_when_staged<cut_subject<500, 2>, double>() == "");
}

TEST_CASE("halving_doubling sends as many more messages as pieces are cut") {
  // 1024 values of 4 bytes, on 8 ranks: halves of 2048, 1024 and 512 bytes.
  auto const got = run<cut_subject<512, 4>>(whole_inputs<float>(8, 1024), reduction::sum);
  for (auto const& traffic : got.traffic) {
    CHECK(traffic.messages_sent == 2 * 2 * (4 + 2 + 1));
  }
}

TEST_CASE("halving_doubling says what is wrong with its options") {
  check_cut_options<oktopk::halving_doubling<execution, counting_any, double>>("halving_doubling");
}

TEST_CASE("halving_doubling reduces, in the messages and bytes it says") {
  check_lossless<halving_subject>();
}

TEST_CASE("halving_doubling sends 2S(P-1)/P bytes in 2 log2 P messages where P is a power of two") {
  for (int const ranks : {1, 2, 4, 8, 16}) {
    auto const got = run<halving_subject>(whole_inputs<double>(ranks, 16 * 5), reduction::sum);
    for (auto const& traffic : got.traffic) {
      CHECK(traffic.messages_sent == 2 * 2 * oktopk::detail::ceil_log2(ranks));
      CHECK(traffic.bytes_sent == 2 * 2 * 16 * 5 * 8 / ranks * (ranks - 1));
    }
  }
}

namespace {

/// Seconds of the processor that a sum of so many values takes in messages of one value each, on 3 ranks.
double seconds_of_short_messages(std::int64_t count) {
  double least = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::clock_t const begun = std::clock();
    oktopk::in_process::run(3, [&](oktopk::in_process_communicator comm) {
      std::vector<float> values(static_cast<std::size_t>(count), 1.0F);
      oktopk::halving_doubling<execution, oktopk::in_process_communicator, float> reduce({.chunk_bytes = 4});
      reduce.run(execution(), comm, values.data(), nullptr, count);
    });
    least = std::min(least, static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC);
  }
  return least;
}

} // namespace

// 32 times the messages take 32 times as long, and more on a busy machine; 1000 times where each message looks at all that
// are under way.
TEST_CASE("halving_doubling in process takes time in proportion to its messages, however many are under way") {
  if constexpr (std::is_same_v<memory, Kokkos::HostSpace>) { // else a kernel a message outweighs the message
    CHECK(seconds_of_short_messages(160'000) < 200 * seconds_of_short_messages(5'000));
  }
}
