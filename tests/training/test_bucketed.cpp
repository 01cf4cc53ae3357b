// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Several tensors in buckets: the same bits as a flat call, nothing lost in any plan, errors on every rank, restart.

#include "sgd/gradients.hpp"
#include "support/call.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"

#include <oktopk/algorithm/gtopk.hpp>
#include <oktopk/bucketed.hpp>

#include <functional>
#include <sstream>
#include <thread>

namespace test_of_bucketed {

using namespace oktopk_tests;
using oktopk::bucket;
using oktopk::fault;
using oktopk::in_process_communicator;
using oktopk::detail::bucketed_options;

namespace {

constexpr int ranks = 3;
constexpr int iterations = 5;
std::vector<std::int64_t> const lengths{300, 7, 0, 120, 64, 509};

using buckets_of_any = oktopk::bucketed<any>;
using inside = state_of_ok_topk;

std::int64_t begin_of(std::size_t tensor) {
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < tensor; ++i) {
    begin += lengths[i];
  }
  return begin;
}

constexpr std::int64_t length_of_all = 1000;
constexpr auto* flat_gradient = &correlated_gradient<length_of_all, ranks>;

std::vector<float> gradient_of(std::size_t tensor, std::vector<float> const& flat) {
  auto const begin = flat.begin() + begin_of(tensor);
  return {begin, begin + lengths[tensor]};
}

any make_sparse(in_process_communicator const& comm, bucket const& of) {
  return over(comm, "ok_topk", {.length = of.length, .density = of.density > 0 ? of.density : 0.05});
}

buckets_of_any buckets_over(in_process_communicator const& comm, bucketed_options const& how = {},
                            std::vector<std::int64_t> const& of = lengths) {
  return {execution(), comm, of, [&](bucket const& each) { return make_sparse(comm, each); }, how};
}

/// A step with gradients of that iteration, announced from the last tensor to the first as a backward pass does; the
/// averages, tensor after tensor.
template <class Buckets>
std::vector<float> step(Buckets& buckets, int rank, int iteration) {
  auto const flat = flat_gradient(rank, iteration);
  for (std::size_t i = lengths.size(); i-- > 0;) {
    buckets.ready(static_cast<int>(i), to_view(gradient_of(i, flat)));
  }
  buckets.wait();
  std::vector<float> averages;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    auto const average = to_vector(buckets.gradient(static_cast<int>(i)));
    averages.insert(averages.end(), average.begin(), average.end());
  }
  return averages;
}

/// What goes into the steps of all ranks, and what comes out or stays behind: the same.
struct ledger {
  std::vector<double> went_in = std::vector<double>(static_cast<std::size_t>(length_of_all));
  std::vector<double> came_out = went_in;

  template <class Buckets>
  void make_steps(Buckets& buckets, int rank) {
    for (int iteration = 0; iteration < iterations; ++iteration) {
      add(flat_gradient(rank, iteration), went_in);
      add(step(buckets, rank, iteration), came_out); // P ranks hold a P-th of the sum each
    }
  }

  static void add(std::vector<float> const& values, std::vector<double>& to) {
    std::transform(values.begin(), values.end(), to.begin(), to.begin(), std::plus<double>());
  }

  void check() const {
    for (std::size_t i = 0; i < went_in.size(); ++i) {
      REQUIRE(came_out[i] == Approx(went_in[i]).margin(1e-4));
    }
  }
};

} // namespace

TEST_CASE_ON(comm, ranks, "one bucket gives the bits of a flat call") {
  any flat = over(comm, "ok_topk", {.length = length_of_all, .density = 0.05});
  oktopk::error_feedback feedback(flat, {.momentum = 0.9});
  auto buckets = buckets_over(comm, {.feedback = {.momentum = 0.9}});
  REQUIRE(buckets.plan().buckets.size() == 1);
  CHECK(!buckets.overlaps()); // ranks of a process take turns on one thread
  auto const average = to_view(std::vector<float>(static_cast<std::size_t>(length_of_all)));
  for (int iteration = 0; iteration < iterations; ++iteration) {
    feedback.average(feedback(to_view(flat_gradient(comm.rank(), iteration))), average);
    CHECK(bits(step(buckets, comm.rank(), iteration)) == bits(to_vector(average)));
  }
  CHECK(bits(buckets.state().residual) == bits(to_vector(feedback.residual())));
  CHECK(bits(buckets.state().velocity) == bits(feedback.state().velocity));
}

TEST_CASE("in any plan, averages and residuals add up to the gradients") {
  std::string const text = GENERATE(as<std::string>(), "ok_topk", "gtopk", "dense");
  auto const bytes = GENERATE(std::int64_t(1), std::int64_t(4 * 200), std::int64_t(1 << 20));
  ledger all;
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    auto const make = [&](bucket const& of) { return over(comm, text, {.length = of.length, .density = 0.05}); };
    buckets_of_any buckets(execution(), comm, lengths, make, {.plan = {.bucket_bytes = bytes}});
    all.make_steps(buckets, comm.rank());
    ledger::add(buckets.state().residual, all.came_out);
  });
  all.check();
}

TEST_CASE("another plan in the middle of training loses nothing") {
  ledger all;
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    std::vector<bucketed_options> const plans{
        {.plan = {.bucket_bytes = 4 * 400}}, {.plan = {.bucket_bytes = 4 * 130, .order = {5, 3, 4, 1, 2, 0}}}, {}};
    buckets_of_any::state_type saved;
    for (std::size_t p = 0; p < plans.size(); ++p) {
      auto buckets = buckets_over(comm, plans[p]);
      if (p > 0) {
        std::stringstream file;
        oktopk::save(file, saved);
        buckets.restore(oktopk::load<buckets_of_any::state_type>(file));
        REQUIRE(bits(buckets.state().residual) == bits(saved.residual));
      }
      all.make_steps(buckets, comm.rank());
      saved = buckets.state();
    }
    ledger::add(saved.residual, all.came_out);
  });
  all.check();
}

TEST_CASE_ON(comm, ranks, "what goes on from a saved state with the same plan gives the same bits") {
  bucketed_options const how{.plan = {.bucket_bytes = 4 * 200}, .feedback = {.momentum = 0.5}};
  auto going_on = buckets_over(comm, how);
  auto resumed = buckets_over(comm, how);
  for (int iteration = 0; iteration < iterations; ++iteration) {
    step(going_on, comm.rank(), iteration);
  }
  step(resumed, comm.rank(), 77); // its past must not matter
  resumed.restore(going_on.state());
  for (int iteration = 0; iteration < iterations; ++iteration) {
    CHECK(bits(step(going_on, comm.rank(), iteration)) == bits(step(resumed, comm.rank(), iteration)));
  }
  for (int b = 0; b < static_cast<int>(going_on.plan().buckets.size()); ++b) {
    CHECK(going_on.allreduce(b).state() == resumed.allreduce(b).state());
  }
}

TEST_CASE_ON(comm, ranks, "tensors that are not announced count as zeros, on whatever ranks") {
  auto const make = [&](bucket const& of) { return over(comm, "dense", {.length = of.length}); };
  buckets_of_any buckets(execution(), comm, lengths, make, {.plan = {.bucket_bytes = 4 * 200}});
  std::vector<float> const ones(300, 1);
  if (comm.rank() == 1) {
    buckets.ready(0, to_view(ones));
  }
  buckets.wait();
  CHECK(to_vector(buckets.gradient(0))[5] == Approx(1.0 / ranks));
  CHECK(to_vector(buckets.gradient(5))[5] == 0);
  CHECK(buckets.last_step().absent == (comm.rank() == 1 ? 5 : 6));
  step(buckets, comm.rank(), 0);
  CHECK(buckets.last_step().absent == 0);
}

TEST_CASE_ON(comm, ranks, "a tensor that is withheld takes no part: its residual waits, and its average is zero") {
  auto buckets = buckets_over(comm, {.plan = {.bucket_bytes = 4 * 200}, .feedback = {.momentum = 0.9}});
  int const withheld = 3;
  auto const of_tensor = [&](std::vector<float> const& all) { return gradient_of(withheld, all); };
  step(buckets, comm.rank(), 0);
  auto const before = buckets.state();
  auto const flat = flat_gradient(comm.rank(), 1);
  for (std::size_t i = lengths.size(); i-- > 0;) {
    if (i == withheld) {
      buckets.withhold(withheld);
    } else {
      buckets.ready(static_cast<int>(i), to_view(gradient_of(i, flat)));
    }
  }
  buckets.wait();
  auto const after = buckets.state();
  CHECK(to_vector(buckets.gradient(withheld)) == std::vector<float>(static_cast<std::size_t>(lengths[withheld])));
  CHECK(bits(of_tensor(after.residual)) == bits(of_tensor(before.residual)));
  CHECK(bits(of_tensor(after.velocity)) == bits(of_tensor(before.velocity)));
  CHECK(bits(after.residual) != bits(before.residual));
  step(buckets, comm.rank(), 2); // takes part again
  CHECK(bits(of_tensor(buckets.state().residual)) != bits(of_tensor(after.residual)));
  buckets.ready(withheld);
  buckets.withhold(withheld);
  CHECK(outcome_of([&] { buckets.wait(); }).says("was ready already"));
}

TEST_CASE("without tensors a step is nothing, a state is empty, and a wrong number fails the step on every rank") {
  int const wrong_rank = GENERATE(0, 1, 2, -1); // -1: all of them
  std::vector<outcome> heard(ranks);
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    auto buckets = buckets_over(comm, {}, {});
    CHECK_NOTHROW(buckets.wait());
    CHECK(buckets.last_step().absent == 0);
    CHECK_NOTHROW(buckets.restore(buckets.state()));
    heard[static_cast<std::size_t>(comm.rank())] = outcome_of([&] {
      if (wrong_rank < 0 || wrong_rank == comm.rank()) {
        buckets.ready(7);
        buckets.ready(8); // the first one is named
      }
      buckets.wait();
    });
    CHECK_NOTHROW(buckets.wait());
  });
  for (outcome const& each : heard) {
    CHECK(each == heard[0]);
    CHECK(unlike(each, fault::option_out_of_range, "bucketed: there is no tensor 7 among 0") == "");
  }
}

TEST_CASE_ON(comm, ranks,
             "an allreduce that needs a density where none was given: the error names the option that is empty") {
  auto const heard_with = [&](double times, bucketed_options const& how) {
    auto const make = [&](bucket const& of) {
      return over(comm, "ok_topk", {.length = of.length, .density = times * of.density});
    };
    return outcome_of([&] { buckets_of_any(execution(), comm, lengths, make, how); });
  };
  auto const heard = heard_with(1, {});
  CHECK(heard.code == fault::density_out_of_range);
  CHECK(heard.text == "oktopk: bucketed: plan.densities is empty, so a bucket has density 0: "
                      "ok_topk: density = 0 is not in (0, 1]");
  CHECK(heard_with(1, {.plan = {.densities = {0.5}}}) == outcome());
  // Where densities are given, the error stays what it is.
  CHECK(heard_with(2, {.plan = {.densities = {0.75}}}).text == "oktopk: ok_topk: density = 1.5 is not in (0, 1]");
}

TEST_CASE_ON(comm, ranks, "each tensor's density is that of its bucket, and can change") {
  auto buckets = buckets_over(comm, {.plan = {.densities = {0.01, 1, 1, 0.01, 0.01, 0.02}}});
  REQUIRE(buckets.plan().buckets.size() == 4);
  CHECK(buckets.allreduce(0).k() == 3);
  CHECK(buckets.allreduce(1).k() == 7);
  CHECK(buckets.allreduce(3).k() == 10);
  buckets.set_density(3, 0.1);
  step(buckets, comm.rank(), 0);
  CHECK(buckets.allreduce(3).k() == 51);
  CHECK(buckets.update(3).indices().extent(0) == 51);
  CHECK(buckets.update(1).indices().extent(0) == 7);
}

TEST_CASE_ON(comm, ranks, "an error in one bucket reaches every rank, and the step has not happened") {
  auto buckets = buckets_over(comm, {.plan = {.bucket_bytes = 4 * 200}, .feedback = {.momentum = 0.5}});
  step(buckets, comm.rank(), 0);
  auto const before = buckets.state();
  auto flat = flat_gradient(comm.rank(), 1);
  if (comm.rank() == 2) {
    flat[static_cast<std::size_t>(begin_of(3)) + 1] = std::numeric_limits<float>::quiet_NaN();
  }
  auto const heard = outcome_of([&] {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      buckets.ready(static_cast<int>(i), to_view(gradient_of(i, flat)));
    }
    buckets.wait();
  });
  CHECK(unlike(heard, fault::non_finite, "rank 2") == "");
  auto const after = buckets.state();
  CHECK(bits(after.residual) == bits(before.residual));
  CHECK(bits(after.velocity) == bits(before.velocity));
  step(buckets, comm.rank(), 1); // and training goes on
}

TEST_CASE_ON(comm, ranks, "the last step is undone on request, once, and the next step goes on from before it") {
  auto buckets = buckets_over(comm, {.plan = {.bucket_bytes = 4 * 200}, .feedback = {.momentum = 0.5}});
  step(buckets, comm.rank(), 0);
  auto const before = buckets.state();
  step(buckets, comm.rank(), 1);
  REQUIRE(bits(buckets.state().residual) != bits(before.residual));
  for (int time = 0; time < 2; ++time) {
    buckets.undo();
    CHECK(bits(buckets.state().residual) == bits(before.residual));
    CHECK(bits(buckets.state().velocity) == bits(before.velocity));
  }
  step(buckets, comm.rank(), 1);
}

TEST_CASE("misuse on one rank is an error with its code on all, in words on that one") {
  // `how(buckets)` on rank 1, before it announces the tensor `at`
  auto const usage_error = [](auto const& how, std::size_t at, std::string const& words,
                              fault code = fault::option_out_of_range) {
    oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
      auto buckets = buckets_over(comm, {.plan = {.bucket_bytes = 4 * 200}});
      bool heard = false;
      for (int attempt = 0; attempt < 2 && !heard; ++attempt) { // what comes too late fails the next step
        auto const outcome = outcome_of([&] {
          auto const flat = flat_gradient(comm.rank(), 0);
          for (std::size_t i = 0; i < lengths.size(); ++i) {
            if (comm.rank() == 1 && attempt == 0 && i == at) {
              how(buckets);
            }
            buckets.ready(static_cast<int>(i), to_view(gradient_of(i, flat)));
          }
          buckets.wait();
        });
        heard = outcome.code != fault::none;
        CHECK((!heard || (outcome.code == code && outcome.says(comm.rank() == 1 ? words : "rank 1: it has no acc"))));
      }
      CHECK(heard);
      step(buckets, comm.rank(), 1);
    });
  };
  usage_error([](auto& buckets) { buckets.ready(17); }, 2, "no tensor 17 among 6");
  usage_error([](auto& buckets) { buckets.ready(-1); }, 2, "no tensor -1");
  usage_error([](auto& buckets) { buckets.ready(0); }, 1, "ready already");
  usage_error([](auto& buckets) { buckets.ready(0), buckets.ready(0); }, 1, "ready already");
  usage_error([](auto& buckets) { buckets.ready(5); }, 5, "ready already"); // the last call: too late
  usage_error([](auto& buckets) { buckets.ready(3, to_view(std::vector<float>(5))); }, 3,
              "tensor 3 has 120 values, and 5 were given", fault::length_mismatch);
  auto const throwing = [](int tensor, auto const& thrown) {
    return [=](auto& buckets) { buckets.ready_after(tensor, [&] { throw thrown; }); };
  };
  usage_error(throwing(3, std::runtime_error("the disk is full\nmore")), 3, "tensor 3: the disk is full",
              fault::caller_failed);
  usage_error(throwing(0, oktopk::error(fault::bad_file, "cut short")), 0, "tensor 0: cut short", fault::bad_file);
}

TEST_CASE_ON(comm, 2, "a misuse does not hide that the communicator has broken down") {
  auto buckets = buckets_over(comm);
  if (comm.rank() == 1) {
    comm.abort(oktopk::error(fault::damaged_message, "a bit fell over"));
    return;
  }
  auto const heard = outcome_of([&] {
    buckets.ready(0);
    buckets.ready(0);
    buckets.wait();
  });
  CHECK(oktopk::detail::breaks_communicator(heard.code));
}

TEST_CASE_ON(comm, ranks,
             "a density out of range, an allreduce of another length, and no update yet are errors on every rank") {
  auto buckets = buckets_over(comm);
  CHECK(outcome_of([&] { buckets.update(0); }).code == fault::option_out_of_range);
  for (double const density : {0.0, -1.0, 1.5, std::nan("")}) {
    CHECK(outcome_of([&] { buckets.set_density(0, comm.rank() == 1 ? density : 0.5); }).code ==
          fault::density_out_of_range);
  }
  for (int const none : {-1, 99}) {
    CHECK(outcome_of([&] { buckets.gradient(none); }).code == fault::option_out_of_range);
    CHECK(outcome_of([&] { buckets.update(none); }).code == fault::option_out_of_range);
    CHECK(outcome_of([&] { buckets.allreduce(none); }).code == fault::option_out_of_range);
    CHECK(outcome_of([&] { buckets.feedback(none); }).code == fault::option_out_of_range);
  }
  for (int const bucket : {-1, 99}) {
    CHECK(outcome_of([&] { buckets.set_density(comm.rank() == 1 ? bucket : 0, 0.5); }).code ==
          fault::option_out_of_range);
  }
  auto const make_longer = [&](bucket const& of) { return make_sparse(comm, {of.tensors, of.length + 1, of.density}); };
  CHECK(outcome_of([&] { buckets_of_any(execution(), comm, lengths, make_longer); }).code == fault::length_mismatch);
}

TEST_CASE_ON(comm, ranks, "the norm that clips is that of all tensors together, and one that is larger clips nothing") {
  auto const make = [&](bucket const& of) { return over(comm, "dense", {.length = of.length}); };
  auto const averages = [&](double clip_norm) {
    buckets_of_any buckets(execution(), comm, lengths, make,
                           {.plan = {.bucket_bytes = 4 * 200}, .feedback = {.clip_norm = clip_norm}});
    return step(buckets, comm.rank(), 0);
  };
  auto const norm = [](std::vector<float> const& values, std::size_t begin, std::size_t end) {
    double squares = 0;
    for (std::size_t i = begin; i < end; ++i) {
      squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    }
    return std::sqrt(squares);
  };
  double largest = 0; // of a rank's gradient
  for (int rank = 0; rank < ranks; ++rank) {
    largest = std::max(largest, norm(flat_gradient(rank, 0), 0, static_cast<std::size_t>(length_of_all)));
  }
  CHECK(bits(averages(1.001 * largest)) == bits(averages(0)));
  auto const clipped = averages(0.5);
  for (std::size_t tensor = 0; tensor < lengths.size(); ++tensor) { // each bucket holds one of the long ones
    CHECK(norm(clipped, static_cast<std::size_t>(begin_of(tensor)), static_cast<std::size_t>(begin_of(tensor + 1))) <=
          0.5 * (1 + 1e-5));
  }
  CHECK(norm(clipped, 0, clipped.size()) > 0);
}

TEST_CASE("lengths or options that differ, or make no sense, are an error on every rank") {
  auto const refuse = [](std::vector<std::int64_t> const& of_rank_1, bucketed_options const& how, fault expected) {
    oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
      bool const other = comm.rank() == 1;
      auto const heard = outcome_of(
          [&] { auto buckets = buckets_over(comm, other ? how : bucketed_options(), other ? of_rank_1 : lengths); });
      CHECK(heard.code == expected);
    });
  };
  refuse({1, 2}, {}, fault::ranks_disagree);
  refuse(lengths, {.plan = {.bucket_bytes = 1000}}, fault::ranks_disagree);
  refuse(lengths, {.plan = {.bucket_bytes = -1}}, fault::option_out_of_range);
  refuse(lengths, {.plan = {.order = {0}}}, fault::option_out_of_range);
  refuse(lengths, {.feedback = {.momentum = 3}}, fault::option_out_of_range);
}

TEST_CASE("a state that is damaged, or of other tensors, is refused on every rank") {
  auto const refuse = [](auto const& damage) {
    oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
      auto buckets = buckets_over(comm, {.plan = {.bucket_bytes = 4 * 200}});
      step(buckets, comm.rank(), 0);
      auto saved = buckets.state();
      step(buckets, comm.rank(), 1);
      auto const before = buckets.state();
      REQUIRE(bits(saved.residual) != bits(before.residual));
      if (comm.rank() == 1) {
        damage(saved);
      }
      CHECK(outcome_of([&] { buckets.restore(saved); }).code != fault::none);
      CHECK(bits(buckets.state().residual) == bits(before.residual));
      CHECK(saved_bytes(buckets.state()) == saved_bytes(before));
    });
  };
  refuse([](auto& saved) { saved.lengths[0] += 1; });
  refuse([](auto& saved) { saved.residual.pop_back(); });
  refuse([](auto& saved) { saved.residual.back() = std::numeric_limits<float>::quiet_NaN(); });
  refuse([](auto& saved) { saved.allreduces.pop_back(); });
  refuse([](auto& saved) { // sound by itself, but of another iteration in the last bucket
    change_inside<inside>(saved.allreduces.back(), [](inside& state) { state = {}; });
  });
  refuse([](auto& saved) { change_inside<inside>(saved.allreduces[0], [](inside& state) { state.iteration += 1; }); });
  refuse([](auto& saved) {
    change_inside<inside>(saved.allreduces[0], [](inside& state) { state.boundaries.back() += 1; });
  });
}

TEST_CASE_ON(comm, 1, "a file that is damaged anywhere is refused, and so is one of another algorithm") {
  auto buckets = buckets_over(comm, {.plan = {.bucket_bytes = 4 * 200}});
  step(buckets, 0, 0);
  std::string const whole = saved_bytes(buckets.state());
  auto const outcome_of_loading = [](std::string const& bytes) {
    std::istringstream file(bytes);
    return outcome_of([&] { oktopk::load<buckets_of_any::state_type>(file); });
  };
  CHECK(outcome_of_loading(whole).code == fault::none);
  for (std::size_t at = 0; at < whole.size(); at += 7) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    CHECK(outcome_of_loading(damaged).code == fault::bad_file);
    CHECK(outcome_of_loading(whole.substr(0, at)).code == fault::bad_file);
  }
  using C = in_process_communicator;
  std::istringstream file(saved_bytes(oktopk::bucketed<oktopk::ok_topk<execution, C>>::state_type()));
  auto const heard = outcome_of([&] { oktopk::load<oktopk::bucketed<oktopk::gtopk<execution, C>>::state_type>(file); });
  CHECK(unlike(heard, fault::bad_file, "the checkpoint holds a state of bucketed, 32-bit values, over ok_topk") == "");
}

TEST_CASE_ON(comm, 1, "a step begins with the first thing that happens in it, and its times stay until the next one") {
  auto const pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
  auto buckets = buckets_over(comm);
  buckets.ready(0);
  CHECK(buckets.is_ready(0));
  CHECK(buckets.ready_order() == std::vector<int>{0});
  pause();
  buckets.wait();
  CHECK(buckets.ready_order().empty());
  auto const first = buckets.last_step();
  CHECK(first.buckets.size() == 1);
  CHECK(first.wait_began >= 0.005);
  CHECK(first.buckets[0].ready == first.wait_began);
  CHECK(first.wait_ended >= first.buckets[0].ended);
  CHECK(first.absent == 5);
  pause();
  CHECK(buckets.last_step().wait_ended == first.wait_ended);
  auto const before = std::chrono::steady_clock::now();
  buckets.ready(1);
  CHECK(buckets.last_step().absent == 0);
  CHECK(buckets.last_step().buckets[0].ended == 0);
  buckets.wait();
  CHECK(std::chrono::duration<double>(buckets.last_step().wait_ended) <= std::chrono::steady_clock::now() - before);
}

} // namespace test_of_bucketed
