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

/// The messages and bytes of a rank. Called with the values of one message after the other.
template <class Codec, class Value>
struct sent_bytes : std::pair<std::int64_t, std::int64_t> {
  void operator()(std::int64_t values) {
    first += values > 0 ? 1 : 0;
    second += Codec().template encoded_bytes<Value>(values);
  }
};

/// A base of subjects: `Algorithm` with `Codec` at a level, whatever the length.
template <template <class, class, class, class> class Algorithm, class Codec, codec_level Level>
struct coded_subject {
  static constexpr bool lossless = Codec::lossless;
  static constexpr std::int64_t segment = 50; // of no block's length a divisor
  static Codec codec() { return {}; }

  template <class Comm, class Value>
  struct algorithm : Algorithm<execution, Comm, Value, oktopk::coded_wire<Codec>> {
    using base = Algorithm<execution, Comm, Value, oktopk::coded_wire<Codec>>;

    algorithm() : base(how()) {}

    static typename base::options how() {
      typename base::options all;
      all.level = Level;
      all.cutoff_bytes = 0;
      SET_IF_THERE(all.segment, segment);
      return all;
    }
  };
};

/// What holds of `Subject<Codec, Level>` whatever the algorithm; `Raw` is that algorithm without a codec. A stable codec
/// gives the same bits at both levels with these numbers of ranks.
template <template <class, class, class, class> class Algorithm, template <class, codec_level> class Subject, class Raw>
void check_coded(std::vector<int> const& same_at_both_levels = all_rank_counts) {
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
    for (int const ranks : rank_counts) {
      CHECK(unsound<Subject<block_float, collective>, float>(ranks, 301, reduction::max) == "");
      CHECK(unsound<Subject<block_float, collective>, float>(ranks, 301, reduction::min) == "");
    }
  }
  SECTION("of stable codecs it gives the same bits at both levels") {
    CHECK(unlike_other<Subject<block_float, collective>, Subject<block_float, message>, float>(same_at_both_levels) ==
          "");
  }
  SECTION("it sends what the codec says") {
    CHECK(wrong_volume<Subject<block_float, collective>, float>() == "");
    CHECK(wrong_volume<Subject<bfloat16, collective>, double>() == "");
    CHECK(wrong_volume<Subject<block_float, message>, float>() == "");
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
  SECTION("it codes nothing below the cut-off") {
    using coded = Algorithm<execution, counting, float, oktopk::coded_wire<block_float>>;
    auto const inputs = rough_inputs<float>(4, 1000);
    auto const expected = run<Raw>(inputs, reduction::sum);
    coded const under({.cutoff_bytes = 4001});
    auto const as_is = run_with(under, inputs, reduction::sum, true);
    CHECK(as_is.results == expected.results);
    CHECK(as_is.lost == std::vector<std::vector<float>>(4, std::vector<float>(1000, 0.0F)));
    CHECK(as_is.traffic[0].bytes_sent == expected.traffic[0].bytes_sent);
    CHECK(as_is.bound_words == expected.bound_words);
    auto const rounded = run_with(coded({.cutoff_bytes = 4000}), inputs, reduction::sum, true);
    CHECK(rounded.results != expected.results);
    CHECK(rounded.traffic[0].bytes_sent < expected.traffic[0].bytes_sent / 2);
  }
}

} // namespace oktopk_tests::dense
