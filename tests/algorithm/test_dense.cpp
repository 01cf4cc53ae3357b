// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/suite.hpp"
#include "support/reference.hpp"

#include <oktopk/algorithm/dense.hpp>

using namespace oktopk_tests;

namespace {

struct subject {
  using value_type = float;
  using index_type = std::int32_t;
  template <class Comm>
  using algorithm = oktopk::dense<execution, Comm>;

  static algorithm<counting>::options options(std::int64_t length, std::int64_t) { return {.length = length}; }

  /// Not one byte beside the allreduce itself, where there is anything to sum.
  static std::string volume_fault(record_of<subject> const& call, int ranks, shape what) {
    if (what.length == 0) {
      return call.of(oktopk::phase::reduce).bytes_sent == 0 ? std::string() : "words of nothing are sent";
    }
    auto const reduce = call.of(oktopk::phase::reduce);
    bool const only = call.total().bytes_sent == reduce.bytes_sent;
    return only && reduce.words_sent() <= call.bound_words && (ranks > 1 || reduce.bytes_sent == 0)
               ? std::string()
               : "more is sent than the allreduce itself";
  }

  /// Every index, with the sum in the order of the ranks.
  static std::string reference_fault(run_of<subject> const& run, shape what) {
    for (std::size_t iteration = 0; iteration < run[0].size(); ++iteration) {
      std::vector<float> sums(static_cast<std::size_t>(what.length));
      for (auto const& rank : run) {
        for (std::size_t i = 0; i < sums.size(); ++i) {
          sums[i] = &rank == &run[0] ? rank[iteration].accumulator[i] : sums[i] + rank[iteration].accumulator[i];
        }
      }
      for (auto const& rank : run) {
        if (bits(rank[iteration].values) != bits(sums) || rank[iteration].contributed.size() != sums.size() ||
            rank[iteration].indices != rank[iteration].contributed) {
          return "iteration " + std::to_string(iteration) + ": not the sums of everything";
        }
      }
    }
    return {};
  }
};

/// Leaves what is no number on one rank alone, as a codec may that loses again in every message.
template <class E, class Comm, class Value>
class overflows_on_rank_1 {
public:
  static constexpr bool lossless = true;
  static std::string name() { return "overflows on rank 1"; }
  static bool ranks_may_differ() { return true; }
  static double bound_words(std::int64_t, int) { return 0; }
  static void run(E const& exec, Comm& comm, Value* values, Value*, std::int64_t count) {
    if (comm.rank() == 1) {
      oktopk::array_ref<Value, typename E::memory_space> const all(values, static_cast<std::size_t>(count));
      Kokkos::deep_copy(exec, all, std::numeric_limits<Value>::infinity());
    }
  }
};

/// Sums nothing, and loses on rank 1 what no residual can hold.
template <class E, class Comm, class Value>
class loses_too_much_on_rank_1 {
public:
  static constexpr bool lossless = false;
  static std::string name() { return "loses too much on rank 1"; }
  static bool losses_may_overflow(int) { return true; }
  static double bound_words(std::int64_t, int) { return 0; }
  static void run(E const& exec, Comm& comm, Value*, Value* lost, std::int64_t count) {
    oktopk::array_ref<Value, typename E::memory_space> const all(lost, static_cast<std::size_t>(count));
    Kokkos::deep_copy(exec, all, Value(0));
    if (comm.rank() == 1) {
      oktopk::array_ref<Value, typename E::memory_space> const last(lost + count - 1, 1);
      Kokkos::deep_copy(exec, last, std::numeric_limits<Value>::infinity());
    }
  }
};

} // namespace

TEST_CASE("dense ends on all ranks where what one of them has lost overflows") {
  using algorithm =
      oktopk::dense<execution, counting, float, std::int32_t, loses_too_much_on_rank_1<execution, counting, float>>;
  auto const failures = failures_of(3, [](oktopk::in_process_communicator inner) {
    counting comm(inner);
    algorithm allreduce(execution(), comm, {.length = 10});
    Kokkos::View<float*, execution::memory_space> const accumulator("accumulator", 10);
    comm.reset();
    auto const heard = failure_of([&] { allreduce(Kokkos::View<float const*, execution::memory_space>(accumulator)); });
    CHECK(allreduce.state().iteration == 0);
    CHECK(comm.total().words_sent() <= allreduce.bound_words());
    throw oktopk::error(heard.code, heard.text);
  });
  CHECK(unlike(failures, oktopk::fault::non_finite,
               "rank 1: the residual at index 9 overflows with what is returned to it") == "");
}

TEST_CASE("dense ends on all ranks where one of them sees an overflow") {
  using comm_type = oktopk::in_process_communicator;
  using algorithm =
      oktopk::dense<execution, comm_type, float, std::int32_t, overflows_on_rank_1<execution, comm_type, float>>;
  auto const failures = failures_of(3, [](comm_type comm) {
    algorithm allreduce(execution(), comm, {.length = 10});
    Kokkos::View<float*, execution::memory_space> const accumulator("accumulator", 10);
    allreduce(Kokkos::View<float const*, execution::memory_space>(accumulator));
  });
  CHECK(unlike(failures, oktopk::fault::non_finite, "a sum or partial sum at index 0 overflows") == "");
}

TEST_CASE("dense passes the suite of algorithms") {
  check_algorithm<subject>();
}

TEST_CASE("dense sends its bound") {
  check_bound<subject>();
}
