// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "algorithm/suite.hpp"

#include <oktopk/catalogue/one_of.hpp>
#include <oktopk/format/coo.hpp>
#include <oktopk/format/packed.hpp>
#include <oktopk/format/values/fixed.hpp>
#include <oktopk/format/values/floats.hpp>

namespace oktopk_tests {

using every_value_codec =
    oktopk::detail::one_of_values<oktopk::exact_values, oktopk::bfloat16_values, oktopk::fixed_values<8>,
                                  oktopk::fixed_values<4>, oktopk::fixed_values<2>, oktopk::sign_values>;
using packed_of_every_codec = oktopk::packed<float, std::int32_t, every_value_codec>;

/// An algorithm whose messages are packed, with the value codec at that position.
template <template <class Comm, class Format> class Algorithm, std::int32_t Codec>
struct packed_subject : subject_of<> {
  template <class Comm>
  using algorithm = Algorithm<Comm, packed_of_every_codec>;

  static constexpr bool rounds = Codec != 0;

  static typename algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    typename algorithm<counting>::options how{};
    how.length = length;
    how.k = k;
    how.format = packed_of_every_codec(every_value_codec{Codec});
    if constexpr (requires { how.gather.ratio; }) { // balance as often as can be
      if (Codec % 2 == 1) {
        how.gather.ratio = 1;
      }
    }
    return how;
  }
};

/// The same with COO.
template <template <class Comm, class Format> class Algorithm>
struct coo_subject {
  using value_type = float;
  using index_type = std::int32_t;
  template <class Comm>
  using algorithm = Algorithm<Comm, oktopk::coo<>>;

  static typename algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    typename algorithm<counting>::options how{};
    how.length = length;
    how.k = k;
    return how;
  }
};

/// The first difference between the results of two runs: updates, contributions, residuals.
template <class Run, class Other>
std::string result_difference(Run const& run, Other const& other) {
  for (std::size_t rank = 0; rank < run.size(); ++rank) {
    for (std::size_t i = 0; i < run[rank].size(); ++i) {
      auto const& a = run[rank][i];
      auto const& b = other[rank][i];
      if (a.indices != b.indices || bits(a.values) != bits(b.values)) {
        return at(rank, i) + "another update";
      }
      if (a.contributed != b.contributed || bits(a.residual) != bits(b.residual)) {
        return at(rank, i) + "another residual";
      }
    }
  }
  return {};
}

/// Lossless: the results of COO to the bit. Lossy: every invariant, whatever is rounded.
template <template <class Comm, class Format> class Algorithm>
void check_packed() {
  SECTION("exact values: the same bits as COO") {
    for (int const ranks : affordable_rank_counts()) {
      CAPTURE(ranks);
      for (shape const what : {shape{230, 23, 6}, shape{20000, 600, 4}}) {
        auto const packed = run<packed_subject<Algorithm, 0>>(ranks, what, correlated{5, 3});
        CHECK(run_fault<packed_subject<Algorithm, 0>>(packed, what, false) == "");
        CHECK(result_difference(packed, run<coo_subject<Algorithm>>(ranks, what, correlated{5, 3})) == "");
      }
    }
  }
  SECTION("exact values: special inputs") {
    for (int const ranks : {1, 2, 5, 8}) {
      CHECK(special_input_fault<packed_subject<Algorithm, 0>>(ranks) == "");
    }
  }
  SECTION("bad accumulators") {
    CHECK(bad_accumulator_fault<packed_subject<Algorithm, 0>>(3, {90, 9, 4}) == "");
    CHECK(bad_accumulator_fault<packed_subject<Algorithm, 1>>(5, {90, 9, 4}) == "");
    CHECK(bad_accumulator_fault<packed_subject<Algorithm, 5>>(4, {90, 9, 4}) == "");
  }
  SECTION("rounded values") {
    auto const check = [](auto codec) {
      using subject = packed_subject<Algorithm, decltype(codec)::value>;
      for (int const ranks : affordable_rank_counts()) {
        CAPTURE(codec.value, ranks);
        CHECK(special_input_fault<subject>(ranks) == "");
        for (shape const what : {shape{230, 23, 6}, shape{20000, 600, 4}}) {
          auto const once = run<subject>(ranks, what, correlated{3, 8});
          CHECK(run_fault<subject>(once, what, false) == "");
          CHECK(repetition_fault(once, run<subject>(ranks, what, correlated{3, 8})) == "");
        }
      }
    };
    check(std::integral_constant<std::int32_t, 1>());
    check(std::integral_constant<std::int32_t, 2>());
    check(std::integral_constant<std::int32_t, 3>());
    check(std::integral_constant<std::int32_t, 4>());
    check(std::integral_constant<std::int32_t, 5>());
  }
  SECTION("a saved state") {
    CHECK(continuation_fault<packed_subject<Algorithm, 2>>(4, {2600, 26, 6}) == "");
  }
}

} // namespace oktopk_tests
