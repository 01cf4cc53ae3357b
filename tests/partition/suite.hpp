// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/call.hpp"
#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/generators.hpp"

#include <oktopk/partition/concept.hpp>

#include <functional>

// What every partitioner must pass: include this, name the type, and call `check_partitioner` in a test case.
namespace oktopk_tests::partitioning {

/// Indices, ascending and unique.
using selection = std::vector<std::int64_t>;

/// What one rank gets, and what it sent for it.
struct outcome {
  std::vector<std::int64_t> boundaries;
  oktopk::traffic traffic;
};

/// What each rank gets; `selected(rank)` is its selection.
template <class Partitioner>
std::vector<outcome> partition(int ranks, std::int64_t length, std::function<selection(int)> const& selected,
                               Partitioner const& how = Partitioner(), bool were_uneven = false) {
  std::vector<outcome> all(static_cast<std::size_t>(ranks));
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
    counting counted(comm);
    auto const indices = to_view(selected(comm.rank()));
    auto& mine = all[static_cast<std::size_t>(comm.rank())];
    auto call = call_on(counted, length);
    typename Partitioner::template step<execution, counting> step(how);
    auto const boundaries =
        step.run(call, oktopk::array_ref<std::int64_t const, memory>(indices.data(), indices.extent(0)), were_uneven);
    mine.boundaries.assign(boundaries.begin(), boundaries.end());
    mine.traffic = counted.total();
  });
  return all;
}

/// The boundaries, which must be the same on all ranks and ascend from 0 to the length.
template <class Partitioner>
std::vector<std::int64_t> checked(int ranks, std::int64_t length, std::function<selection(int)> const& selected,
                                  Partitioner const& how = Partitioner()) {
  auto const all = partition<Partitioner>(ranks, length, selected, how);
  auto const& boundaries = all[0].boundaries;
  REQUIRE(boundaries.size() == static_cast<std::size_t>(ranks) + 1);
  for (auto const& each : all) {
    CHECK(each.boundaries == boundaries);
  }
  CHECK(boundaries.front() == 0);
  CHECK(boundaries.back() == length);
  CHECK(std::is_sorted(boundaries.begin(), boundaries.end()));
  return boundaries;
}

/// About one index in `every`, others on each rank; none at all where `every` is 0.
inline selection scattered(std::uint64_t seed, int rank, std::int64_t length, std::uint64_t every) {
  selection chosen;
  for (std::int64_t i = 0; i < length && every > 0; ++i) {
    if (noise(seed, 3, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(i)) % every == 0) {
      chosen.push_back(i);
    }
  }
  return chosen;
}

/// The entries of a selection, in the order of regions and back.
template <class Partitioner>
void check_order(Partitioner const& how, std::vector<std::int64_t> const& boundaries, selection const& chosen) {
  execution const exec;
  oktopk::regions<execution> owned;
  owned.assign(exec, boundaries, how.blocks(), how.most_load(), true);
  CHECK(owned.are_new());
  auto const indices = to_view(chosen);
  auto const values = to_view(std::vector<double>(chosen.begin(), chosen.end()));
  oktopk::sparse_ref<std::int64_t, double, memory> const list(indices.data(), values.data(), std::ssize(chosen));
  oktopk::detail::entries_buffer<std::int64_t, double, execution> there("there");
  oktopk::detail::entries_buffer<std::int64_t, double, execution> back("back");
  auto const arranged = owned.arranged(exec, list, there);
  auto const places = entries_of(arranged);
  CHECK(std::is_sorted(places.indices.begin(), places.indices.end()));
  for (std::size_t i = 0; i < places.indices.size(); ++i) { // a value is its index in the gradient
    auto const index = static_cast<std::int64_t>(places.values[i]);
    oktopk::region const of_owner = owned.region_of(owned.owner(index));
    CHECK((of_owner.begin <= places.indices[i] && places.indices[i] < of_owner.end));
    CHECK(owned.restored(places.indices[i]) == index);
  }
  CHECK(entries_of(owned.restored(exec, arranged, back)).indices == chosen);
}

/// Promise 1: boundaries ascend from 0 to the length and are the same on all ranks and in every run, whatever is
/// selected. Promise 2: no rank sends more than the bound, and one rank alone sends nothing.
///
/// Promise 3: each index has one owner, and lists come back from the order of the regions as they were.
template <class Partitioner>
void check_boundaries(Partitioner const& how, int ranks, std::int64_t length,
                      std::function<selection(int)> const& selected) {
  auto const boundaries = checked<Partitioner>(ranks, length, selected, how);
  CHECK((checked<Partitioner>(ranks, length, selected, how) == boundaries));
  for (bool const were_uneven : {false, true}) {
    for (auto const& each : partition<Partitioner>(ranks, length, selected, how, were_uneven)) {
      CHECK(each.traffic.words_sent() <= how.bound_words(ranks, 0, true));
      CHECK((ranks > 1 || each.traffic.messages_sent == 0));
    }
  }
  check_order(how, boundaries, selected(0));
}

/// All that `partitioner` promises; see there.
template <class Partitioner>
void check_partitioner(Partitioner const& how = Partitioner()) {
  static_assert(oktopk::partitioner<Partitioner, execution, counting>);
  CHECK(std::string(how.problem()).empty());
  CHECK(!std::string(how.describe()).empty());
  CHECK(how.due(0)); // there are no regions before
  for (int const ranks : rank_counts) {
    CAPTURE(ranks);
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      std::int64_t const length = number_in(1, 300, noise(seed, 1));
      auto const every = static_cast<std::uint64_t>(number_in(0, 50, noise(seed, 2)));
      check_boundaries(how, ranks, length, [&](int rank) { return scattered(seed, rank, length, every); });
      check_boundaries(how, ranks, length, [&](int rank) { // one rank alone has selected anything
        return rank == ranks / 2 ? scattered(seed, rank, length, 1) : selection();
      });
    }
    for (std::int64_t const length : {std::int64_t(0), std::int64_t(1), std::int64_t(2), std::int64_t(1) << 40}) {
      check_boundaries(how, ranks, length, [](int) { return selection(); });
      check_boundaries(how, ranks, length, [&](int) { return length > 0 ? selection{length - 1} : selection(); });
    }
  }
}

} // namespace oktopk_tests::partitioning

namespace oktopk_tests {

using partitioning::check_partitioner;

} // namespace oktopk_tests
