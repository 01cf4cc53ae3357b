// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "exchange/parts.hpp"
#include "support/call.hpp"
#include "support/catch.hpp"
#include "support/generators.hpp"
#include "support/strict_gap16.hpp"

#include <oktopk/exchange/concept.hpp>
#include <oktopk/format/coo_or_dense.hpp>
#include <oktopk/format/packed.hpp>
#include <oktopk/format/values/fixed.hpp>

// What every gather must pass: include this, name the type, and call `check_gather` in a test case.
namespace oktopk_tests::gathering {

/// Parts of these sizes, gathered twice in the same buffers, with another target each time.
///
/// Promises: all ranks have all entries in rank order, to the bit; of a lossy format all have the same bits; all ranks
/// say alike whether parts were balanced; the buffers of one call serve the next; the sizes that go in are left alone.
template <class Format, class Gather>
void check_parts(typename Gather::options const& how, std::vector<std::vector<std::int64_t>> const& calls,
                 std::uint64_t seed) {
  auto const ranks = calls[0].size();
  std::vector<std::vector<char>> balanced(calls.size(), std::vector<char>(ranks));
  std::vector<std::vector<std::vector<typename Format::value_type>>> values_of(
      calls.size(), std::vector<std::vector<typename Format::value_type>>(ranks));
  oktopk::in_process::run(static_cast<int>(ranks), [&](oktopk::in_process_communicator inner) {
    counting comm(inner);
    auto const rank = static_cast<std::size_t>(comm.rank());
    Gather const policy(how);
    typename Gather::template step<execution, counting, Format> step(policy, Format());
    for (std::size_t call = 0; call < calls.size(); ++call) {
      INFO("sizes " << Catch::Detail::stringify(calls[call]));
      auto const parts = random_parts<typename Format::value_type>(calls[call], seed + call);
      auto const everything = joined(parts);
      device_part<Format> const mine(parts[rank]);
      std::vector<std::int64_t> const sizes = calls[call];
      auto context = call_on(comm, length_of_parts, call % 2 == 0 ? everything.size() : 0);
      auto const all = step.run(context, mine.entries, sizes);
      auto const gathered = entries_of(all.entries);
      if constexpr (Format::lossless) {
        CHECK((gathered == everything));
      } else {
        CHECK(gathered.indices == everything.indices);
        values_of[call][rank] = gathered.values;
      }
      CHECK(sizes == calls[call]);
      CHECK((ranks > 1 || comm.total().messages_sent == 0));
      balanced[call][rank] = all.balanced ? 1 : 0;
    }
  });
  for (auto const& said : balanced) {
    CHECK((said == std::vector<char>(ranks, said[0])));
  }
  for (auto const& values : values_of) {
    CHECK((values == std::vector<std::vector<typename Format::value_type>>(ranks, values[0])));
  }
}

template <class Format, class Gather>
void check_format(typename Gather::options const& how) {
  static_assert(oktopk::gather_policy<Gather, execution, counting, Format>);
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    auto const sizes = random_sizes(seed);
    std::vector<std::int64_t> larger = sizes;
    std::vector<std::int64_t> one_has_all(sizes.size(), 0);
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
      larger[rank] = 3 * sizes[rank] + 1;
      one_has_all.back() += sizes[rank];
    }
    check_parts<Format, Gather>(how, {sizes, larger, one_has_all, sizes}, seed);
  }
}

/// All that `gather_policy` promises, in formats whose size is known, follows from the count, or is not known before.
template <class Gather>
void check_gather(typename Gather::options const& how = {}) {
  Gather const policy(how);
  CHECK(std::string(policy.problem()).empty());
  CHECK(!std::string(policy.describe()).empty());
  check_format<oktopk::coo<>, Gather>(how);
  check_format<oktopk::coo<double, std::int32_t>, Gather>(how);
  check_format<oktopk::coo_or_dense<>, Gather>(how);
  check_format<oktopk::packed<>, Gather>(how);
  check_format<oktopk::packed<double, std::int64_t, oktopk::fixed_values<4>>, Gather>(how);
  check_format<strict_gap16, Gather>(how);
}

} // namespace oktopk_tests::gathering

namespace oktopk_tests {

using gathering::check_gather;

} // namespace oktopk_tests
