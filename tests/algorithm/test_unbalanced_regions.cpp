// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Regions that no partitioner of the library makes, but one's own may, and a saved state: all entries in one of them.
// And options at the end of what their type holds, which mean "never".

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/policies.hpp"
#include "support/reference.hpp"

#include <oktopk/algorithm/dense_family.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/codec/block_float.hpp>
#include <oktopk/format/coo_or_dense.hpp>
#include <oktopk/select/reused_threshold.hpp>

using namespace oktopk_tests;
using oktopk::in_process_communicator;

namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// Everything belongs to the last rank.
struct last_owns {
  struct options {};

  last_owns() = default;
  explicit last_owns(options) {}

  static std::string describe() { return "last_owns"; }
  static std::string problem() { return {}; }
  static bool due(std::int64_t iteration) { return iteration == 0; }
  static double bound_words(int) { return 0; }

  template <oktopk::execution_space E, oktopk::communicator Comm>
  class step {
  public:
    explicit step(last_owns const&) {}

    template <oktopk::gradient_index Index>
    std::span<std::int64_t const> run(oktopk::call_context<E, Comm>& call,
                                      oktopk::array_ref<Index const, typename E::memory_space> const&) {
      boundaries_.assign(static_cast<std::size_t>(call.comm.size()) + 1, 0);
      boundaries_.back() = call.length;
      return boundaries_;
    }

  private:
    std::vector<std::int64_t> boundaries_;
  };
};

/// Twice the size of COO until it is dense: a bound that is far from superadditive.
template <class Partitioner>
using coo_or_dense_in = oktopk::ok_topk<execution, in_process_communicator,
                                        policies_of<oktopk::coo_or_dense<>, oktopk::exact, oktopk::exact, Partitioner>>;

template <class Update>
void check_all_ones(Update const& update, std::int64_t length, int ranks) {
  auto const values = to_vector(update.values());
  CHECK(static_cast<std::int64_t>(values.size()) == length);
  CHECK(std::count(values.begin(), values.end(), static_cast<float>(ranks)) == length);
}

} // namespace

TEST_CASE("a format whose pieces take more than the whole is balanced without running out of room") {
  std::int64_t const length = 8000;
  for (int const ranks : {2, 3, 8, 13}) {
    CAPTURE(ranks);
    oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
      coo_or_dense_in<last_owns> allreduce(execution(), comm, {.length = length, .k = length});
      check_all_ones(allreduce(to_view(std::vector<float>(length, 1.0F))), length, ranks);
      CHECK(allreduce.last_call().balanced);
    });
  }
}

TEST_CASE("restored boundaries that leave all entries to one rank are served") {
  std::int64_t const length = 8000;
  for (int const ranks : {2, 3, 8}) {
    CAPTURE(ranks);
    oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
      coo_or_dense_in<oktopk::evened> allreduce(execution(), comm, {.length = length, .k = length});
      auto state = allreduce.state();
      state.iteration = 1;
      state.boundaries.assign(static_cast<std::size_t>(ranks) + 1, 0);
      state.boundaries.back() = length;
      allreduce.restore(state);
      check_all_ones(allreduce(to_view(std::vector<float>(length, 1.0F))), length, ranks);
    });
  }
}

TEST_CASE("balancing that is worth no message is never done, and the widest options are served") {
  std::int64_t const length = 8000;
  oktopk::in_process::run(8, [&](in_process_communicator comm) {
    using algorithm = oktopk::ok_topk<execution, in_process_communicator,
                                      policies_of<oktopk::coo<>, oktopk::exact, oktopk::exact, last_owns>>;
    algorithm allreduce(execution(), comm,
                        {.length = length,
                         .k = length,
                         .schedule = {.bucket = std::numeric_limits<int>::max()},
                         .gather = {.ratio = 1e9, .bound_sent = false, .message_entries = never}});
    check_all_ones(allreduce(to_view(std::vector<float>(length, 1.0F))), length, 8);
    CHECK(!allreduce.last_call().balanced);
  });
}

TEST_CASE("periods and rounds without end are served") {
  std::int64_t const length = 500;
  using algorithm = oktopk::ok_topk<execution, in_process_communicator, reused_policies>;
  oktopk::in_process::run(5, [&](in_process_communicator comm) {
    algorithm allreduce(execution(), comm,
                        {.length = length,
                         .k = length,
                         .local_select = {.tau_prime = never},
                         .global_select = {.tau_prime = never},
                         .partition = {.tau = never, .rounds = std::numeric_limits<int>::max()}});
    for (int call = 0; call < 3; ++call) {
      check_all_ones(allreduce(to_view(std::vector<float>(length, 1.0F))), length, 5);
    }
  });
}

TEST_CASE("coded segments without end are served") {
  using algorithm = oktopk::dense_ring_chunked<execution, in_process_communicator, float, std::int32_t,
                                               oktopk::coded_wire<oktopk::block_float>>;
  for (std::int64_t const segment : {std::int64_t(1), std::int64_t(1000), never - 1, never}) {
    CAPTURE(segment);
    oktopk::in_process::run(3, [&](in_process_communicator comm) {
      algorithm allreduce(execution(), comm, {.length = 1000, .reduce = {.segment = segment, .cutoff_bytes = 0}});
      check_all_ones(allreduce(to_view(std::vector<float>(1000, 1.0F))), 1000, 3);
    });
  }
}
