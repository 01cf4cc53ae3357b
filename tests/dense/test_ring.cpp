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
