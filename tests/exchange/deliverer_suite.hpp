// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "exchange/parts.hpp"
#include "support/call.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/generators.hpp"

#include <oktopk/exchange/deliver.hpp>
#include <oktopk/format/packed.hpp>

#include <algorithm>
#include <map>

// What every deliverer must pass: include this, name the type, and call `check_deliverer` in a test case.
namespace oktopk_tests::delivery {

/// Boundaries of regions in which parts of ascending entries lie.
template <class Value>
std::vector<std::int64_t> boundaries_of(std::vector<sparse_vector<Value>> const& parts) {
  std::vector<std::int64_t> boundaries{0};
  for (auto const& part : parts) {
    boundaries.push_back(part.indices.empty() ? boundaries.back() : part.indices.back() + 1);
  }
  boundaries.back() = length_of_parts;
  return boundaries;
}

/// Sums of regions of these sizes, delivered in several calls with the same buffers, the second with a fault on a rank.
///
/// Promises: all ranks get the same entries, ascending, each of them a sum of the rank that owns it; `own` are those of this
/// rank; no rank sends more than the bound; all ranks hear whose regions are uneven; a fault is thrown on all ranks, which then go
/// on; a saved state is sound.
template <class Format, class Deliverer>
void check_sizes(typename Deliverer::options const& how, std::vector<std::int64_t> const& sizes, std::int64_t k,
                 std::uint64_t seed) {
  using value_type = typename Format::value_type;
  INFO("sizes " << Catch::Detail::stringify(sizes) << ", k " << k);
  constexpr int calls = 5;
  auto const ranks = sizes.size();
  auto const parts = random_parts<value_type>(sizes, seed);
  auto const everything = joined(parts);
  std::map<std::int64_t, value_type> sums;
  for (std::size_t i = 0; i < everything.indices.size(); ++i) {
    sums[everything.indices[i]] = everything.values[i];
  }
  std::vector<std::vector<sparse_vector<value_type>>> found(calls, std::vector<sparse_vector<value_type>>(ranks));
  oktopk::in_process::run(static_cast<int>(ranks), [&](oktopk::in_process_communicator inner) {
    counting comm(inner);
    auto const rank = static_cast<std::size_t>(comm.rank());
    auto const owned = regions_of(boundaries_of(parts));
    typename Deliverer::template step<execution, counting, Format> step{Deliverer(how), Format()};
    typename Deliverer::template state<value_type> state;
    device_part<Format> const mine(parts[rank]);
    for (int call = 0; call < calls; ++call) {
      auto context = call_on(comm, length_of_parts, k, call);
      auto const longest = *std::ranges::max_element(sizes);
      oktopk::detail::reduced<Format, execution> const reduced{mine.entries, longest, {}, {}, &owned, comm.rank()};
      comm.reset();
      double const bound =
          step.bound_words({static_cast<int>(ranks), length_of_parts, k, longest, longest, double(longest)})
              .total(comm);
      if (call == 1) {
        context.note(rank == ranks / 2 ? oktopk::detail::fault_report{oktopk::fault::non_finite, 7}
                                       : oktopk::detail::fault_report());
        auto const said = outcome_of([&] { step.run(context, reduced, owned, state); });
        CHECK(unlike(said, oktopk::fault::non_finite, "rank " + std::to_string(ranks / 2) + ": the value at index 7") ==
              "");
        state = {};
        continue;
      }
      context.is_uneven = rank == ranks - 1 && call == 3;
      auto const result = step.run(context, reduced, owned, state);
      CHECK(comm.total().words_sent() <= bound);
      CHECK(context.is_uneven == (call == 3)); // all ranks hear of it
      CHECK(state.is_sound(call + 1));
      auto const all = entries_of(result.all);
      CHECK(std::ranges::is_sorted(all.indices, std::less_equal<>()));
      for (std::size_t i = 0; i < all.indices.size(); ++i) {
        CHECK((sums.count(all.indices[i]) == 1 && (!Format::lossless || sums[all.indices[i]] == all.values[i])));
      }
      auto const own = entries_of(result.own);
      auto const region = owned.region_of(comm.rank());
      auto const here = [&](std::int64_t index) { return region.begin <= index && index < region.end; };
      CHECK((own.indices.size() == static_cast<std::size_t>(std::ranges::count_if(all.indices, here)) ||
             (Format::lossless && own.indices.empty()))); // nobody needs them then
      found[static_cast<std::size_t>(call)][rank] = all;
    }
  });
  for (auto const& each : found) {
    for (auto const& of_rank : each) {
      CHECK((of_rank == each[0]));
    }
  }
}

/// All that `deliverer` promises; see there.
template <class Deliverer>
void check_deliverer(typename Deliverer::options const& how = {}) {
  static_assert(oktopk::deliverer<Deliverer, execution, counting, oktopk::coo<>>);
  Deliverer const policy(how);
  CHECK(std::string(policy.problem()).empty());
  CHECK(!std::string(policy.describe()).empty());
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    auto const sizes = random_sizes(seed);
    for (std::int64_t const k : {0, 1, 20}) {
      check_sizes<oktopk::coo<>, Deliverer>(how, sizes, k, seed);
      check_sizes<oktopk::packed<double, std::int64_t, oktopk::bfloat16_values>, Deliverer>(how, sizes, k, seed);
    }
  }
}

} // namespace oktopk_tests::delivery

namespace oktopk_tests {

using delivery::check_deliverer;

} // namespace oktopk_tests
