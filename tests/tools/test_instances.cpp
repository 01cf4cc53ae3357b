// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/generators.hpp"
#include "support/instances.hpp"
#include "support/kokkos_events.hpp"
#include "support/unreachable.hpp"

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/message_group.hpp>
#include <oktopk/core/workspace.hpp>
#include <oktopk/sgd.hpp>

// Two allreduces on two instances of the execution space, as of two layers or two models in one program.
namespace test_of_instances {

using namespace oktopk_tests;

namespace {

using oktopk::in_process_communicator;

constexpr int ranks = 4;
constexpr int iterations = 12;
constexpr std::int64_t one_length = 40000;
constexpr std::int64_t another_length = 21000;

oktopk::any_allreduce<execution> one_on(execution const& exec, in_process_communicator const& comm) {
  return oktopk::make_allreduce(exec, comm, "ok_topk(partition=sampled(tau=4))", {.length = one_length, .k = 400});
}

oktopk::any_allreduce<execution> another_on(execution const& exec, in_process_communicator const& comm) {
  return oktopk::make_allreduce(
      exec, comm, "ok_topk(local=reused(tau_prime=4), global=reused(tau_prime=4), partition=sampled(tau=3))",
      {.length = another_length, .k = 300});
}

Kokkos::View<float*, memory> gradient_of(std::int64_t length, int rank, int iteration) {
  std::vector<float> gradient(static_cast<std::size_t>(length));
  correlated{static_cast<std::uint64_t>(length)}({rank, ranks, iteration}, gradient);
  return to_view(gradient);
}

/// What a call gave, on the host.
struct kept_call {
  std::vector<std::int32_t> indices;
  std::vector<std::uint32_t> values;
  std::vector<std::int32_t> contributed;

  bool operator==(kept_call const&) const = default;
};

template <class Update>
kept_call kept(Update const& update) {
  return {to_vector(update.indices()), bits(to_vector(update.values())), to_vector(update.contributed())};
}

/// Every rank's outcomes, iteration by iteration.
using outcomes = std::vector<std::vector<kept_call>>;

template <class Make>
outcomes alone(Make const& make_on) {
  outcomes all(ranks);
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    auto allreduce = make_on(execution(), comm);
    for (int iteration = 0; iteration < iterations; ++iteration) {
      auto const& update = allreduce(gradient_of(allreduce.length(), comm.rank(), iteration));
      all[static_cast<std::size_t>(comm.rank())].push_back(kept(update));
    }
  });
  return all;
}

} // namespace

TEST_CASE("two allreduces on two instances do not disturb each other") {
  auto const instances = two_instances();
  outcomes first(ranks);
  outcomes second(ranks);
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    auto one = one_on(instances[0], comm);
    auto another = another_on(instances[1], comm);
    for (int iteration = 0; iteration < iterations; ++iteration) {
      auto const& update = one(gradient_of(one_length, comm.rank(), iteration));
      auto const& other_update = another(gradient_of(another_length, comm.rank(), iteration));
      // Both are looked at after both calls.
      first[static_cast<std::size_t>(comm.rank())].push_back(kept(update));
      second[static_cast<std::size_t>(comm.rank())].push_back(kept(other_update));
    }
  });
  REQUIRE(first[0][0].indices.size() == 400);
  CHECK(first == alone(one_on));
  CHECK(second == alone(another_on));
}

#if KOKKOS_VERSION >= 40000 // before, tools are not told of fences and instances

TEST_CASE("an array is made on its own instance, and no other is waited for") {
  execution const exec = two_instances()[1];
  std::uint32_t const own = Kokkos::Tools::Experimental::device_id(exec);
  std::string faults;
  std::size_t allocations = 0;
  std::size_t events = 0;
  // `make` frees nothing: before it frees an array, Kokkos waits for everything.
  auto const watch = [&](auto const& make) {
    Kokkos::fence();
    kokkos_events watcher;
    make();
    for (kokkos_event const& event : watcher.take()) {
      bool const runs = event.what == kokkos_event::kernel || event.what == kokkos_event::fence;
      events += runs ? 1 : 0;
      allocations += event.what == kokkos_event::allocation ? 1 : 0;
      if (runs && event.device != own) {
        faults += to_string(event) + " is not on the given instance\n";
      }
    }
  };
  oktopk::detail::buffer<float, memory> grown("oktopk::tests::room");
  oktopk::detail::buffer<float, memory> zeros("oktopk::tests::zeros", true);
  oktopk::detail::message_buffer<execution> messages("oktopk::tests::messages");
  oktopk::detail::shared_numbers<std::int64_t, execution> numbers("oktopk::tests::numbers");
  watch([&] { grown.reserve(exec, 1000); });
  watch([&] { zeros.reserve(exec, 1000); });
  watch([&] { numbers.reserve(exec, 10); });
  oktopk::in_process::run(1, [&](in_process_communicator comm) {
    unreachable<in_process_communicator> const far(comm);
    watch([&] { messages.reserve(exec, far, 1000); });
    using scheme = oktopk::dense<execution, in_process_communicator>;
    scheme allreduce(exec, comm, {.length = 1000});
    std::optional<oktopk::sgd<scheme>> optimizer;
    watch([&] { optimizer.emplace(exec, allreduce, oktopk::sgd<scheme>::options()); });
  });
  CHECK(allocations >= 6);
  CHECK(events >= 4); // growth waits for its own
  CHECK(faults == "");
}

TEST_CASE("a call launches on its own instance and waits for no other") {
  auto const instances = two_instances();
  std::uint32_t const ids[] = {Kokkos::Tools::Experimental::device_id(instances[0]),
                               Kokkos::Tools::Experimental::device_id(instances[1])};
  // On a host Kokkos gives all instances one number; there, what shows is a wait for everything.
  REQUIRE((ids[0] != ids[1] || !oktopk::detail::is_device<execution>));
  std::size_t seen[] = {0, 0};
  std::string faults;
  std::unique_ptr<kokkos_events> watcher;
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    watched_together const watch{comm, watcher};
    auto const stop_watching = [&](std::size_t which) {
      watch.end([&](kokkos_event const& event) {
        bool const runs = event.what == kokkos_event::kernel || event.what == kokkos_event::fence;
        seen[which] += runs ? 1 : 0;
        if (runs && event.device != ids[which]) {
          faults += to_string(event) + " of allreduce " + std::to_string(which) + " is not on its instance\n";
        }
      });
    };
    auto one = one_on(instances[0], comm);
    auto another = another_on(instances[1], comm);
    for (int iteration = 0; iteration < 40 + iterations; ++iteration) {
      auto const gradient = gradient_of(one_length, comm.rank(), iteration % 4);
      auto const other_gradient = gradient_of(another_length, comm.rank(), iteration % 4);
      bool const steady = iteration >= 40; // before, arrays grow, and freeing the old ones waits for all
      if (steady) {
        watch.begin();
      }
      one(gradient);
      if (steady) {
        stop_watching(0);
        watch.begin();
      }
      another(other_gradient);
      if (steady) {
        stop_watching(1);
      }
    }
  });
  CHECK(seen[0] > ranks * iterations);
  CHECK(seen[1] > ranks * iterations);
  CHECK(faults == "");
}

#endif

} // namespace test_of_instances
