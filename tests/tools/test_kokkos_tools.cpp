// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/generators.hpp"
#include "support/instances.hpp"
#include "support/kokkos_events.hpp"

#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/sgd.hpp>

#include <numeric>
#include <set>

// What a profiler sees of the library, and that in a steady state it sees no allocation and no fence of everything.
namespace test_of_kokkos_tools {

using namespace oktopk_tests;

namespace {

using oktopk::in_process_communicator;
using scheme = oktopk::any_allreduce<execution>;

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

/// What Kokkos says where a scan or a reduction into a number waits for the instance that it runs on; after "fence" 5.2 gives
/// no reason where the number is in a reducer.
constexpr std::string_view waits_for_results[] = {
    "Kokkos::parallel_reduce: fence",
    "Kokkos::parallel_scan: fence due to result being a value",
    "Kokkos::Impl::ParallelReduce<Cuda, RangePolicy>::execute: Result Not Device Accessible",
};

/// What is wrong with an event; before the state is steady, arrays may still grow.
std::string event_fault(kokkos_event const& event, [[maybe_unused]] execution const& exec, bool steady) {
  bool labelled = starts_with(event.label, "oktopk::");
  switch (event.what) {
  case kokkos_event::kernel:
    // Kokkos zeroes new arrays in a kernel that it names after the array.
    labelled = labelled || starts_with(event.label, "Kokkos::View::initialization [oktopk::");
    if (!steady && starts_with(event.label, "Kokkos::View::destruction [")) {
      return {}; // what Kokkos does before it frees an array of structs that has become too small
    }
    break;
  case kokkos_event::fence:
    for (std::string_view const wait : waits_for_results) {
      labelled = labelled || starts_with(event.label, wait);
    }
    if (!steady && (starts_with(event.label, "HostSpace") || starts_with(event.label, "Kokkos::HostSpace"))) {
      return {}; // what Kokkos (from 5.2 on with its namespace) does before it frees an array that has become too small
    }
    break;
  case kokkos_event::deep_copy: // on a host there is nothing to stage; test_bytes_copied.cpp counts the bytes of others
    return oktopk::detail::is_device<execution> ? "" : "a deep copy";
  case kokkos_event::allocation:
  case kokkos_event::deallocation:
    if (steady) {
      return "not what a steady state is";
    }
    labelled = labelled || event.label.find("::scratch_mem") != std::string::npos; // of Kokkos' own
    break;
  }
  if (!labelled) {
    return "not labelled as the library's";
  }
#if KOKKOS_VERSION >= 40000
  bool const runs = event.what == kokkos_event::kernel || event.what == kokkos_event::fence;
  if (runs && event.device != Kokkos::Tools::Experimental::device_id(exec)) {
    return "not on the given instance";
  }
#endif
  return {};
}

constexpr std::size_t length = 6000;

/// Gradients whose largest entries wander over a few places, so that selections, regions and thresholds move.
std::vector<Kokkos::View<float const*, memory>> gradients_of(int rank) {
  std::vector<Kokkos::View<float const*, memory>> all;
  for (int i = 0; i < 5; ++i) {
    std::vector<float> gradient(length);
    whole_numbers{static_cast<std::uint64_t>(31 + i)}({rank, 1, 0}, gradient);
    all.emplace_back(to_view(gradient));
  }
  return all;
}

/// `make(exec, comm)` gives a function of one iteration, from weights and gradient; both are watched, on all ranks.
/// In the second half of the iterations the state must be steady.
template <class Make>
void watch(int ranks, int iterations, Make const& make) {
  execution const exec = two_instances()[0];
  std::set<std::string> faults;
  std::size_t kernels = 0;
  std::size_t allocations = 0;
  std::unique_ptr<kokkos_events> watcher;
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    watched_together const together{comm, watcher};
    auto const gradients = gradients_of(comm.rank());
    Kokkos::View<float*, memory> const weights("test data", length);
    together.begin();
    auto one_iteration = make(exec, comm);
    for (int iteration = 0; iteration < iterations; ++iteration) {
      together.take([&](kokkos_event const& event) {
        bool const steady = iteration > iterations / 2;
        kernels += event.what == kokkos_event::kernel ? 1 : 0;
        allocations += event.what == kokkos_event::allocation ? 1 : 0;
        if (std::string const fault = event_fault(event, exec, steady); !fault.empty()) {
          faults.insert((steady ? "steady: " : "at first: ") + to_string(event) + ": " + fault + "\n"); // each once
        }
      });
      one_iteration(weights, gradients[static_cast<std::size_t>(iteration) % gradients.size()]);
    }
    together.end([](kokkos_event const&) {});
  });
  CHECK(kernels > static_cast<std::size_t>(ranks * iterations)); // the watcher does see something
  CHECK(allocations > 0);
  std::string const all_faults = std::accumulate(faults.begin(), faults.end(), std::string());
  CHECK(all_faults == "");
}

auto calls_of(std::string const& text) {
  return [text](execution const& exec, in_process_communicator comm) {
    auto const allreduce = std::make_shared<oktopk::any_allreduce<execution>>(
        oktopk::make_allreduce(exec, comm, text, {.length = length, .k = 300}));
    return [allreduce](Kokkos::View<float*, memory> const&, Kokkos::View<float const*, memory> const& gradient) {
      (*allreduce)(gradient);
    };
  };
}

} // namespace

TEST_CASE("of Kokkos' own fences only those for results are admitted, and on the given instance") {
  execution const exec = two_instances()[0];
#if KOKKOS_VERSION >= 40000
  std::uint32_t const own = Kokkos::Tools::Experimental::device_id(exec);
#else
  std::uint32_t const own = 0;
#endif
  auto const fault_of = [&](std::string const& label, std::uint32_t device) {
    return event_fault({kokkos_event::fence, label, device, 0}, exec, true);
  };
  CHECK(fault_of("oktopk::buffer::reserve", own) == "");
  for (std::string const label : {
           "Kokkos::parallel_reduce: fence",
           "Kokkos::parallel_reduce: fence due to result being value, not view",
           "Kokkos::parallel_scan: fence due to result being a value, not a view",
           "Kokkos::Impl::ParallelReduce<Cuda, RangePolicy>::execute: Result Not Device Accessible",
       }) {
    CAPTURE(label);
    CHECK(fault_of(label, own) == "");
#if KOKKOS_VERSION >= 40000
    CHECK(fault_of(label, own + 1) == "not on the given instance");
#endif
  }
  for (std::string const label : {
           "Kokkos::fence: Unnamed Global Fence",
           "Kokkos::Cuda::fence(): Unnamed Instance Fence",
           "Kokkos::parallel_for: a fence",
           "Kokkos::Impl::ParallelReduce<Cuda, TeamPolicy>::execute: Result Not Device Accessible",
           "SharedAllocationRecord<Kokkos::CudaSpace, void>::SharedAllocationRecord(): fence after copying header from "
           "HostSpace",
       }) {
    CAPTURE(label);
    CHECK(fault_of(label, own) == "not labelled as the library's");
  }
}

TEST_CASE("algorithms: labels, instance, and nothing allocated in a steady state") {
  std::vector<std::string> texts{
      "ok_topk(partition=sampled(tau=6))",
      "ok_topk(local=reused(tau_prime=4), global=reused(tau_prime=4), partition=sampled(tau=6))",
      "paper_ok_topk(tau_prime=4, tau=6)",
      "ring_pipelined(chunk_bytes=1000)",
  };
  for (std::string const level : {"collective", "message"}) {
    std::string const coded = "(codec=block_float, codec_level=" + level + ", segment=500, cutoff_bytes=0)";
    texts.insert(texts.end(), {"ring_chunked" + coded, "recursive_doubling" + coded});
  }
  for (auto const& algorithm : oktopk::list_allreduces()) {
    // automatic makes schemes as it goes; the periods of ok_topk are shorter above.
    if (algorithm.name != "automatic" && algorithm.name != "ok_topk" && algorithm.name != "paper_ok_topk") {
      texts.push_back(algorithm.name);
    }
  }
  for (std::string const& text : texts) {
    for (int const ranks : {1, 4, 5}) {
      INFO(text << " on " << ranks << " ranks");
      watch(ranks, 100, calls_of(text));
    }
  }
}

TEMPLATE_TEST_CASE("training: labels, instance, and nothing allocated in a steady state", "",
                   oktopk::error_feedback<scheme>, oktopk::sgd<scheme>) {
  // Residuals build up at first, and regions with them.
  watch(4, 1000, [](execution const& exec, in_process_communicator comm) {
    auto const allreduce = std::make_shared<scheme>(
        oktopk::make_allreduce(exec, comm, "ok_topk(partition=sampled(tau=6))", {.length = length, .k = 300}));
    std::shared_ptr<TestType> trained;
    if constexpr (std::is_same_v<TestType, oktopk::sgd<scheme>>) {
      trained = std::make_shared<TestType>(exec, *allreduce, typename TestType::options{.learning_rate = 0.25});
    } else {
      trained = std::make_shared<TestType>(exec, *allreduce);
    }
    return [allreduce, trained](Kokkos::View<float*, memory> const& weights,
                                Kokkos::View<float const*, memory> const& gradient) {
      if constexpr (std::is_same_v<TestType, oktopk::sgd<scheme>>) {
        trained->step(weights, gradient);
      } else {
        trained->average((*trained)(gradient, 0.25), weights);
      }
    };
  });
}

} // namespace test_of_kokkos_tools
