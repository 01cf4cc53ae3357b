// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dense/suite.hpp"

#include <oktopk/dense/recursive_doubling.hpp>

using namespace oktopk_tests;
using namespace oktopk_tests::dense;

namespace {

struct subject {
  template <class Comm, class Value>
  using algorithm = oktopk::recursive_doubling<execution, Comm, Value>;

  // log2 P messages of everything, or of the power of two below, and one more on the even rank of a pair.
  static sent expected(int rank, int ranks, std::int64_t count) {
    if (count == 0) {
      return {};
    }
    int core = 1;
    int rounds = 0;
    for (; 2 * core <= ranks; core *= 2) {
      rounds += 1;
    }
    bool const in_pair = rank < 2 * (ranks - core);
    std::int64_t const messages = in_pair && rank % 2 == 1 ? 1 : rounds + (in_pair ? 1 : 0);
    return {messages, messages * count};
  }
};

} // namespace

TEST_CASE("recursive_doubling reduces, in the messages and bytes it says") {
  check_lossless<subject>();
}
