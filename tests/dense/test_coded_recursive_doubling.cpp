// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dense/coded_suite.hpp"

#include <oktopk/dense/recursive_doubling.hpp>

using namespace oktopk_tests;
using namespace oktopk_tests::dense;

namespace {

template <class Codec, codec_level Level>
struct subject : coded_subject<oktopk::recursive_doubling, Codec, Level> {
  template <class Value>
  static std::pair<std::int64_t, std::int64_t> expected_bytes(int rank, int ranks, std::int64_t count) {
    int core = 1;
    std::int64_t messages = 0;
    for (; 2 * core <= ranks; core *= 2) {
      messages += 1;
    }
    if (rank < 2 * (ranks - core)) {
      bool const even = rank % 2 == 0;
      messages = even ? messages + (Level == codec_level::collective ? 2 : 1) : 1;
    }
    messages = count == 0 || ranks == 1 ? 0 : messages;
    return {messages, messages * Codec().template encoded_bytes<Value>(count)};
  }
};

struct raw {
  template <class Comm, class Value>
  using algorithm = oktopk::recursive_doubling<execution, Comm, Value>;
};

template <class Codec>
using collective = subject<Codec, codec_level::collective>;
template <class Codec>
using message = subject<Codec, codec_level::message>;

} // namespace

TEST_CASE("recursive_doubling of codecs passes the suite") {
  check_coded<subject, raw>();
}

TEST_CASE("recursive_doubling of stable codecs gives the same bits at both levels where no ranks fold") {
  CHECK(unlike_other<collective<oktopk::block_float>, message<oktopk::block_float>, float>({1, 2, 4, 8, 16}) == "");
}

TEST_CASE("recursive_doubling codes nothing below the cut-off") {
  using coded = oktopk::recursive_doubling<execution, counting, float, oktopk::coded_wire<oktopk::block_float>>;
  auto const inputs = rough_inputs<float>(3, 1000);
  auto const as_is =
      run_with(coded({.cutoff_bytes = 4001}), inputs, reduction::sum, true, [](auto inner) { return counting(inner); });
  CHECK(as_is.results == run<raw>(inputs, reduction::sum).results);
}
