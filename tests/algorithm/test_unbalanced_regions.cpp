// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Regions that no partitioner of the library makes, but one's own may, and a saved state: all entries in one of them.
// And options at the end of what their type holds, which mean "never".

#include "sgd/gradients.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/collect.hpp"
#include "support/generators.hpp"
#include "support/policies.hpp"
#include "support/reference.hpp"

#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/exchange/radix.hpp>
#include <oktopk/format/coo_or_dense.hpp>
#include <oktopk/partition/uniform.hpp>

#include <numeric>

using namespace oktopk_tests;
using oktopk::in_process_communicator;

namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// Everything belongs to the last rank.
struct last_owns : oktopk::partitioner_base {
  struct options {};

  last_owns() = default;
  explicit last_owns(options) {}

  static std::string describe() { return "last_owns"; }
  static std::string problem() { return {}; }
  static bool due(std::int64_t iteration) { return iteration == 0; }
  static double bound_words(int, std::int64_t, bool) { return 0; }

  template <oktopk::execution_space E, oktopk::communicator Comm>
  class step : public oktopk::partitioner_base::step_base {
  public:
    explicit step(last_owns const&) {}

    template <oktopk::gradient_index Index>
    std::span<std::int64_t const> run(oktopk::call_context<E, Comm>& call,
                                      oktopk::array_ref<Index const, typename E::memory_space> const&, bool) {
      boundaries_.assign(static_cast<std::size_t>(call.comm.size()) + 1, 0);
      boundaries_.back() = call.length;
      return boundaries_;
    }

  private:
    std::vector<std::int64_t> boundaries_;
  };
};

/// Twice the size of COO until it is dense: a bound that is far from superadditive.
using on_last_rank = oktopk::ok_topk<execution, oktopk::any_communicator,
                                     policies_of<oktopk::coo_or_dense<>, oktopk::exact, oktopk::exact, last_owns>>;

/// Ones on all ranks: every sum is the number of ranks. `make(comm)` gives the algorithm. The gather balances in the first
/// calls, until regions are made anew.
template <class Make>
void check_all_ones(int ranks, int balanced, Make const& make) {
  CAPTURE(ranks);
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    auto allreduce = make(comm);
    auto const length = static_cast<std::size_t>(allreduce.length());
    for (int call = 0; call < 3; ++call) {
      auto const& update = allreduce(to_view(std::vector<float>(length, 1.0F)));
      CHECK(to_vector(update.values()) == std::vector<float>(length, static_cast<float>(ranks)));
      CHECK(allreduce.last_call().balanced == (call < balanced));
    }
  });
}

auto by_text(std::string const& text, std::int64_t length) {
  return [=](in_process_communicator const& comm) {
    return oktopk::make_allreduce(execution(), comm, text, {.length = length, .k = length});
  };
}

} // namespace

TEST_CASE("a format whose pieces take more than the whole is balanced without running out of room") {
  for (int const ranks : {2, 3, 8, 13}) {
    check_all_ones(ranks, 3, [](in_process_communicator const& comm) {
      return on_last_rank(execution(), comm, {.length = 8000, .k = 8000});
    });
  }
}

TEST_CASE("restored boundaries that leave all entries to one rank are served") {
  for (int const ranks : {2, 3, 8}) {
    check_all_ones(ranks, 1, [=](in_process_communicator const& comm) {
      auto allreduce = by_text("ok_topk(format=coo_or_dense)", 8000)(comm);
      auto saved = allreduce.state();
      change_inside<state_of_ok_topk>(saved, [=](auto& state) {
        state.iteration = 5; // regions are made anew in call 8
        state.boundaries.assign(static_cast<std::size_t>(ranks) + 1, 0);
        state.boundaries.back() = 8000;
      });
      allreduce.restore(saved);
      return allreduce;
    });
  }
}

TEST_CASE("balancing that is worth no message is never done, and the widest options are served") {
  check_all_ones(8, 0, [](in_process_communicator const& comm) {
    return on_last_rank(execution(), comm,
                        {.length = 8000,
                         .k = 8000,
                         .schedule = {.bucket = std::numeric_limits<int>::max()},
                         .deliver = {.gather = {.ratio = 1e9, .bound_sent = false, .message_entries = never}}});
  });
}

TEST_CASE("periods without end are served") {
  std::string const without_end = std::to_string(never);
  check_all_ones(5, 0,
                 by_text("ok_topk(local=reused(tau_prime=" + without_end + "), global=reused(tau_prime=" + without_end +
                             "), partition=sampled(tau=" + without_end + ", check_from=" + without_end + "))",
                         500));
}

TEST_CASE("coded segments without end are served") {
  for (std::int64_t const segment : {std::int64_t(1), std::int64_t(1000), never - 1, never}) {
    CAPTURE(segment);
    check_all_ones(
        3, 0,
        by_text("ring_chunked(codec=block_float, cutoff_bytes=0, segment=" + std::to_string(segment) + ")", 1000));
  }
}

namespace {

template <class Schedule>
using dealing = oktopk::ok_topk<
    execution, counting,
    policies_of<oktopk::coo<double, std::int64_t>, oktopk::exact, oktopk::exact, oktopk::uniform, Schedule>>;

/// Whole numbers, so that sums are exact in any order, without ties; nine tenths of the large ones are in the first
/// tenth.
std::vector<double> crowded_numbers(std::int64_t length, int rank, int call) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < length; ++i) {
    std::uint64_t const bits =
        noise(3, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(call), static_cast<std::uint64_t>(i));
    double const magnitude = std::floor(std::ldexp(fraction(bits), i * 10 < length ? 40 : 36));
    values.push_back(bits % 2 == 0 ? magnitude : -magnitude);
  }
  return values;
}

/// What every rank gets in three calls, and the words that it receives in the reduce phase.
struct dealt_calls {
  std::vector<std::vector<std::string>> updates;
  std::vector<double> received;
};

template <class Schedule>
dealt_calls calls_with(int ranks, typename dealing<Schedule>::options const& how) {
  dealt_calls all;
  all.updates.resize(static_cast<std::size_t>(ranks));
  all.received.resize(static_cast<std::size_t>(ranks));
  oktopk::in_process::run(ranks, [&](in_process_communicator const& comm) {
    counting counted(comm);
    dealing<Schedule> allreduce(execution(), counted, how);
    auto const rank = static_cast<std::size_t>(comm.rank());
    for (int call = 0; call < 3; ++call) {
      auto const& update = allreduce(to_view(crowded_numbers(how.length, comm.rank(), call)));
      auto const values = to_vector(update.values());
      all.updates[rank].push_back(Catch::Detail::stringify(to_vector(update.indices())) +
                                  Catch::Detail::stringify(bits(values)) +
                                  Catch::Detail::stringify(to_vector(update.contributed())));
    }
    all.received[rank] = counted.of_phase(oktopk::phase::reduce).words_received();
  });
  return all;
}

} // namespace

TEST_CASE("regions of several blocks change nothing about a result") {
  for (int const ranks : {1, 2, 3, 5, 8}) {
    for (std::int64_t const length : {1, 7, 100, 1003}) {
      for (int const blocks : {2, 7, 1000}) {
        CAPTURE(ranks, length, blocks);
        dealing<oktopk::rotated>::options how{.length = length, .density = 0.3};
        auto const contiguous = calls_with<oktopk::rotated>(ranks, how).updates;
        how.partition.blocks = blocks;
        CHECK(calls_with<oktopk::rotated>(ranks, how).updates == contiguous);
        auto const in_stages = calls_with<oktopk::radix>(
            ranks, {.length = length, .density = 0.3, .partition = {blocks}, .schedule = {.radix = 2}});
        CHECK(in_stages.updates == contiguous);
      }
    }
  }
}

TEST_CASE("regions of several blocks are even though large gradients lie close together") {
  auto const imbalance = [](int blocks) {
    auto const received =
        calls_with<oktopk::rotated>(8, {.length = 20000, .density = 0.05, .partition = {blocks}}).received;
    return *std::ranges::max_element(received) * 8 / std::accumulate(received.begin(), received.end(), 0.0);
  };
  CHECK(imbalance(1) > 5);
  CHECK(imbalance(100) < 1.15);
}

TEST_CASE("an overflow in a region of several blocks has its index in the gradient") {
  for (int const index : {0, 3, 17, 58, 99}) {
    oktopk::in_process::run(4, [&](in_process_communicator const& comm) {
      dealing<oktopk::rotated> allreduce(execution(), counting(comm), {.length = 100, .k = 10, .partition = {5}});
      std::vector<double> values(100, 0);
      values[static_cast<std::size_t>(index)] = std::numeric_limits<double>::max();
      auto const out = outcome_of([&] { allreduce(to_view(values)); });
      CHECK(out.code == oktopk::fault::non_finite);
      CHECK(out.says("at index " + std::to_string(index) + " overflows"));
    });
  }
}
