// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dense/suite.hpp"

#include <oktopk/dense/ring.hpp>

using namespace oktopk_tests;
using namespace oktopk_tests::dense;

namespace {

// Sub-chunks of so many bytes; a sub-chunk of 40 bytes does not divide the blocks of the tests' lengths.
template <std::int64_t Bytes, std::int64_t Ahead>
struct subject {
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
struct counted_subject : subject<Bytes, 3> {
  static sent expected(int rank, int ranks, std::int64_t count) {
    return ring_sends(rank, ranks, count, subject<Bytes, 3>::template pieces<Value>(ranks, count));
  }
};

struct ring_chunked {
  template <class Comm, class Value>
  using algorithm = oktopk::ring_chunked<execution, Comm, Value>;
};

} // namespace

TEST_CASE("ring_pipelined reduces, in the messages and bytes it says") {
  CHECK(wrong_results<counted_subject<float, 40>, float>() == "");
  CHECK(wrong_results<counted_subject<double, 40>, double>() == "");
  CHECK(disagreement<counted_subject<float, 40>, float>() == "");
  CHECK(special_values_lost<counted_subject<float, 40>>() == "");
  CHECK(wrong_volume<counted_subject<float, 40>, float>() == "");
  CHECK(wrong_volume<counted_subject<double, 40>, double>() == "");
  CHECK(wrong_when_staged<counted_subject<float, 40>, float>() == "");
}

TEST_CASE("ring_pipelined sends a short vector as ring_chunked sends it") {
  for (int const ranks : {2, 3, 8}) {
    auto const inputs = rough_inputs<float>(ranks, 997);
    auto const pipelined = run<subject<1 << 20, 4>>(inputs, reduction::sum);
    auto const chunked = run<ring_chunked>(inputs, reduction::sum);
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      CHECK(bits(pipelined.results[rank]) == bits(chunked.results[rank]));
      CHECK(pipelined.traffic[rank].messages_sent == chunked.traffic[rank].messages_sent);
      CHECK(pipelined.traffic[rank].bytes_sent == chunked.traffic[rank].bytes_sent);
    }
  }
}

TEST_CASE("ring_pipelined gives the same bits with few and with many receives posted ahead") {
  auto const inputs = rough_inputs<float>(5, 400);
  auto const one = run<subject<16, 1>>(inputs, reduction::sum);
  CHECK(bits(one.results[3]) == bits(run<subject<16, 7>>(inputs, reduction::sum).results[3]));
  CHECK(bits(one.results[3]) == bits(run<subject<16, 1000>>(inputs, reduction::sum).results[3]));
}

TEST_CASE("ring_pipelined says what is wrong with its options") {
  using algorithm = oktopk::ring_pipelined<execution, counting, double>;
  CHECK(algorithm().problem() == "");
  CHECK(algorithm({.chunk_bytes = 7}).problem() == "chunk_bytes = 7 of ring_pipelined is less than a value");
  CHECK(algorithm({.ahead = 0}).problem() == "ahead = 0 of ring_pipelined is not positive");
  CHECK(algorithm({.ahead = 9}).describe() != algorithm().describe());
}
