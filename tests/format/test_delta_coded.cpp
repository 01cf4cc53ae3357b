// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The format concept suffices: a format of a quite different kind serves the whole algorithm.

#include "support/catch.hpp"
#include "support/delta_coded.hpp"
#include "support/kept_update.hpp"
#include "support/policies.hpp"
#include "support/ranks.hpp"
#include "support/seeded.hpp"

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/select/reused_threshold.hpp>

using namespace oktopk_tests;

namespace {

using counted = oktopk::counted<oktopk::in_process_communicator>;
using delta = delta_coded<float, std::int32_t>;

static_assert(oktopk::sparse_format<delta> && oktopk::sparse_format<delta_coded<double, std::int64_t>>);

struct seen {
  explicit seen(int ranks) : updates(static_cast<std::size_t>(ranks)), reduce(updates.size()), gather(updates.size()) {}

  std::vector<std::vector<kept_update>> updates; // of each rank, as the rest
  std::vector<oktopk::traffic> reduce;
  std::vector<oktopk::traffic> gather;
  int balanced = 0;
  int reevaluated = 0;
};

template <class Format>
seen run(int ranks, double ratio) {
  using algorithm =
      oktopk::ok_topk<host_execution, counted, policies_of<Format, oktopk::reused_threshold, oktopk::reused_threshold>>;
  constexpr std::int64_t length = 20000;
  seen all(ranks);
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator inner) {
    counted comm(inner);
    auto const me = static_cast<std::size_t>(comm.rank());
    typename algorithm::options how{.length = length, .k = 400};
    how.local_select.tau_prime = 4;
    how.global_select.tau_prime = 3;
    how.partition.tau = 2;
    how.gather.ratio = ratio;
    algorithm allreduce(host_execution(), comm, how);
    comm.reset();
    for (int iteration = 0; iteration < 5; ++iteration) {
      all.updates[me].push_back(keep_update(allreduce(seeded_accumulator<float>(length, comm.rank(), iteration))));
      all.balanced += allreduce.last_call().balanced ? 1 : 0;
      all.reevaluated += allreduce.last_call().global_reevaluated ? 1 : 0;
    }
    all.reduce[me] = comm.of_phase(oktopk::phase::reduce);
    all.gather[me] = comm.of_phase(oktopk::phase::gather);
  });
  return all;
}

} // namespace

TEST_CASE("delta_coded gives back what it got, in less than the most it may take") {
  std::vector<std::int64_t> const indices = {5000000000, 5000000001, 5000000200, 5123456789};
  std::vector<double> const values = {1, -0.0, 3, 4};
  oktopk::region const where{5000000000, 5200000000};
  std::vector<std::uint64_t> storage(20);
  auto* const wire = reinterpret_cast<std::byte*>(storage.data());
  using wide = delta_coded<double, std::int64_t>;
  auto const bytes = wide::encode(host_execution(), {indices.data(), values.data(), 4}, where, wire);
  CHECK(bytes == 4 * 8 + 1 + 1 + 2 + 4);
  CHECK(bytes < wide::max_encoded_bytes(4, where));
  std::vector<std::int64_t> got_indices(4);
  std::vector<double> got_values(4);
  wide::decode(host_execution(), static_cast<std::byte const*>(wire), bytes, 4, where, got_indices.data(),
               got_values.data());
  CHECK(got_indices == indices);
  CHECK(got_values == values);
  CHECK_THROWS_AS(wide::decode(host_execution(), static_cast<std::byte const*>(wire), bytes + 1, 4, where,
                               got_indices.data(), got_values.data()),
                  oktopk::error);
}

TEST_CASE("ok_topk gives the same bits in a format of variable size, and sends what that takes") {
  for (int const ranks : rank_counts) {
    for (double const ratio : {1.0, 1000.0}) {
      seen const with_coo = run<oktopk::coo<>>(ranks, ratio);
      seen const with_delta = run<delta>(ranks, ratio);
      CHECK(difference(with_coo.updates, with_delta.updates) == "");
      CHECK(with_coo.balanced == with_delta.balanced);
      CHECK((ranks == 1 || ratio > 1 || with_delta.balanced > 0));
      CHECK(with_delta.reevaluated > 0);
      for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
        CHECK(with_delta.reduce[rank].messages_sent == with_coo.reduce[rank].messages_sent);
        CHECK((ranks == 1 || with_delta.reduce[rank].bytes_sent < with_coo.reduce[rank].bytes_sent));
        CHECK((ranks == 1 || with_delta.gather[rank].bytes_sent < with_coo.gather[rank].bytes_sent));
      }
    }
  }
}
