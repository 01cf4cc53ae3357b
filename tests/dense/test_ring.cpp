// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dense/suite.hpp"

#include <oktopk/dense/ring.hpp>

using namespace oktopk_tests;
using namespace oktopk_tests::dense;

namespace {

struct subject {
  template <class Comm, class Value>
  using algorithm = oktopk::ring<execution, Comm, Value>;

  static sent expected(int, int ranks, std::int64_t count) {
    return count == 0 ? sent{} : sent{ranks - 1, (ranks - 1) * count};
  }
};

struct chunked {
  template <class Comm, class Value>
  using algorithm = oktopk::ring_chunked<execution, Comm, Value>;

  static sent expected(int rank, int ranks, std::int64_t count) { return ring_sends(rank, ranks, count, 2); }
};

// Sub-chunks of so many bytes; a sub-chunk of 40 bytes does not divide the blocks of the tests' lengths.
template <std::int64_t Bytes, std::int64_t Ahead>
struct pipelined {
  template <class Comm, class Value>
  struct algorithm : oktopk::ring_pipelined<execution, Comm, Value> {
    algorithm() : oktopk::ring_pipelined<execution, Comm, Value>({.chunk_bytes = Bytes, .ahead = Ahead}) {}
  };

  template <class Value>
  static std::int64_t pieces(int ranks, std::int64_t count) {
    std::int64_t const block = (count + ranks - 1) / ranks;
    std::int64_t const chunk = Bytes / static_cast<std::int64_t>(sizeof(Value));
    return std::max<std::int64_t>(2, (block + chunk - 1) / chunk);
  }
};

template <class Value, std::int64_t Bytes>
struct counted_pipelined : pipelined<Bytes, 3> {
  static sent expected(int rank, int ranks, std::int64_t count) {
    return ring_sends(rank, ranks, count, pipelined<Bytes, 3>::template pieces<Value>(ranks, count));
  }
};

} // namespace

TEST_CASE("ring reduces, in the messages and bytes it says") {
  check_lossless<subject>();
}

TEST_CASE("ring has room for what waits on many ranks") {
  for (int const ranks : {17, 31, 32, 33, 63, 64, 65}) {
    auto const inputs = whole_inputs<float>(ranks, 5);
    auto const got = run<subject>(inputs, reduction::sum);
    CHECK(got.results == std::vector<std::vector<float>>(inputs.size(), reduced(inputs, reduction::sum)));
  }
}

TEST_CASE("ring_chunked reduces, in the messages and bytes it says") {
  check_lossless<chunked>();
}

TEST_CASE("ring_chunked sends 2S(P-1)/P bytes in 4(P-1) messages, Gloo's 2S in 4P less the round that is not needed") {
  for (int const ranks : rank_counts) {
    std::int64_t const count = 2 * ranks * 24;
    auto const got = run<chunked>(whole_inputs<float>(ranks, count), reduction::sum);
    for (auto const& traffic : got.traffic) {
      CHECK(traffic.messages_sent == 2 * 4 * (ranks - 1));
      CHECK(traffic.bytes_sent == 2 * 2 * 4 * count / ranks * (ranks - 1));
      CHECK(traffic.bytes_received == traffic.bytes_sent);
    }
  }
}

TEST_CASE("what is lost is told for sums alone, on every rank") {
  auto const all = failures_of(3, [](oktopk::in_process_communicator comm) {
    execution const exec;
    auto const values = to_view(std::vector<float>(10, 1.0F));
    chunked::algorithm<oktopk::in_process_communicator, float> algorithm;
    algorithm.run(exec, comm, values.data(), values.data(), 10, reduction::max);
  });
  CHECK(unlike(all, oktopk::fault::option_out_of_range, "only a sum can tell what it rounded off") == "");
}

TEST_CASE("ring_pipelined reduces, in the messages and bytes it says") {
  CHECK(wrong_results<counted_pipelined<float, 40>, float>() == "");
  CHECK(wrong_results<counted_pipelined<double, 40>, double>() == "");
  CHECK(disagreement<counted_pipelined<float, 40>, float>() == "");
  CHECK(special_values_lost<counted_pipelined<float, 40>>() == "");
  CHECK(wrong_volume<counted_pipelined<float, 40>, float>() == "");
  CHECK(wrong_volume<counted_pipelined<double, 40>, double>() == "");
  CHECK(wrong_when_staged<counted_pipelined<float, 40>, float>() == "");
}

TEST_CASE("ring_pipelined sends a short vector as ring_chunked sends it") {
  for (int const ranks : {2, 3, 8}) {
    auto const inputs = rough_inputs<float>(ranks, 997);
    auto const got = run<pipelined<1 << 20, 4>>(inputs, reduction::sum);
    auto const expected = run<chunked>(inputs, reduction::sum);
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      CHECK(bits(got.results[rank]) == bits(expected.results[rank]));
      CHECK(got.traffic[rank].messages_sent == expected.traffic[rank].messages_sent);
      CHECK(got.traffic[rank].bytes_sent == expected.traffic[rank].bytes_sent);
    }
  }
}

TEST_CASE("ring_pipelined gives the same bits with few and with many receives posted ahead") {
  auto const inputs = rough_inputs<float>(5, 400);
  auto const one = run<pipelined<16, 1>>(inputs, reduction::sum);
  CHECK(bits(one.results[3]) == bits(run<pipelined<16, 7>>(inputs, reduction::sum).results[3]));
  CHECK(bits(one.results[3]) == bits(run<pipelined<16, 1000>>(inputs, reduction::sum).results[3]));
}

TEST_CASE("ring_pipelined says what is wrong with its options") {
  using algorithm = oktopk::ring_pipelined<execution, counting, double>;
  CHECK(algorithm().problem() == "");
  CHECK(algorithm({.chunk_bytes = 7}).problem() == "chunk_bytes = 7 of ring_pipelined is less than a value");
  CHECK(algorithm({.ahead = 0}).problem() == "ahead = 0 of ring_pipelined is not positive");
  CHECK(algorithm({.ahead = 9}).describe() != algorithm().describe());
}
