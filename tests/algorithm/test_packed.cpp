// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Algorithms whose messages are packed: lossless as COO, lossy with every error returned.

#include "algorithm/suite.hpp"

#include <oktopk/algorithm/gtopk.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/algorithm/topk_dsa.hpp>
#include <oktopk/catalogue/one_of.hpp>
#include <oktopk/format/coo.hpp>
#include <oktopk/format/packed.hpp>
#include <oktopk/format/values/fixed.hpp>
#include <oktopk/format/values/floats.hpp>

using namespace oktopk_tests;

namespace {

using every_value_codec =
    oktopk::detail::one_of_values<oktopk::exact_values, oktopk::bfloat16_values, oktopk::fixed_values<8>,
                                  oktopk::fixed_values<4>, oktopk::fixed_values<2>, oktopk::sign_values>;
using packed_of_every_codec = oktopk::packed<float, std::int32_t, every_value_codec>;

/// `Scheme::of<Comm, Format>`, whose messages are packed with the value codec at the position `codec`, the first of which
/// is exact; or are COO.
template <class Scheme, class Format = packed_of_every_codec>
struct packed_subject : subject_of<> {
  template <class Comm>
  using algorithm = typename Scheme::template of<Comm, oktopk::with_format<Format>>;

  static inline std::int32_t codec = 0;
  static inline bool rounds = false;

  static typename algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    typename algorithm<counting>::options how{};
    how.length = length;
    how.k = k;
    if constexpr (std::is_same_v<Format, packed_of_every_codec>) {
      how.format = packed_of_every_codec(every_value_codec{codec});
    }
    if constexpr (requires { how.gather.ratio; }) { // balance as often as can be
      how.gather.ratio = codec % 2 == 1 ? 1 : how.gather.ratio;
    }
    return how;
  }
};

struct ok_topk {
  template <class Comm, class Policies>
  using of = oktopk::ok_topk<execution, Comm, Policies>;
};
struct gtopk {
  template <class Comm, class Policies>
  using of = oktopk::gtopk<execution, Comm, Policies>;
};
struct topk_a {
  template <class Comm, class Policies>
  using of = oktopk::topk_a<execution, Comm, Policies>;
};
struct topk_dsa {
  template <class Comm, class Policies>
  using of = oktopk::topk_dsa<execution, Comm, Policies>;
};

} // namespace

TEMPLATE_TEST_CASE("packed messages: lossless as COO, lossy with every error returned", "", ok_topk, gtopk, topk_a,
                   topk_dsa) {
  using subject = packed_subject<TestType>;
  using with_coo = packed_subject<TestType, oktopk::coo<>>;
  auto const use = [](std::int32_t codec) {
    subject::codec = codec;
    subject::rounds = codec != 0;
  };
  use(0);
  SECTION("exact values: the same bits as COO") {
    for (int const ranks : affordable_rank_counts()) {
      CAPTURE(ranks);
      for (shape const what : {shape{230, 23, 6}, shape{20000, 600, 4}}) {
        auto const packed = run<subject>(ranks, what, correlated{5, 3});
        CHECK(run_fault<subject>(packed, what, false) == "");
        CHECK(results_fault(packed, run<with_coo>(ranks, what, correlated{5, 3})) == "");
      }
    }
  }
  SECTION("exact values: special inputs") {
    for (int const ranks : {1, 2, 5, 8}) {
      CHECK(special_input_fault<subject>(ranks) == "");
    }
  }
  SECTION("bad accumulators") {
    for (auto const& [codec, ranks] : {std::pair(0, 3), std::pair(1, 5), std::pair(5, 4)}) {
      use(codec);
      CHECK(bad_accumulator_fault<subject>(ranks, {90, 9, 4}) == "");
    }
  }
  SECTION("rounded values") {
    for (std::int32_t codec = 1; codec <= 5; ++codec) {
      CAPTURE(codec);
      use(codec);
      for (int const ranks : affordable_rank_counts()) {
        CHECK(special_input_fault<subject>(ranks) == "");
      }
      check_runs<subject>({230, 23, 6}, correlated{3, 8}, false);
      check_runs<subject>({20000, 600, 4}, correlated{3, 8}, false);
    }
  }
  SECTION("a saved state") {
    use(2);
    CHECK(continuation_fault<subject>(4, {2600, 26, 6}) == "");
  }
}

TEST_CASE("the bound of packed messages holds where entries are evenly spread and exponents are not alike") {
  auto const spread = [](moment when, std::vector<float>& gradient) {
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      bool const selected = i % 100 == static_cast<std::size_t>(when.rank * 7 + when.iteration * 13) % 100;
      auto const draw = noise(99, i, static_cast<std::uint64_t>(when.rank));
      float const any =
          std::ldexp(1 + static_cast<float>(draw % 4096) / 4096, static_cast<int>(draw / 4096 % 200) - 90);
      gradient[i] = selected ? (draw % 2 == 0 ? any : -any) : 0;
    }
  };
  using exact = packed_subject<ok_topk>;
  exact::codec = 0;
  for (int const ranks : {2, 3, 8, 16}) {
    CAPTURE(ranks);
    auto const all = run<exact>(ranks, {100000, 1000, 3}, spread);
    double most = 0;
    for (auto const& rank : all) {
      for (auto const& call : rank) {
        CHECK(call.total().words_sent() <= call.bound_words);
        most = std::max(most, call.total().words_sent());
      }
    }
    CHECK(most > 0.3 * all[0][0].bound_words); // it is a bound that says something
  }
}
