// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dense/coded_suite.hpp"

#include <oktopk/dense/rabenseifner.hpp>

#include <functional>

using namespace oktopk_tests;
using namespace oktopk_tests::dense;

namespace {

// Calls `message` with the number of values of each message that a rank sends, of a vector that is cut at whole blocks.
void each_message(int rank, int ranks, std::int64_t count, std::int64_t block_size,
                  std::function<void(std::int64_t)> const& message) {
  int core = 1;
  while (2 * core <= ranks) {
    core *= 2;
  }
  int const folded = ranks - core;
  bool const in_pair = rank < 2 * folded;
  if (in_pair) {
    message(count);
  }
  if (in_pair && rank % 2 == 1) {
    return;
  }
  int const place = in_pair ? rank / 2 : rank - folded;
  auto const values = [&](std::int64_t begin, std::int64_t end) {
    return std::min(count, end * block_size) - std::min(count, begin * block_size);
  };
  std::int64_t begin = 0;
  std::int64_t end = (count + block_size - 1) / block_size;
  for (int distance = core / 2; distance > 0; distance /= 2) {
    std::int64_t const middle = begin + (end - begin) / 2;
    bool const lower = (place & distance) == 0;
    message(lower ? values(middle, end) : values(begin, middle));
    (lower ? end : begin) = middle;
    message(values(begin, end)); // on the way back
  }
}

struct raw {
  template <class Comm, class Value>
  using algorithm = oktopk::rabenseifner<execution, Comm, Value>;

  static sent expected(int rank, int ranks, std::int64_t count) {
    sent all;
    each_message(rank, ranks, count, 1, [&](std::int64_t values) {
      all.messages += values > 0 ? 1 : 0;
      all.values += values;
    });
    return all;
  }
};

template <class Codec, codec_level Level = codec_level::collective>
struct subject : coded_subject<oktopk::rabenseifner, Codec, Level> {
  template <class Value>
  static std::pair<std::int64_t, std::int64_t> expected_bytes(int rank, int ranks, std::int64_t count) {
    std::pair<std::int64_t, std::int64_t> all{0, 0};
    each_message(rank, ranks, count, Codec::block_size, [&](std::int64_t values) {
      all.first += values > 0 ? 1 : 0;
      all.second += Codec().template encoded_bytes<Value>(values);
    });
    return all;
  }
};

template <class Codec>
using message = subject<Codec, codec_level::message>;

} // namespace

TEST_CASE("rabenseifner of codecs passes the suite") {
  check_coded<subject, raw>();
}

TEST_CASE("rabenseifner reduces, in the messages and bytes it says") {
  check_lossless<raw>();
}

TEST_CASE("rabenseifner of stable codecs gives the same bits at both levels") {
  CHECK(unlike_other<subject<oktopk::block_float>, message<oktopk::block_float>, float>(all_rank_counts) == "");
}

TEST_CASE("rabenseifner codes nothing below the cut-off") {
  using coded = oktopk::rabenseifner<execution, counting, float, oktopk::coded_wire<oktopk::block_float>>;
  auto const inputs = rough_inputs<float>(3, 1000);
  auto const as_is =
      run_with(coded({.cutoff_bytes = 4001}), inputs, reduction::sum, true, [](auto inner) { return counting(inner); });
  CHECK(as_is.results == run<raw>(inputs, reduction::sum).results);
  CHECK(coded({.codec = {.rate = 9}}).name() == "rabenseifner of block_float 9");
}

TEST_CASE("rabenseifner of a codec codes nothing on one rank, so it takes the largest value") {
  std::vector<std::vector<float>> const inputs{{std::numeric_limits<float>::max(), 1.0F + 1.0F / 4096, -0.0F}};
  for (auto const& got : {run<subject<oktopk::bfloat16>>(inputs, reduction::sum, true),
                          run<message<oktopk::bfloat16>>(inputs, reduction::sum, true)}) {
    CHECK(bits(got.results[0]) == bits(inputs[0]));
    CHECK(got.lost[0] == std::vector<float>(3, 0.0F));
  }
}
