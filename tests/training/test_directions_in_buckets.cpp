// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Directions over buckets: the bits of adam, and what a tensor carries with its second moments.

#include "sgd/gradients.hpp"
#include "support/call.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"

#include <oktopk/adam.hpp>
#include <oktopk/bucketed.hpp>

#include <numeric>

namespace test_of_directions_in_buckets {

using namespace oktopk_tests;
using oktopk::bucket;
using oktopk::fault;
using oktopk::in_process_communicator;

namespace {

using engine = oktopk::detail::bucket_engine<oktopk::direction_feedback<any>>;
using directions = oktopk::detail::direction_options;

constexpr int ranks = 2;
oktopk::detail::tensor_shapes const shapes{{6, 4}, {5}, {0, 3}, {2, 3, 2}};
std::vector<std::int64_t> const lengths{24, 5, 0, 12};
std::vector<std::int64_t> const statistics{10, 5, 0, 8};

engine made(in_process_communicator const& comm) {
  return {execution(), comm, lengths, {}, directions{.beta2 = 0.9, .shapes = shapes}};
}

auto maker(in_process_communicator const& comm) {
  return [comm](bucket const& of) {
    return over(comm, "ok_topk", {.length = of.length, .k = std::max<std::int64_t>(of.length / 6, 1)});
  };
}

std::vector<float> gradient_of(int rank, int step, std::int64_t begin, std::int64_t count) {
  auto const all = correlated_gradient<41, ranks>(rank, step);
  return {all.begin() + begin, all.begin() + begin + count};
}

std::vector<float> reduce(engine& buckets, int number, std::vector<float> const& gradients) {
  auto const values = to_view(gradients);
  buckets.reduce(number, values);
  return to_vector(values);
}

/// The part of a vector of all tensors that one of them has.
template <class Vector>
Vector part(Vector const& of, std::vector<std::int64_t> const& sizes, std::size_t tensor) {
  std::int64_t const begin =
      std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(tensor), std::int64_t(0));
  return {of.begin() + begin, of.begin() + begin + sizes[tensor]};
}

} // namespace

TEST_CASE_ON(comm, ranks, "directions over buckets have the bits of adam, residuals, second moments and weights") {
  oktopk::bucketed<any> buckets(execution(), comm, lengths, maker(comm),
                                {.plan = {.order = {0, 1, 2, 3}}, .directions = directions{.shapes = shapes}});
  REQUIRE(buckets.plan().buckets.size() == 1);
  any allreduce = over(comm, "ok_topk", {.length = 41, .k = 6});
  oktopk::adam optimizer(allreduce, {.learning_rate = 0.01, .weight_decay = 0, .shapes = shapes});
  auto const weights = to_view(std::vector<float>(41, 1));
  std::vector<float> moved(41, 1);
  for (int step = 0; step < 8; ++step) {
    optimizer.step(weights, to_view(gradient_of(comm.rank(), step, 0, 41)));
    std::int64_t begin = 0;
    for (int tensor = 0; tensor < 4; ++tensor) {
      std::int64_t const length = lengths[static_cast<std::size_t>(tensor)];
      buckets.ready(tensor, to_view(gradient_of(comm.rank(), step, begin, length)));
      begin += length;
    }
    buckets.wait();
    std::size_t at = 0;
    for (int tensor = 0; tensor < 4; ++tensor) {
      for (float const average : to_vector(buckets.gradient(tensor))) {
        moved[at++] -= 0.01F * average;
      }
    }
  }
  CHECK(bits(moved) == bits(to_vector(weights)));
  auto const state = buckets.state();
  CHECK(bits(state.residual) == bits(optimizer.state().residual));
  CHECK(bits(state.moments.squares) == bits(optimizer.state().mean_of_squares));
  CHECK(state.moments.steps == std::vector<std::int64_t>{8, 8, 0, 8}); // one has no values
}

TEST_CASE_ON(comm, ranks, "second moments wait while their tensor is in no bucket, and go with it into another one") {
  auto buckets = made(comm);
  buckets.add({3, 0}, 0, maker(comm));
  buckets.add({1, 2}, 0, maker(comm));
  reduce(buckets, 0, gradient_of(comm.rank(), 0, 0, 36));
  reduce(buckets, 1, gradient_of(comm.rank(), 0, 36, 5));
  buckets.begin_step();
  reduce(buckets, 0, gradient_of(comm.rank(), 1, 0, 36));
  buckets.begin_step();
  auto const before = buckets.state();
  CHECK(before.moments.steps == std::vector<std::int64_t>{2, 1, 0, 2});
  CHECK(before.moments.squares.size() == 23);
  buckets.remove(0);
  CHECK(buckets.state().moments.squares == before.moments.squares);
  CHECK(buckets.state().moments.steps == before.moments.steps);
  buckets.add({0, 3}, 0, maker(comm)); // in the other order
  CHECK(buckets.state().residual == before.residual);
  CHECK(buckets.state().moments.squares == before.moments.squares);
  auto other = made(comm);
  other.restore(before); // in no bucket
  CHECK(other.state().moments.squares == before.moments.squares);
  other.add({0, 3}, 0, maker(comm));
  other.add({1, 2}, 0, maker(comm));
  auto const gradient = gradient_of(comm.rank(), 2, 0, 36);
  auto const averages = reduce(buckets, 1, gradient);
  CHECK(bits(reduce(other, 0, gradient)) == bits(averages));
  CHECK(other.state().moments.squares == buckets.state().moments.squares);

  auto saved = before;
  std::stringstream file;
  oktopk::save(file, saved);
  saved = oktopk::load<engine::state_type>(file);
  CHECK(saved.moments.squares == before.moments.squares);
  CHECK(saved.moments.steps == before.moments.steps);
  saved.moments.squares[0] += comm.rank() == 1 ? 1.0F : 0;
  CHECK(outcome_of([&] { other.restore(saved); }).code == fault::ranks_disagree);
  saved.moments = {};
  CHECK(outcome_of([&] { other.restore(saved); }).says("second moments are of other tensors"));
  engine of_gradients(execution(), comm, lengths, {});
  CHECK(outcome_of([&] { of_gradients.restore(before); }).says("second moments are of other tensors"));
  auto const plain = of_gradients.state();
  CHECK(!plain.has_later_parts());
  CHECK(saved_bytes(before).size() == saved_bytes(saved).size() + 3 * 8 + 23 * 4 + 2 * 4 * 8);
}

TEST_CASE_ON(comm, ranks, "a tensor that is withheld keeps residual and second moments, to the bit, and its steps") {
  auto buckets = made(comm);
  buckets.add({0, 1, 2, 3}, 0, maker(comm));
  reduce(buckets, 0, gradient_of(comm.rank(), 0, 0, 41));
  buckets.begin_step();
  auto const before = buckets.state();
  buckets.withhold(0);
  buckets.withhold(2);
  auto gradient = gradient_of(comm.rank(), 1, 0, 41);
  gradient[7] = std::nanf(""); // of a tensor that takes no part
  auto const averages = reduce(buckets, 0, gradient);
  REQUIRE(!buckets.failed());
  CHECK(bits(part(averages, lengths, 0)) == bits(part(gradient, lengths, 0)));
  auto const after = buckets.state();
  CHECK(after.moments.steps == std::vector<std::int64_t>{1, 2, 0, 2});
  for (std::size_t const tensor : {0U, 1U, 3U}) {
    CAPTURE(tensor);
    CHECK((part(after.moments.squares, statistics, tensor) == part(before.moments.squares, statistics, tensor)) ==
          (tensor == 0));
    CHECK((part(after.residual, lengths, tensor) == part(before.residual, lengths, tensor)) == (tensor == 0));
  }
  buckets.undo();
  CHECK(buckets.state().residual == before.residual);
  CHECK(buckets.state().moments.squares == before.moments.squares);
  CHECK(buckets.state().moments.steps == before.moments.steps);
}

TEST_CASE_ON(comm, ranks, "a fault of one rank in a bucket of directions is an error of all, which names the rank") {
  auto buckets = made(comm);
  buckets.add({0, 1}, 0, maker(comm));
  buckets.add({2, 3}, 0, maker(comm));
  reduce(buckets, 0, gradient_of(comm.rank(), 0, 0, 29));
  reduce(buckets, 1, gradient_of(comm.rank(), 0, 29, 12));
  CHECK(!buckets.begin_step());
  auto const before = buckets.state();
  auto const expect_before = [&] {
    auto const now = buckets.state();
    CHECK(now.residual == before.residual);
    CHECK(now.moments.squares == before.moments.squares);
    CHECK(now.moments.steps == before.moments.steps);
  };
  reduce(buckets, 0, gradient_of(comm.rank(), 1, 0, 29));
  auto bad = gradient_of(comm.rank(), 1, 29, 12);
  bad[3] = comm.rank() == 1 ? std::numeric_limits<float>::infinity() : 0;
  reduce(buckets, 1, bad);
  expect_before();
  auto const heard = outcome_of([&] { std::rethrow_exception(buckets.begin_step()); });
  CHECK(unlike(heard, fault::non_finite, "rank 1: the square of the gradient at index 3 is not finite") == "");
  std::optional<oktopk::error> usage;
  if (comm.rank() == 1) {
    usage.emplace(fault::bad_file, "no gradient");
  }
  buckets.reduce(0, to_view(gradient_of(comm.rank(), 2, 0, 29)), 1, usage);
  auto const told = outcome_of([&] { std::rethrow_exception(buckets.begin_step()); });
  CHECK(unlike(told, fault::bad_file, "no gradient") == "");
  CHECK(told.says("rank 1") == (comm.rank() == 0));
  expect_before();
  reduce(buckets, 0, gradient_of(comm.rank(), 3, 0, 29));
  CHECK(!buckets.failed());
}

TEST_CASE_ON(comm, ranks, "columns of a tensor can be put into another order with their second moments, rows cannot") {
  auto buckets = made(comm);
  auto turned = made(comm);
  std::vector<std::int64_t> from(12); // two rows of six columns, of which the last three come first
  for (std::int64_t i = 0; i < 12; ++i) {
    from[static_cast<std::size_t>(i)] = i / 6 * 6 + (i + 3) % 6;
  }
  for (engine* const each : {&buckets, &turned}) {
    each->add({3}, 0, maker(comm));
    reduce(*each, 0, gradient_of(comm.rank(), 0, 0, 12));
    each->begin_step();
  }
  turned.reorder(3, from);
  auto const gradient = gradient_of(comm.rank(), 1, 0, 12);
  std::vector<float> moved(12);
  std::transform(from.begin(), from.end(), moved.begin(),
                 [&](auto i) { return gradient[static_cast<std::size_t>(i)]; });
  auto const averages = reduce(buckets, 0, gradient);
  auto const of_moved = reduce(turned, 0, moved);
  for (std::size_t i = 0; i < 12; ++i) {
    CHECK(of_moved[i] == Approx(averages[static_cast<std::size_t>(from[i])]).margin(1e-6));
  }
  std::reverse(from.begin(), from.end());
  CHECK(unlike(outcome_of([&] { turned.reorder(3, from); }), fault::option_out_of_range, "its rows are others") == "");
}

TEST_CASE_ON(comm, ranks, "shapes and options of directions that do not fit the buckets are an error on every rank") {
  auto const heard = [&](directions const& by, oktopk::detail::error_feedback_options const& how = {}) {
    return outcome_of([&] {
      oktopk::bucketed<any> buckets(execution(), comm, lengths, maker(comm), {.feedback = how, .directions = by});
    });
  };
  constexpr fault out = fault::option_out_of_range;
  CHECK(heard({}) == outcome()); // each tensor has one dimension
  CHECK(unlike(heard({.shapes = {{6, 4}}}), out, "there are 1 shapes for 4 tensors") == "");
  CHECK(unlike(heard({.shapes = {{6, 4}, {5}, {}, {12}}}), out, "tensor 2: the shapes have more values") == "");
  CHECK(unlike(heard({.beta2 = 1}), out, "beta2 = 1.000000 is not in [0, 1)") == "");
  CHECK(unlike(heard({.epsilon = 0}), out, "epsilon = 0.000000 is not positive") == "");
  CHECK(unlike(heard({}, {.momentum = 0.9}), out, "they take no momentum") == "");
  CHECK(heard({.beta2 = comm.rank() == 0 ? 0.9 : 0.99}).code == fault::ranks_disagree);
}

} // namespace test_of_directions_in_buckets
