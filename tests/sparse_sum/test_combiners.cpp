// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "sparse_sum/given.hpp"

using namespace oktopk_tests;

namespace {

/// A combiner of a program's own: marks that any rank has set.
struct any_mark : oktopk::detail::no_fault {
  static std::string name() { return "any_mark"; }
  KOKKOS_INLINE_FUNCTION static constexpr std::int32_t identity() { return 0; }
  KOKKOS_INLINE_FUNCTION static constexpr std::int32_t combine(std::int32_t a, std::int32_t b) { return a | b; }
};

template <class Value, class Combiner>
struct combined : oktopk::sum_policies<Value> {
  using combiner = Combiner;
};

/// Several calls on several numbers of ranks: what `all(values of the ranks in their order, owner first)` makes of each index.
template <class Value, class Combiner, class All>
void check_combined(All const& all) {
  using list = given<std::int32_t, Value>;
  constexpr std::int64_t length = 150;
  constexpr std::int64_t width = 2;
  for (int const ranks : {1, 2, 3, 8}) {
    for (entries_lie const way : all_ways_to_lie) {
      std::vector<list> inputs;
      std::map<std::int32_t, std::vector<std::vector<Value>>> rows; // of each rank that has the index
      for (int rank = 0; rank < ranks; ++rank) {
        inputs.push_back(entries_of_rank<std::int32_t, Value>(way, length, width, rank));
      }
      oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
        oktopk::sparse_sum<execution, oktopk::in_process_communicator, combined<Value, Combiner>> sum(
            execution(), comm, {.length = length, .width = width});
        auto const& mine = inputs[static_cast<std::size_t>(comm.rank())];
        for (int call = 0; call < 2; ++call) {
          auto const found = copied(sum(to_view(mine.indices), to_view(mine.values)));
          list expected;
          for (std::int32_t index = 0; index < length; ++index) {
            auto const owner =
                std::ranges::upper_bound(sum.boundaries(), std::int64_t(index)) - sum.boundaries().begin() - 1;
            std::vector<std::vector<Value>> of_ranks(width);
            for (int step = 0; step < ranks; ++step) {
              auto const& given_by = inputs[static_cast<std::size_t>((owner + ranks - step) % ranks)];
              bool is_first = true;
              for (std::size_t i = 0; i < given_by.indices.size(); ++i) {
                for (std::size_t j = 0; j < width && given_by.indices[i] == index; ++j) {
                  Value const value = given_by.values[i * width + j];
                  if (is_first) {
                    of_ranks[j].push_back(value);
                  } else { // several of one rank
                    of_ranks[j].back() = Combiner::combine(of_ranks[j].back(), value);
                  }
                }
                is_first = is_first && given_by.indices[i] != index;
              }
            }
            if (!of_ranks[0].empty()) {
              expected.indices.push_back(index);
              expected.values.push_back(all(of_ranks[0]));
              expected.values.push_back(all(of_ranks[1]));
            }
          }
          CAPTURE(ranks, static_cast<int>(way), comm.rank());
          CHECK(same_bits(found, expected));
        }
      });
    }
  }
}

} // namespace

TEST_CASE("sparse_sum with max and min of any values") {
  check_combined<std::int64_t, oktopk::max_of<std::int64_t>>(
      [](auto const& values) { return *std::ranges::max_element(values); });
  check_combined<float, oktopk::min_of<float>>([](auto const& values) { return *std::ranges::min_element(values); });
}

TEST_CASE("sparse_sum with the mean of the ranks that have an index") {
  check_combined<double, oktopk::mean_of<double>>([](auto const& values) {
    double sum = 0;
    for (double const value : values) {
      sum += value;
    }
    return sum / static_cast<double>(values.size());
  });
}

TEST_CASE("sparse_sum with a combiner of the program's own, which all ranks must share") {
  check_combined<std::int32_t, any_mark>([](auto const& values) {
    std::int32_t all = 0;
    for (std::int32_t const value : values) {
      all |= value;
    }
    return all;
  });
  auto const said = outcomes_of(2, [](oktopk::in_process_communicator comm) {
    if (comm.rank() == 0) {
      oktopk::sparse_sum<execution, decltype(comm), combined<std::int32_t, any_mark>> const sum(execution(), comm,
                                                                                                {.length = 5});
    } else {
      oktopk::sparse_sum<execution, decltype(comm), oktopk::sum_policies<std::int32_t>> const sum(execution(), comm,
                                                                                                  {.length = 5});
    }
  });
  CHECK(unlike(said, oktopk::fault::ranks_disagree, "rank 0 has combiner = any_mark, rank 1 has combiner = sum") == "");
}
