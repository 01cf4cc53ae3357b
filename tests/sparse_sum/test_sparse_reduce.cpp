// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "sparse_sum/given.hpp"

#include <numeric>

using namespace oktopk_tests;

namespace {

using list = given<std::int32_t, float>;

std::vector<list> inputs_of(entries_lie how, int ranks, std::int64_t length, std::int64_t width) {
  std::vector<list> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.push_back(entries_of_rank<std::int32_t, float>(how, length, width, rank));
  }
  return all;
}

/// The entries of a list that lie in a region.
list part_of(list const& all, oktopk::region where, std::int64_t width) {
  list part;
  for (std::size_t i = 0; i < all.indices.size(); ++i) {
    if (all.indices[i] >= where.begin && all.indices[i] < where.end) {
      part.indices.push_back(all.indices[i]);
      auto const row = all.values.begin() + static_cast<std::int64_t>(i) * width;
      part.values.insert(part.values.end(), row, row + width);
    }
  }
  return part;
}

/// Two calls of an object on each rank: to the bit what `wanted(rank, boundaries)` has of the sequential sum, and no more
/// words than the bound.
template <class Make, class Wanted>
void check_parts(int ranks, std::int64_t length, std::int64_t width, Make const& make, Wanted const& wanted) {
  for (entries_lie const way : all_ways_to_lie) {
    auto const inputs = inputs_of(way, ranks, length, width);
    oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator inner) {
      counting comm(inner);
      auto sum = make(comm);
      auto const& mine = inputs[static_cast<std::size_t>(comm.rank())];
      for (int call = 0; call < 2; ++call) {
        comm.reset();
        auto const found = copied((*sum)(to_view(mine.indices), to_view(mine.values)));
        std::vector<std::int64_t> const boundaries(sum->boundaries().begin(), sum->boundaries().end());
        CAPTURE(ranks, length, width, static_cast<int>(way), comm.rank());
        CHECK(same_bits(found,
                        part_of(sequential_sum(inputs, width, boundaries), wanted(comm.rank(), boundaries), width)));
        CHECK(comm.total().words_sent() <= sum->bound_words());
      }
    });
  }
}

oktopk::region own(int rank, std::vector<std::int64_t> const& boundaries) {
  auto const at = static_cast<std::size_t>(rank);
  return {boundaries[at], boundaries[at + 1]};
}

} // namespace

TEST_CASE("sparse_reduce_scatter gives each rank the sums of its own region") {
  for (int const ranks : {1, 2, 3, 5, 8, 16}) {
    for (std::int64_t const width : {1, 3}) {
      using sum_type = oktopk::sparse_reduce_scatter<execution, counting>;
      check_parts(
          ranks, 200, width,
          [&](counting const& comm) {
            return std::make_unique<sum_type>(execution(), comm, sum_type::options{.length = 200, .width = width});
          },
          own);
    }
  }
}

TEST_CASE("sparse_reduce gives each owner the sums of what it owns, however the caller has cut the indices") {
  for (int const ranks : {1, 2, 3, 5, 8, 16}) {
    std::vector<std::int64_t> uneven(static_cast<std::size_t>(ranks) + 1, 0);
    for (std::size_t r = 1; r < uneven.size(); ++r) {
      uneven[r] = std::min<std::int64_t>(200, static_cast<std::int64_t>(r * r * r));
    }
    uneven.back() = 200;
    using sum_type = oktopk::sparse_reduce<execution, counting>;
    check_parts(
        ranks, 200, 2,
        [&](counting const& comm) {
          return std::make_unique<sum_type>(execution(), comm,
                                            sum_type::options{.length = 200, .boundaries = uneven, .width = 2});
        },
        own);
  }
}

TEST_CASE("sparse_reduce sends to owners that a rank has entries for, and to no others") {
  constexpr int ranks = 70; // more than a number has bits
  oktopk::in_process::run(ranks, [](oktopk::in_process_communicator inner) {
    counting comm(inner);
    std::vector<std::int64_t> boundaries(ranks + 1);
    std::iota(boundaries.begin(), boundaries.end(), 0);
    oktopk::sparse_reduce sum(execution(), comm, {.length = ranks, .boundaries = boundaries});
    comm.reset();
    int const rank = comm.rank();
    std::vector<std::int32_t> const indices{rank, (rank + 1) % ranks, (rank + 67) % ranks};
    auto const found = copied(sum(to_view(indices), to_view(std::vector<float>{1, 2, 4})));
    CHECK(found.indices == std::vector<std::int32_t>{rank});
    CHECK(found.values == std::vector<float>{7});
    CHECK(comm.of_phase(oktopk::phase::reduce).messages_sent == 2);
    CHECK(comm.of_phase(oktopk::phase::reduce).messages_received == 2);
    CHECK(comm.of_phase(oktopk::phase::control).messages_sent == 7);
    CHECK(comm.of_phase(oktopk::phase::gather).messages_sent == 0);
  });
}

TEST_CASE("a sparse_sum for one rank gives it all sums, and the others none") {
  using sum_type = oktopk::sparse_sum<execution, counting, oktopk::root_policies<>>;
  for (int const ranks : {1, 2, 3, 5, 8, 16}) {
    for (int const root : {0, ranks - 1}) {
      check_parts(
          ranks, 200, 3,
          [&](counting const& comm) {
            return std::make_unique<sum_type>(execution(), comm,
                                              sum_type::options{.length = 200, .width = 3, .deliver = {.root = root}});
          },
          [&](int rank, auto const&) {
            return rank == root ? oktopk::region{0, 200} : oktopk::region{};
          });
    }
  }
  auto const said = outcomes_of(2, [](oktopk::in_process_communicator inner) {
    sum_type const sum(execution(), counting(inner), {.length = 10, .deliver = {.root = 2}});
  });
  CHECK(unlike(said, oktopk::fault::option_out_of_range, "root = 2 is none of the ranks") == "");
}

TEST_CASE("sparse_reduce: boundaries that are wrong, or that ranks do not share, are an error on all ranks") {
  auto const said = [](std::vector<std::int64_t> const& of_one, bool shared) {
    return outcomes_of(2, [&](oktopk::in_process_communicator comm) {
      bool const is_good = !shared && comm.rank() == 0;
      oktopk::sparse_reduce const sum(
          execution(), comm, {.length = 10, .boundaries = is_good ? std::vector<std::int64_t>{0, 5, 10} : of_one});
    });
  };
  CHECK(unlike(said({0, 4, 10}, false), oktopk::fault::ranks_disagree, "partitioner = given_regions") == "");
  CHECK(unlike(said({0, 4, 9}, true), oktopk::fault::option_out_of_range, "do not ascend from 0 to the length") == "");
  CHECK(unlike(said({0, 11, 10}, true), oktopk::fault::option_out_of_range, "do not ascend") == "");
  CHECK(unlike(said({0, 10}, true), oktopk::fault::option_out_of_range, "2 boundaries of regions") == "");
}
