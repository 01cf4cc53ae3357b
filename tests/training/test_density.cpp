// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Schedules of the density: the stages of a warm-up, and a density that follows the updates.

#include "algorithm/record.hpp"
#include "support/call.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/foreign_transport.hpp"

#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/comm/self.hpp>
#include <oktopk/training/density.hpp>

using namespace oktopk_tests;
using oktopk::adaptive_density;
using oktopk::density_schedule;
using oktopk::fault;

namespace {

using adaptive = adaptive_density<execution, double>;

/// After each gradient of one value.
std::vector<double> densities_after(adaptive& schedule, std::vector<double> const& norms) {
  oktopk::self_communicator alone;
  std::vector<double> densities;
  for (double const norm : norms) {
    schedule.observe(execution(), alone, to_view(std::vector<double>{norm}));
    densities.push_back(schedule.density());
  }
  return densities;
}

} // namespace

TEST_CASE("a warm-up goes down in stages of one factor, and ends with the density") {
  density_schedule const schedule{.density = 0.001, .initial = 0.256, .warm_up = 400, .stages = 4};
  CHECK(schedule.problem().empty());
  CHECK(schedule.at(0) == Approx(0.256));
  CHECK(schedule.at(99) == Approx(0.256));
  CHECK(schedule.at(100) == Approx(0.064));
  CHECK(schedule.at(200) == Approx(0.016));
  CHECK(schedule.at(399) == Approx(0.004));
  CHECK(schedule.at(400) == 0.001);
  CHECK(schedule.at(1'000'000'000'000) == 0.001);
  CHECK(schedule.k(0, 1000) == 256);
  CHECK(schedule.k(400, 1000) == 1);
  CHECK(schedule.k(400, 10) == 1);
  CHECK(schedule.k(400, 0) == 0);
}

TEST_CASE("an iteration below 0 has the density of iteration 0, and without a warm-up all have the same") {
  density_schedule const schedule{.density = 0.01, .initial = 0.5, .warm_up = 10};
  CHECK(schedule.at(-1) == schedule.at(0));
  CHECK(schedule.at(std::numeric_limits<std::int64_t>::min()) == 0.5);
  CHECK(schedule.k(-5, 1000) == 500);
  CHECK(density_schedule{.density = 0.02}.at(-5) == 0.02);
  CHECK(density_schedule{.density = 0.02}.at(0) == 0.02);
  CHECK(density_schedule{.density = 0.01, .warm_up = 10}.k(0, 12'345) ==
        12'345); // from dense it begins with everything
}

TEST_CASE("schedules that make no sense have a problem") {
  CHECK(!density_schedule{.density = 0}.problem().empty());
  CHECK(!density_schedule{.density = 1.5}.problem().empty());
  CHECK(!density_schedule{.density = 0.5, .initial = 0.25}.problem().empty());
  CHECK(!density_schedule{.warm_up = -1}.problem().empty());
  CHECK(!density_schedule{.stages = 0}.problem().empty());
  CHECK(outcome_of([] { adaptive({.low = 0.2, .high = 0.1}); }).code == fault::option_out_of_range);
  CHECK(outcome_of([] { adaptive({.threshold = 0}); }).code == fault::option_out_of_range);
  CHECK(outcome_of([] { adaptive({.window = 0}); }).code == fault::option_out_of_range);
}

TEST_CASE("a density that adapts is high at first and where norms change fast, else low") {
  adaptive schedule({.low = 0.01, .high = 0.1, .threshold = 0.5, .window = 2});
  CHECK(densities_after(schedule, {10, 10, 9, 9, 9, 9, 2, 2, 2, 2}) ==
        std::vector<double>{0.1, 0.1, 0.1, 0.01, 0.01, 0.01, 0.01, 0.1, 0.1, 0.01});
  adaptive resumed({.low = 0.01, .high = 0.1, .threshold = 0.5, .window = 2});
  resumed.restore(schedule.state());
  CHECK(resumed.density() == 0.01);
  CHECK(resumed.k(1000) == 10);
}

TEST_CASE("norms of 0 do not change, and a norm that comes up from 0 does") {
  adaptive schedule({.low = 0.01, .high = 0.1, .threshold = 0.5, .window = 1});
  CHECK(densities_after(schedule, {1, 1, 0, 0, 0, 1e-310, 1e-310}) ==
        std::vector<double>{0.1, 0.01, 0.1, 0.01, 0.01, 0.1, 0.01});
}

TEST_CASE("a damaged state of an adaptive density is refused, with a communicator on every rank") {
  double const infinity = std::numeric_limits<double>::infinity();
  for (adaptive::state_type const& bad :
       {adaptive::state_type{-5, 1, 1}, adaptive::state_type{4, std::nan(""), 1}, adaptive::state_type{4, infinity, 0},
        adaptive::state_type{4, 1, 7}, adaptive::state_type{4, 1, -1}, adaptive::state_type{4, -1, 0},
        adaptive::state_type{std::numeric_limits<std::int64_t>::max(), 1, 1}}) {
    CAPTURE(bad.iterations, bad.last, bad.is_high);
    adaptive alone({.window = 2});
    densities_after(alone, {3});
    CHECK(outcome_of([&] { alone.restore(bad); }).code == fault::bad_state);
    CHECK(alone.state().iterations == 1);
    CHECK(alone.density() == 0.1);
    oktopk::in_process::run(3, [&](oktopk::in_process_communicator comm) {
      adaptive schedule({.window = 2});
      auto const saved = comm.rank() == 1 ? bad : adaptive::state_type{4, 1, 0};
      auto const heard = outcome_of([&] { schedule.restore(comm, saved); });
      CHECK(unlike(heard, fault::bad_state, "rank 1: the saved state of an adaptive density is damaged") == "");
      CHECK(schedule.state().iterations == 0);
    });
  }
  oktopk::in_process::run(2, [&](oktopk::in_process_communicator comm) {
    adaptive schedule({.window = 2});
    CHECK(outcome_of([&] { schedule.restore(comm, {4, 1.0 + comm.rank(), 0}); }).code == fault::ranks_disagree);
    schedule.restore(comm, {5, 1, 0});
    CHECK(schedule.state().iterations == 4);
    CHECK(schedule.density() == 0.01);
    schedule.restore(comm, adaptive::state_type());
    CHECK(schedule.density() == 0.1);
  });
}

TEST_CASE("all ranks adapt alike to their gradients, agree on k, and stay low where these do not change") {
  constexpr std::int64_t length = 3000;
  bool const is_foreign = GENERATE(false, true); // reaches memory of kernels alone
  oktopk::in_process::run(4, [=](oktopk::in_process_communicator inner) {
    oktopk::any_communicator comm = inner;
    if (is_foreign) {
      comm = foreign_communicator(inner);
    }
    auto allreduce = oktopk::make_allreduce(execution(), comm, "ok_topk", {.length = length, .k = 300});
    adaptive_density<execution> schedule({.low = 0.01, .high = 0.1, .threshold = 0.3, .window = 2});
    std::vector<std::int64_t> ks;
    for (int iteration = 0; iteration < 16; ++iteration) {
      std::vector<float> gradient(static_cast<std::size_t>(length));
      correlated{5, 3}({comm.rank(), 4, 0}, gradient); // the same in all iterations
      auto const view = to_view(gradient);
      allreduce(view);
      if (schedule.observe(execution(), comm, view)) {
        allreduce.set_k(schedule.k(length)); // an error where ranks disagree
      }
      ks.push_back(allreduce.k());
    }
    CHECK(std::count(ks.begin(), ks.end(), 300) == 3); // two windows, the second of which decides at its end
    CHECK(std::count(ks.begin(), ks.end(), 30) == 13);
  });
}
