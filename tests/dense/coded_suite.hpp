// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dense/suite.hpp"

#include <oktopk/codec/block_float.hpp>
#include <oktopk/codec/concept.hpp>
#include <oktopk/codec/elementwise.hpp>
#include <oktopk/dense/coded_wire.hpp>

// What dense allreduces with coded messages are put through beside.
namespace oktopk_tests::dense {

using oktopk::codec_level;

inline std::vector<int> const all_rank_counts(std::begin(rank_counts), std::end(rank_counts));

/// Each input is a sum of what all ranks lost and what came out, as far as float can tell; all ranks have the same
/// bits; and the result is no farther from the sum than one rounding of partial sums by every rank allows.
template <class Subject, class Value>
std::string unsound(int ranks, std::int64_t count) {
  auto const inputs = rough_inputs<Value>(ranks, count);
  auto const got = run<Subject>(inputs, reduction::sum, true);
  auto const codec = Subject::codec();
  double largest = 0; // partial sum of all ranks, at most
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    double magnitude = 0;
    for (auto const& input : inputs) {
      magnitude += std::fabs(static_cast<double>(input[i]));
    }
    largest = std::max(largest, magnitude);
  }
  double const bound = (ranks + 1) * codec.template error_bound<Value>(2 * largest);
  double const fuzz = largest * 64 * static_cast<double>(std::numeric_limits<Value>::epsilon());
  std::string const where = std::to_string(ranks) + " ranks, " + std::to_string(count) + " values: ";
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    if (bits(got.results[rank]) != bits(got.results[0])) {
      return where + "rank " + std::to_string(rank) + " has other bits than rank 0";
    }
  }
  double all_lost = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    double sum = 0;
    double lost = 0;
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      sum += static_cast<double>(inputs[rank][i]);
      lost += static_cast<double>(got.lost[rank][i]);
      all_lost += std::fabs(static_cast<double>(got.lost[rank][i]));
    }
    auto const result = static_cast<double>(got.results[0][i]);
    if (!(std::fabs(result + lost - sum) <= fuzz)) {
      return where + "what was lost does not make up for it at " + std::to_string(i);
    }
    if (!(std::fabs(result - sum) <= bound + fuzz)) {
      return where + "too far from the sum at " + std::to_string(i);
    }
  }
  bool const should_lose = !Subject::lossless && count > 100 && ranks > 1;
  return should_lose && all_lost == 0 ? where + "nothing is said to be lost" : std::string();
}

template <class Subject, class Value>
std::string unsound_somewhere() {
  for (int const ranks : rank_counts) {
    for (std::int64_t const count : {std::int64_t(0), std::int64_t(1), std::int64_t(ranks - 1), std::int64_t(64),
                                     std::int64_t(65 * ranks), std::int64_t(997)}) {
      if (auto const text = unsound<Subject, Value>(ranks, count); !text.empty()) {
        return text;
      }
    }
  }
  return {};
}

/// Maxima and minima are those of rounded values, the same everywhere.
template <class Subject, class Value>
std::string wrong_extremes() {
  for (int const ranks : rank_counts) {
    for (reduction const op : {reduction::max, reduction::min}) {
      auto const inputs = rough_inputs<Value>(ranks, 301);
      auto const got = run<Subject>(inputs, op);
      auto const expected = reduced(inputs, op);
      double largest = 0;
      for (auto const& input : inputs) {
        for (Value const value : input) {
          largest = std::max(largest, std::fabs(static_cast<double>(value)));
        }
      }
      double const bound = (ranks + 1) * Subject::codec().template error_bound<Value>(2 * largest);
      for (auto const& result : got.results) {
        if (bits(result) != bits(got.results[0])) {
          return std::to_string(ranks) + " ranks: other bits than on rank 0";
        }
        for (std::size_t i = 0; i < result.size(); ++i) {
          if (!(std::fabs(static_cast<double>(result[i]) - static_cast<double>(expected[i])) <= bound)) {
            return std::to_string(ranks) + " ranks: too far from the extreme at " + std::to_string(i);
          }
        }
      }
    }
  }
  return {};
}

/// The same bits as another subject's, of results and of losses.
template <class Subject, class Other, class Value>
std::string unlike_other(std::vector<int> const& numbers_of_ranks) {
  for (int const ranks : numbers_of_ranks) {
    for (std::int64_t const count : lengths(ranks)) {
      for (reduction const op : operations) {
        auto const inputs = rough_inputs<Value>(ranks, count);
        auto const one = run<Subject>(inputs, op, op == reduction::sum);
        auto const other = run<Other>(inputs, op, op == reduction::sum);
        for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
          if (bits(one.results[rank]) != bits(other.results[rank]) || one.lost[rank] != other.lost[rank]) {
            return std::to_string(ranks) + " ranks, " + std::to_string(count) + " values: not the same on rank " +
                   std::to_string(rank);
          }
        }
      }
    }
  }
  return {};
}

/// A value of one rank that is not finite reaches every rank in its place.
template <class Subject>
std::string hidden_fault() {
  for (int const ranks : {2, 3, 5, 8}) {
    for (float const bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      for (std::size_t const at : {std::size_t(0), std::size_t(150), std::size_t(299)}) {
        auto inputs = rough_inputs<float>(ranks, 300);
        inputs[static_cast<std::size_t>(ranks) / 2][at] = bad;
        auto const got = run<Subject>(inputs, reduction::sum);
        for (auto const& result : got.results) {
          if (std::isfinite(result[at])) {
            return std::to_string(ranks) + " ranks: finite at " + std::to_string(at);
          }
        }
      }
    }
  }
  return {};
}

/// The bytes that a rank sends, against a formula of the subject's.
template <class Subject, class Value>
std::string wrong_coded_volume() {
  for (int const ranks : rank_counts) {
    for (std::int64_t const count : lengths(ranks)) {
      auto const got = run<Subject>(rough_inputs<Value>(ranks, count), reduction::sum);
      for (int rank = 0; rank < ranks; ++rank) {
        auto const& traffic = got.traffic[static_cast<std::size_t>(rank)]; // of two calls
        std::pair<std::int64_t, std::int64_t> const actual{traffic.messages_sent / 2, traffic.bytes_sent / 2};
        std::pair<std::int64_t, std::int64_t> const expected =
            Subject::template expected_bytes<Value>(rank, ranks, count);
        std::string const where =
            std::to_string(ranks) + " ranks, " + std::to_string(count) + " values, rank " + std::to_string(rank) + ": ";
        if (actual != expected) {
          return where + std::to_string(actual.first) + " messages, " + std::to_string(actual.second) +
                 " bytes sent, expected " + std::to_string(expected.first) + " and " + std::to_string(expected.second);
        }
        if (traffic.words_sent() / 2 > got.bound_words) {
          return where + "more than the bound";
        }
      }
    }
  }
  return {};
}

/// A base of subjects: `Algorithm` with `Codec` at a level, whatever the length.
template <template <class, class, class, class> class Algorithm, class Codec, codec_level Level>
struct coded_subject {
  static constexpr bool lossless = Codec::lossless;
  static Codec codec() { return {}; }

  template <class Comm, class Value>
  struct algorithm : Algorithm<execution, Comm, Value, oktopk::coded_wire<Codec>> {
    algorithm()
        : Algorithm<execution, Comm, Value, oktopk::coded_wire<Codec>>(
              {.codec = {}, .level = Level, .cutoff_bytes = 0}) {}
  };
};

/// What holds of `Subject<Codec, Level>` whatever the algorithm; `Raw` is that algorithm without a codec.
template <template <class, codec_level> class Subject, class Raw>
void check_coded() {
  using oktopk::bfloat16;
  using oktopk::block_float;
  using oktopk::identity;
  constexpr auto collective = codec_level::collective;
  constexpr auto message = codec_level::message;
  SECTION("of identity it is the plain algorithm, to the bit") {
    CHECK(unlike_other<Subject<identity, collective>, Raw, float>(all_rank_counts) == "");
    CHECK(unlike_other<Subject<identity, message>, Raw, double>(all_rank_counts) == "");
  }
  SECTION("of lossy codecs it tells what it lost") {
    CHECK(unsound_somewhere<Subject<block_float, collective>, float>() == "");
    CHECK(unsound_somewhere<Subject<block_float, collective>, double>() == "");
    CHECK(unsound_somewhere<Subject<bfloat16, collective>, float>() == "");
    CHECK(unsound_somewhere<Subject<block_float, message>, float>() == "");
    CHECK(wrong_extremes<Subject<block_float, collective>, float>() == "");
  }
  SECTION("it sends what the codec says") {
    CHECK(wrong_coded_volume<Subject<block_float, collective>, float>() == "");
    CHECK(wrong_coded_volume<Subject<bfloat16, collective>, double>() == "");
    CHECK(wrong_coded_volume<Subject<block_float, message>, float>() == "");
  }
  SECTION("it hides no bad value") {
    CHECK(hidden_fault<Subject<block_float, collective>>() == "");
    CHECK(hidden_fault<Subject<block_float, message>>() == "");
  }
  SECTION("it gives the same bits with staging") {
    CHECK(wrong_when_staged<Subject<block_float, collective>, float>() == "");
    CHECK(wrong_when_staged<Subject<bfloat16, collective>, double>() == "");
    CHECK(wrong_when_staged<Subject<block_float, message>, float>() == "");
  }
}

} // namespace oktopk_tests::dense
