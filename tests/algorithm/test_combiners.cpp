// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The global top k of means, maxima and what a program makes of the values of an index, in place of sums.

#include "support/call.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/seeded.hpp"

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/exchange/radix.hpp>
#include <oktopk/sparse/combiners.hpp>

#include <map>
#include <numeric>
#include <set>

namespace test_of_combiners {

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::in_process_communicator;

namespace {

template <template <class, class> class Combiner, class Schedule = oktopk::rotated>
struct combined : oktopk::default_policies {
  using schedule = Schedule;
  template <class Value>
  using combiner = Combiner<Value, oktopk::non_finite_fault>;
};

template <class Value, class Fault>
using mean = oktopk::mean_of<Value, Fault>;
template <class Value, class Fault>
using largest = oktopk::max_of<Value, Fault>;

/// Gradients of small integers, so that sums are exact in any order; of one rank no magnitude is there twice.
template <class Value>
std::vector<Value> gradient(std::int64_t length, int rank) {
  seeded draw(static_cast<std::uint64_t>(rank) + 5);
  std::vector<Value> values(static_cast<std::size_t>(length));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<Value>(i + 1) * static_cast<Value>(draw.below(2) == 0 ? 1 : -1);
  }
  for (std::size_t i = values.size() - 1; i > 0; --i) {
    std::swap(values[i], values[static_cast<std::size_t>(draw.below(static_cast<std::int64_t>(i) + 1))]);
  }
  return values;
}

/// The positions of the k largest magnitudes; where some are alike, the magnitude of the last one is in `least`.
template <class Value>
std::set<std::int32_t> largest_of(std::map<std::int32_t, Value> const& values, std::size_t k, Value* least = nullptr) {
  std::vector<std::pair<Value, std::int32_t>> order;
  for (auto const& [index, value] : values) {
    order.emplace_back(std::fabs(value), index);
  }
  std::ranges::sort(order, std::greater<>());
  order.resize(std::min(k, order.size()));
  std::set<std::int32_t> chosen;
  for (auto const& [magnitude, index] : order) {
    chosen.insert(index);
  }
  if (least != nullptr) {
    *least = order.back().first;
  }
  return chosen;
}

/// Calls against `all(values of the ranks that have selected an index)`.
template <class Value, class Policies, class All>
void check_combined(All const& all) {
  constexpr std::int64_t length = 300;
  constexpr std::size_t k = 40;
  for (int const ranks : {1, 2, 3, 5, 8}) {
    std::vector<std::vector<Value>> given;
    std::vector<std::set<std::int32_t>> selected;
    std::map<std::int32_t, std::vector<Value>> of_index;
    for (int rank = 0; rank < ranks; ++rank) {
      given.push_back(gradient<Value>(length, rank));
      std::map<std::int32_t, Value> places;
      for (std::size_t i = 0; i < given.back().size(); ++i) {
        places[static_cast<std::int32_t>(i)] = given.back()[i];
      }
      selected.push_back(largest_of(places, k));
      for (std::int32_t const index : selected.back()) {
        of_index[index].push_back(given.back()[static_cast<std::size_t>(index)]);
      }
    }
    std::map<std::int32_t, Value> results;
    for (auto const& [index, values] : of_index) {
      results[index] = all(values);
    }
    Value least = 0;
    largest_of(results, k, &least);
    oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
      oktopk::ok_topk<execution, in_process_communicator, oktopk::with_format<oktopk::coo<Value>, Policies>> topk(
          execution(), comm, {.length = length, .k = k});
      auto const rank = static_cast<std::size_t>(comm.rank());
      auto const mine = to_view(given[rank]);
      for (int call = 0; call < 3; ++call) {
        auto const& update = topk(mine);
        auto const indices = to_vector(update.indices());
        auto const values = to_vector(update.values());
        CAPTURE(ranks, comm.rank(), call);
        REQUIRE(indices.size() == k);
        std::vector<std::int32_t> contributed;
        for (std::size_t i = 0; i < k; ++i) {
          auto const index = static_cast<std::int32_t>(indices[i]);
          REQUIRE(results.contains(index));
          CHECK(values[i] == results[index]);
          CHECK(std::fabs(values[i]) >= least);
          if (selected[rank].contains(index)) {
            contributed.push_back(index);
          }
        }
        auto const told = to_vector(update.contributed());
        CHECK(std::vector<std::int32_t>(told.begin(), told.end()) == contributed);
      }
    });
  }
}

} // namespace

TEST_CASE("the global top k of means divides by the ranks that have selected an index") {
  auto const of_ranks = [](auto const& values) {
    return std::accumulate(values.begin(), values.end(), 0 * values[0]) /
           static_cast<std::decay_t<decltype(values[0])>>(values.size());
  };
  check_combined<float, combined<mean>>(of_ranks);
  check_combined<double, combined<mean>>(of_ranks);
}

TEST_CASE("the global top k of maxima, in one stage and in several") {
  auto const of_ranks = [](auto const& values) { return *std::ranges::max_element(values); };
  check_combined<float, combined<largest>>(of_ranks);
  check_combined<float, combined<largest, oktopk::radix>>(of_ranks);
}

TEST_CASE_ON(comm, 2, "a mean whose sum overflows is an error of all ranks, and the next call goes on") {
  oktopk::ok_topk<execution, in_process_communicator, combined<mean>> topk(execution(), comm, {.length = 8, .k = 1});
  auto const huge = to_view(std::vector<float>{0, 3e38F, 0, 0, 0, 0, 0, 0});
  CHECK(unlike(outcome_of([&] { topk(huge); }), fault::non_finite, "at index 1 overflows") == "");
  auto const& update = topk(to_view(std::vector<float>{0, 0, 0, 0, 6, 0, 0, 0}));
  CHECK(to_vector(update.values()) == std::vector<float>{6});
}

TEST_CASE_ON(comm, 2, "ranks whose combiners differ hear of it") {
  auto const make = [&] {
    if (comm.rank() == 0) {
      oktopk::ok_topk<execution, in_process_communicator, combined<mean>>(execution(), comm, {.length = 8, .k = 1});
    } else {
      oktopk::ok_topk<execution, in_process_communicator>(execution(), comm, {.length = 8, .k = 1});
    }
  };
  CHECK(unlike(outcome_of(make), fault::ranks_disagree, "rank 0 has combiner = mean, rank 1 has combiner = sum") == "");
}

} // namespace test_of_combiners
