// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The whole of Ok-Topk through a communicator that reaches no memory of kernels: the same bits as without the copies.

#include "support/catch.hpp"
#include "support/kept_update.hpp"
#include "support/seeded.hpp"
#include "support/unreachable.hpp"

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/comm/in_process.hpp>

using namespace oktopk_tests;
using oktopk::in_process_communicator;

namespace {

constexpr std::int64_t length = 3000;
constexpr int iterations = 5;

// Every rank's updates, rank by rank; `wrap` makes the communicator.
template <class Algorithm, class Wrap>
std::vector<std::vector<kept_update>> updates(int ranks, typename Algorithm::options const& how, Wrap const& wrap) {
  std::vector<std::vector<kept_update>> all(static_cast<std::size_t>(ranks));
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    Algorithm allreduce(host_execution(), wrap(comm), how);
    for (int iteration = 0; iteration < iterations; ++iteration) {
      auto const accumulator = seeded_accumulator<float>(length, comm.rank(), iteration);
      all[static_cast<std::size_t>(comm.rank())].push_back(keep_update(allreduce(accumulator)));
    }
  });
  return all;
}

template <template <class> class Algorithm, class Options>
void same_bits_staged(int ranks, Options const& set) {
  using near_type = Algorithm<in_process_communicator>;
  using far_type = Algorithm<unreachable<in_process_communicator>>;
  typename near_type::options near_options{.length = length};
  typename far_type::options far_options{.length = length};
  set(near_options);
  set(far_options);
  auto const near_updates = updates<near_type>(ranks, near_options, [](auto comm) { return comm; });
  auto const far_updates = updates<far_type>(ranks, far_options, [](auto comm) { return unreachable(comm); });
  CHECK(near_updates[0][0].indices.size() > 0);
  CHECK(difference(near_updates, far_updates) == "");
}

template <class Comm>
using ok_topk = oktopk::ok_topk<host_execution, Comm>;

template <class Comm>
using dense = oktopk::dense<host_execution, Comm>;

} // namespace

TEST_CASE("ok_topk gives the same bits with staging as without") {
  for (int const ranks : {1, 2, 3, 5, 8, 13}) {
    same_bits_staged<ok_topk>(ranks, [](auto& how) {
      how.k = 60;
      how.schedule.bucket = 2;
      how.gather.ratio = 1; // balance in every iteration
    });
  }
}

TEST_CASE("ok_topk without balancing and with k = n gives the same bits with staging as without") {
  same_bits_staged<ok_topk>(4, [](auto& how) {
    how.density = 1;
    how.gather.ratio = 1000;
    how.gather.bound_sent = false;
  });
}

TEST_CASE("dense gives the same bits with staging as without") {
  for (int const ranks : {1, 4, 7}) {
    same_bits_staged<dense>(ranks, [](auto&) {});
  }
}
