// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dense/suite.hpp"

#include <oktopk/dense/ring.hpp>

using namespace oktopk_tests;
using namespace oktopk_tests::dense;

namespace {

struct subject {
  template <class Comm, class Value>
  using algorithm = oktopk::ring_chunked<execution, Comm, Value>;

  static sent expected(int rank, int ranks, std::int64_t count) { return ring_sends(rank, ranks, count, 2); }
};

} // namespace

TEST_CASE("ring_chunked reduces, in the messages and bytes it says") {
  check_lossless<subject>();
}

TEST_CASE("ring_chunked sends 2S(P-1)/P bytes in 4(P-1) messages, Gloo's 2S in 4P less the round that is not needed") {
  for (int const ranks : rank_counts) {
    std::int64_t const count = 2 * ranks * 24;
    auto const got = run<subject>(whole_inputs<float>(ranks, count), reduction::sum);
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
    subject::algorithm<oktopk::in_process_communicator, float> algorithm;
    algorithm.run(exec, comm, values.data(), values.data(), 10, reduction::max);
  });
  CHECK(unlike(all, oktopk::fault::option_out_of_range, "only a sum can tell what it rounded off") == "");
}
