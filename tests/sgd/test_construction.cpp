// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/instances.hpp"

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/sgd.hpp>

// How an optimizer is made over typed algorithms: without template arguments, with or without an instance of its own, and
// never as a copy.
namespace test_of_construction {

using namespace oktopk_tests;
using oktopk::in_process_communicator;

namespace {

using algorithm = oktopk::ok_topk<execution, in_process_communicator>;
using everything = oktopk::dense<execution, in_process_communicator>;

// A copy would share the vectors of the original.
static_assert(!std::is_copy_constructible_v<oktopk::sgd<algorithm>>);
static_assert(!std::is_copy_assignable_v<oktopk::sgd<algorithm>>);
static_assert(!std::is_move_constructible_v<oktopk::sgd<algorithm>>);
static_assert(!std::is_move_assignable_v<oktopk::sgd<algorithm>>);

constexpr std::int64_t length = 20000;

using pairs = Kokkos::View<float* [2], Kokkos::LayoutRight, memory>;

} // namespace

// Outside, for nvcc: the function around a kernel must have a name that others can see.
template <class Gradient>
void write_gradient(execution const& exec, Gradient const& gradient, float scale) {
  Kokkos::parallel_for(
      "test data", Kokkos::RangePolicy<execution>(exec, 0, length),
      KOKKOS_LAMBDA(int i) { gradient(i) = scale * static_cast<float>((i * 7919) % 10007 - 5000); });
}

namespace {

/// Weights after some steps on a gradient that lies at every other element, and so takes the way through a kernel of
/// sgd's own. `optimizer` is made of (allreduce).
template <class Allreduce, class Make>
std::vector<std::uint32_t> trained(typename Allreduce::options const& how, execution const& runs_on,
                                   execution const& writes_on, Make const& make) {
  std::vector<std::uint32_t> result;
  oktopk::in_process::run(2, [&](in_process_communicator comm) {
    Allreduce allreduce(runs_on, comm, how);
    auto optimizer = make(allreduce);
    Kokkos::View<float*, memory> const weights("test data", length);
    pairs const both("test data", length);
    auto const gradient = Kokkos::subview(both, Kokkos::ALL, 0);
    Kokkos::fence();
    for (int iteration = 0; iteration < 3; ++iteration) {
      write_gradient(writes_on, gradient, static_cast<float>(1 + iteration + comm.rank()));
      optimizer->step(weights, gradient);
    }
    if (comm.rank() == 0) {
      result = bits(to_vector(weights));
    }
  });
  return result;
}

template <class Allreduce>
void check_instances(typename Allreduce::options const& how) {
  auto const instances = two_instances();
  using sgd = oktopk::sgd<Allreduce>;
  oktopk::sgd<algorithm>::options const rate{.learning_rate = 0.5};
  auto const given = [&](execution const& exec) {
    return [exec, rate](Allreduce& allreduce) { return std::make_unique<sgd>(exec, allreduce, rate); };
  };
  auto const expected =
      trained<Allreduce>(how, instances[0], instances[0], [&](Allreduce& a) { return std::make_unique<sgd>(a, rate); });
  CHECK(std::any_of(expected.begin(), expected.end(), [](std::uint32_t x) { return x != 0; }));
  CHECK((trained<Allreduce>(how, instances[0], instances[0], given(instances[0])) == expected));
  CHECK((trained<Allreduce>(how, instances[0], instances[1], given(instances[1])) == expected));
}

} // namespace

TEST_CASE_ON(comm, 1, "ok_topk needs no template arguments where its policies are the default ones, and sgd none") {
  oktopk::ok_topk by_count(execution(), comm, {.length = 10, .k = 3, .partition = {.tau = 7}});
  oktopk::ok_topk by_density(execution(), comm, {.length = 10, .density = 0.5});
  oktopk::ok_topk by_name(execution(), comm, algorithm::options{.length = 10, .k = 0});
  static_assert(std::is_same_v<decltype(by_density), algorithm> && std::is_same_v<decltype(by_name), algorithm>);
  CHECK((by_count.k() == 3 && by_density.k() == 5 && by_name.k() == 0));
  everything whole(execution(), comm, {.length = 10});
  oktopk::sgd over_sparse(execution(), by_count, {.learning_rate = 0.25});
  oktopk::sgd over_dense(whole, {.learning_rate = 0.75});
  oktopk::sgd by_default(whole, {});
  static_assert(std::is_same_v<decltype(over_sparse), oktopk::sgd<algorithm>>);
  static_assert(std::is_same_v<decltype(over_dense), oktopk::sgd<everything>>);
  CHECK((over_sparse.learning_rate() == 0.25 && over_dense.learning_rate() == 0.75));
  CHECK(by_default.learning_rate() == 0.1);
  CHECK(&over_dense.allreduce() == &whole);
}

TEST_CASE("sgd runs on the allreduce's instance and waits for the one it was given") {
  check_instances<algorithm>({.length = length, .k = 500});
  check_instances<everything>({.length = length});
}

} // namespace test_of_construction
