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

using oktopk::detail::codec_level;

/// Extremes have the same bits on all ranks, no farther from what is right than one rounding by every rank allows.
inline std::string far_from_extremes_in(maker<float> const& make, std::function<double(double)> const& error_bound) {
  for (int const ranks : rank_counts) {
    for (reduction const op : {reduction::max, reduction::min}) {
      auto const inputs = rough_inputs<float>(ranks, 301);
      auto const got = run_made<float>(make, inputs, op);
      auto const right = reduced(inputs, op);
      double largest = 0;
      for (auto const& input : inputs) {
        for (float const x : input) {
          largest = std::max(largest, std::fabs(static_cast<double>(x)));
        }
      }
      double const bound = (ranks + 1) * error_bound(2 * largest);
      for (auto const& result : got.results) {
        for (std::size_t i = 0; i < right.size(); ++i) {
          if (bits(result) != bits(got.results[0]) || std::fabs(static_cast<double>(result[i] - right[i])) > bound) {
            return std::to_string(ranks) + " ranks: wrong at " + std::to_string(i);
          }
        }
      }
    }
  }
  return {};
}

template <class Subject>
std::string far_from_extremes() {
  return far_from_extremes_in(maker_of<Subject, float>(),
                              [](double largest) { return Subject::codec().template error_bound<float>(largest); });
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

/// What holds of `Subject<Codec, Level>` whatever the algorithm, beside what the suite of algorithms finds in sums; `Raw`
/// is that algorithm without a codec. A stable codec gives the same bits at both levels with these numbers of ranks.
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
  SECTION("of lossy codecs it is near to extremes") { // and tells of sums what it lost: see tests/algorithm
    CHECK(far_from_extremes<Subject<block_float, collective>>() == "");
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
  SECTION("it codes nothing below the cut-off") {
    using coded = Algorithm<execution, counting_any, float, oktopk::coded_wire<block_float>>;
    auto const inputs = rough_inputs<float>(4, 1000);
    auto const expected = run<Raw>(inputs, reduction::sum);
    auto const cut_off_at = [&](std::int64_t bytes) {
      return run_made<float>(
          [=] {
            typename coded::options how;
            how.cutoff_bytes = bytes;
            return reducer<float>(std::make_shared<coded>(how));
          },
          inputs, reduction::sum, true);
    };
    auto const as_is = cut_off_at(4001);
    CHECK(as_is.results == expected.results);
    CHECK(as_is.lost == std::vector<std::vector<float>>(4, std::vector<float>(1000, 0.0F)));
    CHECK(as_is.traffic[0].bytes_sent == expected.traffic[0].bytes_sent);
    CHECK(as_is.bound_words == expected.bound_words);
    auto const rounded = cut_off_at(4000);
    CHECK(rounded.results != expected.results);
    CHECK(rounded.traffic[0].bytes_sent < expected.traffic[0].bytes_sent / 2);
  }
}

} // namespace oktopk_tests::dense
