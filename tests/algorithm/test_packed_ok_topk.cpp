// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/packed_subject.hpp"

#include <oktopk/algorithm/ok_topk.hpp>

using namespace oktopk_tests;

// A name of its own: g++ gives what is made of an alias template the same symbols in every file, unnamed namespace or
// not.
template <class Comm, class Format>
using ok_topk_of = oktopk::ok_topk<execution, Comm, oktopk::with_format<Format>>;

TEST_CASE("ok_topk with packed messages: lossless as COO, lossy with every error returned") {
  check_packed<ok_topk_of>();
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
  for (int const ranks : {2, 3, 8, 16}) {
    CAPTURE(ranks);
    shape const what{100000, 1000, 3};
    using exact = packed_subject<ok_topk_of, 0>;
    auto const all = run<exact>(ranks, what, spread);
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
