// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/suite.hpp"
#include "support/catch.hpp"

using namespace oktopk_tests;

TEST_CASE("the bound of packed messages holds where entries are evenly spread and exponents are not alike") {
  auto const spread = [](moment when, numbers& gradient) {
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      bool const selected = i % 100 == static_cast<std::size_t>(when.rank * 7 + when.iteration * 13) % 100;
      auto const draw = noise(99, i, static_cast<std::uint64_t>(when.rank));
      double const any =
          std::ldexp(1 + static_cast<double>(draw % 4096) / 4096, static_cast<int>(draw / 4096 % 200) - 90);
      gradient[i] = selected ? (draw % 2 == 0 ? any : -any) : 0;
    }
  };
  for (int const ranks : {2, 3, 8, 16}) {
    CAPTURE(ranks);
    double most = 0;
    auto const all = run(subject_of("ok_topk(format=packed)"), ranks, {100000, 1000, 3}, spread);
    for (auto const& rank : all) {
      for (call_record const& call : rank) {
        CHECK(call.words() <= call.bound_words);
        most = std::max(most, call.words());
      }
    }
    CHECK(most > 0.3 * all[0][0].bound_words); // it is a bound that says something
  }
}
