// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "sparse_sum/given.hpp"
#include "support/kokkos_events.hpp"

#include <oktopk/format/packed.hpp>

using namespace oktopk_tests;

namespace {

using list = given<std::int32_t, float>;

template <class Policies>
using sum_on = oktopk::sparse_sum<execution, counting, Policies>;

struct staged : oktopk::sum_policies<float, std::int32_t> {
  using schedule = oktopk::radix;
};

// Regions whose indices are dealt out.
struct dealt : oktopk::sum_policies<float, std::int32_t> {
  using partitioner = oktopk::uniform;
};

struct over_even_regions : oktopk::sum_policies<float, std::int64_t> {
  using partitioner = oktopk::uniform;
};

/// Several calls with one object: equal to the sequential sum to the bit on all ranks, again in the same bits, and with no
/// more words than the bound.
template <class Policies>
void check_sums(int ranks, std::int64_t length, typename sum_on<Policies>::options how = {}) {
  using sum_type = sum_on<Policies>;
  using list_type = given<typename sum_type::index_type, typename sum_type::value_type>;
  how.length = length;
  std::int64_t const width = how.width;
  constexpr std::size_t ways = std::size(all_ways_to_lie);
  std::vector<std::vector<list_type>> inputs(ways);
  for (std::size_t way = 0; way < ways; ++way) {
    for (int rank = 0; rank < ranks; ++rank) {
      inputs[way].push_back(entries_of_rank<typename sum_type::index_type, typename sum_type::value_type>(
          all_ways_to_lie[way], length, width, rank));
    }
  }
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator inner) {
    counting comm(inner);
    sum_type sum(execution(), comm, how);
    list_type before;
    for (std::size_t call = 0; call < 2 * ways; ++call) {
      auto const& input = inputs[call / 2];
      auto const& mine = input[static_cast<std::size_t>(comm.rank())];
      comm.reset();
      auto const indices = to_view(mine.indices);
      auto const values = to_view(mine.values);
      auto const& found = sum(indices, values);
      list_type const sums = copied(found);
      std::vector<std::int64_t> const boundaries(sum.boundaries().begin(), sum.boundaries().end());
      CAPTURE(ranks, length, width, call, comm.rank());
      CHECK(comm.total().words_sent() <= sum.bound_words());
      CHECK(same_bits(sums, sequential_sum(input, width, boundaries)));
      CHECK((call % 2 == 0 || same_bits(sums, before)));
      CHECK(sum.last_call().global_selected == std::ssize(sums.indices));
      CHECK(found.own_region().begin == boundaries[static_cast<std::size_t>(comm.rank())]);
      before = sums;
    }
    CHECK(sum.state().iteration == std::int64_t(2 * ways));
  });
}

/// The sum of whole numbers, which is the same in whatever order it is formed.
template <class Policies>
void check_whole_numbers(typename sum_on<Policies>::options how) {
  for (int const ranks : {1, 2, 3, 4, 7, 8, 13, 16}) {
    for (std::int64_t const width : {1, 3}) {
      std::vector<list> inputs;
      for (int rank = 0; rank < ranks; ++rank) {
        inputs.push_back(entries_of_rank<std::int32_t, float>(entries_lie::anywhere, 300, width, rank));
        for (float& value : inputs.back().values) {
          value = std::round(value * 16);
        }
      }
      oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator inner) {
        counting comm(inner);
        how.length = 300;
        how.width = width;
        sum_on<Policies> sum(execution(), comm, how);
        comm.reset(); // of the agreement
        auto const& mine = inputs[static_cast<std::size_t>(comm.rank())];
        auto const sums = copied(sum(to_view(mine.indices), to_view(mine.values)));
        std::vector<std::int64_t> const boundaries(sum.boundaries().begin(), sum.boundaries().end());
        CAPTURE(ranks, width);
        CHECK(sums.indices == sequential_sum(inputs, width, boundaries).indices);
        CHECK(sums.values == sequential_sum(inputs, width, boundaries).values);
        CHECK(comm.total().words_sent() <= sum.bound_words());
      });
    }
  }
}

/// One call of every rank, with the entries of `of_rank(rank)`; gives what each rank threw.
template <class Policies = oktopk::sum_policies<>, class OfRank>
std::vector<outcome> outcomes_of_call(typename sum_on<Policies>::options const& how, OfRank const& of_rank) {
  using sum_type = sum_on<Policies>;
  constexpr int ranks = 4;
  std::vector<std::int64_t> bulk(ranks);
  auto const heard = outcomes_of(ranks, [&](oktopk::in_process_communicator inner) {
    counting comm(inner);
    sum_type sum(execution(), comm, how);
    auto const rank = static_cast<std::size_t>(comm.rank());
    comm.reset();
    auto const said = outcome_of([&] {
      given<std::int32_t, float> const mine = of_rank(comm.rank());
      sum(to_view(mine.indices), to_view(mine.values));
    });
    for (auto const use : {oktopk::phase::reduce, oktopk::phase::gather}) {
      bulk[rank] += comm.of_phase(use).messages_sent;
    }
    CHECK(sum.state().iteration == (said.code == oktopk::fault::none ? 1 : 0));
    // It goes on.
    auto const& after = sum(to_view(std::vector<std::int32_t>{comm.rank()}),
                            to_view(std::vector<float>(static_cast<std::size_t>(sum.width()), 1)));
    CHECK(after.size() == ranks);
    if (said.code != oktopk::fault::none) {
      throw oktopk::error(said.code, said.text);
    }
  });
  CHECK((heard[0].code == oktopk::fault::none || bulk == std::vector<std::int64_t>(ranks)));
  return heard;
}

/// A list of a rank that is as it should be.
list good_list(int rank) {
  return {{3, 10 + rank, 50}, {1, 2, 3}};
}

} // namespace

TEMPLATE_TEST_CASE("sparse_sum is the sequential sum to the bit, on any number of ranks", "", oktopk::sum_policies<>,
                   (oktopk::sum_policies<double, std::int64_t>), (oktopk::sum_policies<std::int32_t, std::int32_t>),
                   (oktopk::sum_policies<std::int64_t, std::int64_t>),
                   (oktopk::sum_policies<Kokkos::complex<double>, std::int32_t>),
                   (oktopk::sum_policies<Kokkos::complex<float>, std::int64_t>), over_even_regions) {
  for (int ranks = 1; ranks <= 16; ++ranks) {
    check_sums<TestType>(ranks, 200);
  }
  for (std::int64_t const length : {1, 2, 3, 64, 5000}) {
    check_sums<TestType>(5, length);
  }
}

TEMPLATE_TEST_CASE("sparse_sum takes rows of any width", "", oktopk::sum_policies<>,
                   (oktopk::sum_policies<std::int64_t, std::int64_t>)) {
  for (std::int64_t const width : {2, 3, 64}) {
    for (int const ranks : {1, 2, 3, 8}) {
      check_sums<TestType>(ranks, 150, {.width = width});
    }
  }
}

TEST_CASE("sparse_sum in stages, and over regions that are dealt out, has the sum of whole numbers, with rows too") {
  check_whole_numbers<staged>({.schedule = {.radix = 2}});
  check_whole_numbers<dealt>({.partition = {.blocks = 7}});
}

TEST_CASE("sparse_sum takes formats of gradients") {
  for (int const ranks : {1, 4}) {
    check_sums<oktopk::with_format<oktopk::packed<double, std::int64_t>, oktopk::sum_policies<double>>>(ranks, 900);
  }
}

TEST_CASE("sparse_sum: a NaN and an infinity are data, unless they are refused") {
  float const nan = std::numeric_limits<float>::quiet_NaN();
  float const infinite = std::numeric_limits<float>::infinity();
  oktopk::in_process::run(3, [&](oktopk::in_process_communicator comm) {
    oktopk::sparse_sum sum(execution(), comm, {.length = 10});
    bool const is_first = comm.rank() == 0;
    auto const sums = copied(sum(to_view(std::vector<std::int32_t>{2, 5, 7}),
                                 to_view(std::vector<float>{is_first ? nan : 1, is_first ? infinite : 1, 1})));
    CHECK(sums.indices == std::vector<std::int32_t>{2, 5, 7});
    CHECK((std::isnan(sums.values[0]) && sums.values[1] == infinite && sums.values[2] == 3));
  });
  for (float const bad : {nan, -infinite}) {
    auto const heard = outcomes_of_call({.length = 100, .finite = true}, [&](int rank) {
      return rank == 2 ? list{{60, 4, 10}, {1, 2, bad}} : good_list(rank);
    });
    CHECK(unlike(heard, oktopk::fault::non_finite, "sparse_sum: rank 2: the value at index 10 is not finite") == "");
  }
}

TEST_CASE("sparse_sum: bad input is an error on every rank, named, and no entry is sent") {
  using oktopk::fault;
  auto const said = [](sum_on<oktopk::sum_policies<>>::options const& how, list const& bad) {
    return outcomes_of_call(how, [&](int rank) { return rank == 1 ? bad : good_list(rank); });
  };
  CHECK(unlike(said({.length = 100}, {{3, 100, 4}, {1, 2, 3}}), fault::index_out_of_range,
               "sparse_sum: rank 1: the index at position 1 is not in [0, 100)") == "");
  CHECK(unlike(said({.length = 100}, {{3, 4, -1, 200}, {1, 2, 3, 4}}), fault::index_out_of_range,
               "rank 1: the index at position 2") == "");
  CHECK(unlike(said({.length = 100, .ascending = true}, {{3, 7, 7, 5}, {1, 2, 3, 4}}), fault::not_ascending,
               "rank 1: the index at position 2 is not above the one before") == "");
  CHECK(unlike(said({.length = 100, .unique = true}, {{7, 3, 9, 3, 7}, {1, 2, 3, 4, 5}}), fault::repeated_index,
               "rank 1: index 3 is there more than once") == "");
  CHECK(unlike(said({.length = 100}, {{3, 7, 9}, {1, 2}}), fault::size_mismatch, "rank 1: there are 2 values") == "");
  CHECK(unlike(said({.length = 100}, good_list(1)), fault::none, "") == "");
  CHECK(unlike(said({.length = 100, .unique = true}, {{7, 3, 9}, {1, 2, 3}}), fault::none, "") == "");

  auto const strided = outcomes_of(2, [](oktopk::in_process_communicator comm) {
    oktopk::sparse_sum sum(execution(), comm, {.length = 100});
    Kokkos::View<float**, Kokkos::LayoutRight, memory> const matrix("matrix", 3, 2);
    auto const column = Kokkos::subview(matrix, Kokkos::ALL, 0);
    sum(to_view(std::vector<std::int32_t>{1, 2, 3}), column);
  });
  CHECK(unlike(strided, fault::not_contiguous, "rank 0") == "");
}

TEST_CASE("sparse_sum: ranks that disagree on length, width, types or policies hear of it when they make it") {
  using options = sum_on<oktopk::sum_policies<>>::options;
  auto const said = [](options const& of_one) {
    return outcomes_of(3, [&](oktopk::in_process_communicator inner) {
      sum_on<oktopk::sum_policies<>> const sum(execution(), counting(inner),
                                               inner.rank() == 1 ? of_one : options{.length = 50});
    });
  };
  CHECK(unlike(said({.length = 51}), oktopk::fault::ranks_disagree, "rank 1 has length = 51") == "");
  CHECK(unlike(said({.length = 50, .width = 2}), oktopk::fault::ranks_disagree, "rank 1 has width = 2") == "");
  CHECK(unlike(said({.length = -1}), oktopk::fault::option_out_of_range, "length = -1 is negative") == "");
  CHECK(unlike(said({.length = 50, .width = 0}), oktopk::fault::option_out_of_range, "width = 0 is not positive") ==
        "");
  CHECK(unlike(said({.length = std::int64_t(1) << 31}), oktopk::fault::index_overflow, "") == "");

  auto const types = outcomes_of(2, [](oktopk::in_process_communicator inner) {
    if (inner.rank() == 0) {
      sum_on<oktopk::sum_policies<Kokkos::complex<float>>> const sum(execution(), counting(inner), {.length = 50});
    } else {
      sum_on<oktopk::sum_policies<>> const sum(execution(), counting(inner), {.length = 50, .width = 2});
    }
  });
  CHECK(types[0].code == oktopk::fault::ranks_disagree);
  CHECK(types[0] == types[1]);
}

TEST_CASE("sparse_sum: a call in steady state allocates nothing, and all of its work has labels of the library") {
  std::size_t allocations = 0;
  std::vector<std::string> foreign;
  std::unique_ptr<kokkos_events> watcher;
  oktopk::in_process::run(3, [&](oktopk::in_process_communicator comm) {
    oktopk::sparse_sum sum(execution(), comm, {.length = 3000});
    auto const mine = entries_of_rank<std::int32_t, float>(entries_lie::anywhere, 3000, 1, comm.rank());
    auto const indices = to_view(mine.indices);
    auto const values = to_view(mine.values);
    auto const wait = [&] {
      int number = 1;
      comm.allreduce(std::span(&number, 1), oktopk::reduction::sum, oktopk::phase::control);
    };
    for (int call = 0; call < 4; ++call) {
      wait();
      if (call == 2 && comm.rank() == 0) {
        watcher = std::make_unique<kokkos_events>();
      }
      wait();
      sum(indices, values);
      wait();
    }
    if (comm.rank() == 0) {
      for (auto const& event : watcher->take()) {
        allocations += event.what == kokkos_event::allocation ? 1 : 0;
        if (event.what == kokkos_event::kernel && event.label.find("oktopk::") == std::string::npos) {
          foreign.push_back(to_string(event));
        }
      }
      watcher.reset();
    }
    wait();
  });
  CHECK(allocations == 0);
  CHECK(foreign == std::vector<std::string>());
}

TEST_CASE("sparse_sum: values as rows of a matrix, and a result that a matrix without rows gives") {
  oktopk::in_process::run(2, [](oktopk::in_process_communicator comm) {
    oktopk::sparse_sum sum(execution(), comm, {.length = 9, .width = 3});
    Kokkos::View<float**, Kokkos::LayoutRight, memory> const rows("rows", 2, 3);
    Kokkos::deep_copy(rows, static_cast<float>(comm.rank() + 1));
    auto const sums = copied(sum(to_view(std::vector<std::int32_t>{8, 2}), rows));
    CHECK(sums.indices == std::vector<std::int32_t>{2, 8});
    CHECK(sums.values == std::vector<float>(6, 3));
    Kokkos::View<float* [3], Kokkos::LayoutRight, memory> const none("none", 0);
    CHECK(sum(to_view(std::vector<std::int32_t>{}), none).size() == 0);
  });
}
