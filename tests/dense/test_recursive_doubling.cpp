// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dense/coded_suite.hpp"

#include <oktopk/dense/recursive_doubling.hpp>

using namespace oktopk_tests;
using namespace oktopk_tests::dense;

namespace {

// log2 P messages of everything, or of the power of two below, and `more` on the even rank of a pair.
std::int64_t messages(int rank, int ranks, std::int64_t count, std::int64_t more) {
  int const rounds = static_cast<int>(std::bit_width(static_cast<unsigned>(ranks))) - 1;
  bool const in_pair = rank < 2 * (ranks - (1 << rounds));
  return count == 0 ? 0 : in_pair && rank % 2 == 1 ? 1 : rounds + (in_pair ? more : 0);
}

struct plain_doubling {
  template <class Comm, class Value>
  using algorithm = oktopk::recursive_doubling<execution, Comm, Value>;

  static sent expected(int rank, int ranks, std::int64_t count) {
    std::int64_t const all = messages(rank, ranks, count, 1);
    return {all, all * count};
  }
};

template <class Codec, codec_level Level>
struct doubling_subject : coded_subject<oktopk::recursive_doubling, Codec, Level> {
  template <class Value>
  static std::pair<std::int64_t, std::int64_t> expected_bytes(int rank, int ranks, std::int64_t count) {
    std::int64_t const all = messages(rank, ranks, count, Level == codec_level::collective ? 2 : 1);
    return {all, all * Codec().template encoded_bytes<Value>(count)};
  }
};

} // namespace

TEST_CASE("recursive_doubling reduces, in the messages and bytes it says") {
  check_lossless<plain_doubling>();
}

TEST_CASE("recursive_doubling of codecs passes the suite") {
  check_coded<oktopk::recursive_doubling, doubling_subject, plain_doubling>({1, 2, 4, 8, 16}); // where no ranks fold
}
