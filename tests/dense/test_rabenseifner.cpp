// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dense/coded_suite.hpp"

#include <oktopk/dense/rabenseifner.hpp>

using namespace oktopk_tests;
using namespace oktopk_tests::dense;

namespace {

struct plain_rabenseifner {
  template <class Comm, class Value>
  using algorithm = oktopk::rabenseifner<execution, Comm, Value>;

  static sent expected(int rank, int ranks, std::int64_t count) {
    sent all;
    each_halving_message(rank, ranks, count, 1, all);
    return all;
  }
};

template <class Codec, codec_level Level = codec_level::collective>
struct rabenseifner_subject : coded_subject<oktopk::rabenseifner, Codec, Level> {
  template <class Value>
  static std::pair<std::int64_t, std::int64_t> expected_bytes(int rank, int ranks, std::int64_t count) {
    sent_bytes<Codec, Value> all;
    each_halving_message(rank, ranks, count, Codec::block_size, all);
    return all;
  }
};

} // namespace

TEST_CASE("rabenseifner of codecs passes the suite") {
  check_coded<oktopk::rabenseifner, rabenseifner_subject, plain_rabenseifner>();
}

TEST_CASE("rabenseifner reduces, in the messages and bytes it says") {
  check_lossless<plain_rabenseifner>();
}

TEST_CASE("rabenseifner of a codec codes nothing on one rank, so it takes the largest value") {
  std::vector<std::vector<float>> const inputs{{std::numeric_limits<float>::max(), 1.0F + 1.0F / 4096, -0.0F}};
  for (auto const& got :
       {run<rabenseifner_subject<oktopk::bfloat16>>(inputs, reduction::sum, true),
        run<rabenseifner_subject<oktopk::bfloat16, codec_level::message>>(inputs, reduction::sum, true)}) {
    CHECK(bits(got.results[0]) == bits(inputs[0]));
    CHECK(got.lost[0] == std::vector<float>(3, 0.0F));
  }
}

TEST_CASE("rabenseifner of a codec goes by its name") {
  using coded = oktopk::rabenseifner<execution, counting_any, float, oktopk::coded_wire<oktopk::block_float>>;
  CHECK(coded({.codec = {.rate = 9}}).name() == "rabenseifner of block_float 9");
}
