// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Values at the ends of what their type holds: sums and residuals that overflow, NaN of every pattern, doubles whose
// squares overflow. Promised is the same error on every rank, or the right result; never a write out of bounds.

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/generators.hpp"

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/self.hpp>
#include <oktopk/sgd.hpp>

#include <bit>
#include <functional>
#include <numeric>

using namespace oktopk_tests;
using oktopk::in_process_communicator;

namespace {

/// `ok_topk` of these values.
template <class Value>
auto made(oktopk::any_communicator const& comm, std::int64_t length, std::int64_t k) {
  if constexpr (std::is_same_v<Value, float>) {
    return oktopk::make_allreduce(execution(), comm, "ok_topk", {.length = length, .k = k});
  } else {
    using format = oktopk::coo<Value>;
    return oktopk::ok_topk<execution, oktopk::any_communicator, oktopk::with_format<format>>(
        execution(), comm, {.length = length, .k = k});
  }
}

using gaussian = oktopk::gaussian_k<execution, oktopk::any_communicator, oktopk::coo<double>>;

/// What every rank hears when it calls with `first` once and then with `second`.
template <class Value>
std::vector<outcome> second_call(int ranks, std::int64_t k, std::vector<Value> const& first,
                                 std::vector<Value> const& second) {
  return outcomes_of(ranks, [&](in_process_communicator comm) {
    auto allreduce = made<Value>(comm, static_cast<std::int64_t>(first.size()), k);
    allreduce(to_view(first));
    allreduce(to_view(second));
  });
}

} // namespace

TEMPLATE_TEST_CASE("sums that overflow after sums near the largest power of two are an error, on every rank", "", float,
                   double) {
  using value = TestType;
  for (int const ranks : {2, 3, 4}) {
    for (int const below : {4, 5, 6, 7}) { // of the largest exponent: where a range around the guess ends above all
      for (std::size_t const size : {std::size_t(192) * static_cast<std::size_t>(ranks), std::size_t(400)}) {
        CAPTURE(ranks, below, size);
        std::vector<value> const first(size, std::ldexp(value(1), std::numeric_limits<value>::max_exponent - below));
        std::vector<value> const second(size, std::numeric_limits<value>::max());
        CHECK(unlike(second_call(ranks, static_cast<std::int64_t>(size), first, second), oktopk::fault::non_finite,
                     "a sum or partial sum at index") == "");
      }
    }
  }
}

namespace {

/// `make(length, k)` gives an algorithm on one rank.
template <class Make>
void check_nan(std::string const& algorithm, Make const& make) {
  using value = typename decltype(make(0, 0))::value_type;
  using bits_type = oktopk::detail::bits_of<value>;
  constexpr std::int64_t length = 20000;
  auto const infinity = oktopk::detail::infinity_bits<value>;
  bits_type const sign = bits_type(1) << (8 * sizeof(value) - 1);
  bits_type const quiet = std::bit_cast<bits_type>(std::numeric_limits<value>::quiet_NaN());
  std::vector<value> gradient;
  for (std::int64_t i = 0; i < length; ++i) {
    gradient.push_back(static_cast<value>(100 * heavy_tailed(noise(1, static_cast<std::uint64_t>(i)))));
  }
  for (bits_type const pattern :
       {static_cast<bits_type>(~bits_type(0)), static_cast<bits_type>(~sign), quiet,
        static_cast<bits_type>(quiet + (quiet - infinity) / 2), static_cast<bits_type>(infinity + 1), infinity}) {
    for (std::int64_t const many : {1, 150, 1324, 1400, 5000}) {
      CAPTURE(algorithm, pattern, many);
      auto allreduce = make(length, 100);
      allreduce(to_view(gradient));
      allreduce(to_view(gradient));
      auto spoiled = gradient;
      std::fill_n(spoiled.begin() + 5000, many, std::bit_cast<value>(pattern));
      auto const heard = outcome_of([&] { allreduce(to_view(spoiled)); });
      REQUIRE(heard.code == oktopk::fault::non_finite);
      // Of several that are alike some one is named, which really is not finite.
      auto const at = heard.text.find("the value at index ");
      REQUIRE(at != std::string::npos);
      int const index = std::stoi(heard.text.substr(at + 19));
      CHECK((index >= 5000 && index < 5000 + many));
      allreduce(to_view(gradient)); // and nothing has happened
    }
  }
}

} // namespace

TEST_CASE("NaN of every pattern is found, at its place") {
  for (char const* const text : {"ok_topk", "ok_topk(local=reused, global=reused)", "topk_a", "gaussian_k"}) {
    check_nan(text, [&](std::int64_t length, std::int64_t k) {
      return oktopk::make_allreduce(execution(), oktopk::self_communicator(), text, {.length = length, .k = k});
    });
  }
  check_nan("ok_topk of double",
            [](std::int64_t length, std::int64_t k) { return made<double>(oktopk::self_communicator(), length, k); });
}

TEST_CASE("what gtopk drops and a residual cannot hold is an error on every rank, and nothing has happened") {
  struct input {
    std::string what;
    std::vector<std::vector<float>> of_rank;
    std::string words;
  };
  float const huge = 3e38F;
  std::vector<input> const inputs = {
      // The root drops both sums at index 1, each finite, together not.
      {"two partial sums dropped at one index",
       {{3.3e38F, 1e38F, 0}, {0, 2e38F, 0}, {0, huge, 0}},
       "rank 0: the residual at index 1 overflows"},
      // Rank 0 has not selected index 1, so its accumulator keeps its own value there, and gets rank 1's back.
      {"a dropped sum and this rank's own value",
       {{3.3e38F, 3.2e38F}, {0, 3.2e38F}},
       "rank 0: the residual at index 1 overflows"},
  };
  for (input const& each : inputs) {
    CAPTURE(each.what);
    int const ranks = static_cast<int>(each.of_rank.size());
    std::vector<outcome> said(each.of_rank.size());
    std::vector<std::vector<float>> after(each.of_rank.size());
    auto const failures = outcomes_of(ranks, [&](in_process_communicator comm) {
      auto const rank = static_cast<std::size_t>(comm.rank());
      auto const length = static_cast<std::int64_t>(each.of_rank[0].size());
      auto allreduce = oktopk::make_allreduce(execution(), comm, "gtopk", {.length = length, .k = 1});
      oktopk::sgd optimizer(execution(), allreduce, {.learning_rate = 1});
      auto const weights = to_view(std::vector<float>(each.of_rank[0].size(), 0));
      said[rank] = outcome_of([&] { optimizer.step(weights, to_view(each.of_rank[rank])); });
      optimizer.step(weights, to_view(std::vector<float>(each.of_rank[0].size(), 0))); // nothing was kept of it
      after[rank] = to_vector(optimizer.residual());
    });
    for (outcome const& later : failures) {
      CHECK(later.text == "");
    }
    CHECK(unlike(said, oktopk::fault::non_finite, each.words) == "");
    for (auto const& residual : after) {
      CHECK((residual == std::vector<float>(each.of_rank[0].size(), 0)));
    }
  }
}

TEST_CASE("gtopk as published returns nothing, so nothing that it drops is an error") {
  auto const failures = outcomes_of(2, [&](in_process_communicator comm) {
    auto allreduce = oktopk::make_allreduce(execution(), comm, "gtopk(return_dropped=false)", {.length = 2, .k = 1});
    allreduce(to_view(comm.rank() == 0 ? std::vector<float>{3.3e38F, 3.2e38F} : std::vector<float>{0, 3.2e38F}));
  });
  for (outcome const& each : failures) {
    CHECK(each.text == "");
  }
}

TEST_CASE("gtopk as published returns what a format has rounded off in the entries of the result, and no others") {
  double sum = 0; // of the values that went in, less what came out and what was returned
  oktopk::in_process::run(4, [&](in_process_communicator comm) {
    auto allreduce = oktopk::make_allreduce(
        execution(), comm, "gtopk(return_dropped=false, format=packed(values=bfloat16))", {.length = 4, .k = 2});
    float const mine = 1.001F + 0.01F * static_cast<float>(comm.rank());
    auto const& update = allreduce(to_view(std::vector<float>{mine, comm.rank() == 3 ? 0.5F : 0, 0, 1.003F}));
    CHECK(to_vector(update.indices()) == std::vector<std::int32_t>{0, 3});
    auto const returned = entries_of(update.returned());
    CHECK(std::ranges::all_of(returned.indices, [](auto index) { return index == 0 || index == 3; }));
    sum += static_cast<double>(mine) + static_cast<double>(1.003F);
    for (auto const& values : {returned.values, comm.rank() == 0 ? to_vector(update.values()) : std::vector<float>()}) {
      sum = std::accumulate(values.begin(), values.end(), sum, std::minus<double>());
    }
  });
  CHECK(sum == Approx(0).margin(1e-5));
}

TEST_CASE("a partial sum that overflows where the whole sum does not is called one that may be partial") {
  float const huge = 3e38F;
  auto const heard = outcomes_of(4, [&](in_process_communicator comm) {
    auto allreduce = oktopk::make_allreduce(execution(), comm, "topk_a", {.length = 3, .k = 3});
    allreduce(to_view(std::vector<float>{1, comm.rank() < 2 ? huge : -huge, 1}));
  });
  CHECK(unlike(heard, oktopk::fault::non_finite, "a sum or partial sum at index 1 overflows") == "");
}

TEST_CASE("gaussian_k selects the same of values of any scale") {
  for (std::int64_t const k : {1, 10, 50, 100}) {
    std::vector<std::vector<std::int32_t>> selected;
    for (double const scale : {1.0, 0x1p+600, 0x1p+1010, 0x1p-600, 0x1p-1010}) {
      oktopk::in_process::run(2, [&](in_process_communicator comm) {
        std::vector<double> values;
        for (int i = 0; i < 100; ++i) {
          values.push_back(scale * (i - 49.25));
        }
        gaussian allreduce(execution(), comm, {.length = 100, .k = k});
        auto const& update = allreduce(to_view(values));
        if (comm.rank() == 0) {
          selected.push_back(to_vector(update.contributed()));
        }
      });
    }
    for (auto const& each : selected) {
      CAPTURE(k);
      CHECK((each == selected[0]));
      CHECK(!each.empty() == (k > 1 || !selected[0].empty()));
    }
    CHECK((k == 1 || !selected[0].empty()));
  }
}

TEST_CASE("gaussian_k copes with values that are all alike, and with zeros") {
  for (double const value : {0.0, 1.0, 1e300, 1e-300, 5e-324}) {
    gaussian allreduce(execution(), oktopk::self_communicator(), {.length = 64, .k = 8});
    auto const& update = allreduce(to_view(std::vector<double>(64, value)));
    CAPTURE(value);
    CHECK(update.indices().extent(0) == 64); // all reach the threshold, which is their mean
  }
}
