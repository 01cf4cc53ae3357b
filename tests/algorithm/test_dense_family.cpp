// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/suite.hpp"

#include <oktopk/algorithm/dense_family.hpp>

using namespace oktopk_tests;

namespace {

/// That the update is the sum follows from conservation: nothing is left over but what was rounded off.
template <template <class> class Algorithm>
struct subject : subject_of<> {
  template <class Comm>
  using algorithm = Algorithm<Comm>;

  static typename algorithm<counting>::options options(std::int64_t length, std::int64_t) {
    typename algorithm<counting>::options how;
    how.length = length;
    if constexpr (requires { how.reduce.cutoff_bytes; }) {
      how.reduce.cutoff_bytes = 0;
    }
    return how;
  }

  static std::string reference_fault(run_of<subject> const& run, shape what) {
    for (auto const& rank : run) {
      for (auto const& call : rank) {
        if (call.indices.size() != static_cast<std::size_t>(what.length) || call.contributed != call.indices) {
          return "not every index is in the update, or did not contribute";
        }
        float largest = 0;
        for (auto const& other : run) {
          for (float const value : other[static_cast<std::size_t>(&call - rank.data())].accumulator) {
            largest = std::max(largest, std::fabs(value));
          }
        }
        float const most = std::max(largest * static_cast<float>(run.size()), std::ldexp(1.0F, -126));
        for (float const left : call.residual) {
          // Each rank rounds a value as often as it is encoded: log2 P times at most.
          if (std::fabs(left) > most / 127 * 5) {
            return "more is rounded off than 8 bits leave";
          }
        }
      }
    }
    return {};
  }
};

template <class Comm>
using ring = oktopk::dense_ring<execution, Comm>;

template <class Comm>
using ring_chunked = oktopk::dense_ring_chunked<execution, Comm>;

template <class Comm>
using halving_doubling = oktopk::dense_halving_doubling<execution, Comm>;

template <class Comm>
using coded_ring_chunked =
    oktopk::dense_ring_chunked<execution, Comm, float, std::int32_t, oktopk::coded_wire<oktopk::block_float>>;

template <class Comm>
using coded_recursive_doubling =
    oktopk::dense_recursive_doubling<execution, Comm, float, std::int32_t, oktopk::coded_wire<oktopk::block_float>>;

} // namespace

TEST_CASE("dense_ring keeps the invariants") {
  check_invariants<subject<ring>>();
}

TEST_CASE("dense_ring_chunked keeps the invariants") {
  check_invariants<subject<ring_chunked>>();
}

TEST_CASE("dense_halving_doubling keeps the invariants") {
  check_invariants<subject<halving_doubling>>();
}

TEST_CASE("dense_ring_chunked refuses bad accumulators") {
  check_bad_accumulators<subject<ring_chunked>>();
}

TEST_CASE("dense_ring_chunked of block_float keeps the invariants") {
  check_invariants<subject<coded_ring_chunked>>();
}

TEST_CASE("dense_ring_chunked of block_float refuses bad accumulators") {
  check_bad_accumulators<subject<coded_ring_chunked>>();
}

TEST_CASE("dense_recursive_doubling of block_float keeps the invariants") {
  check_invariants<subject<coded_recursive_doubling>>();
}

TEST_CASE("dense_recursive_doubling of block_float refuses bad accumulators") {
  check_bad_accumulators<subject<coded_recursive_doubling>>();
}

TEST_CASE("ranks that code at different rates or levels are told so") {
  using algorithm = coded_ring_chunked<oktopk::in_process_communicator>;
  CHECK(unlike(failures_of(3,
                           [](oktopk::in_process_communicator comm) {
                             algorithm(execution(), comm,
                                       {.length = 10, .reduce = {.codec = {.rate = comm.rank() == 1 ? 9 : 8}}});
                           }),
               oktopk::fault::ranks_disagree, "ring_chunked of block_float 9") == "");
  CHECK(unlike(failures_of(3,
                           [](oktopk::in_process_communicator comm) {
                             auto const level =
                                 comm.rank() == 2 ? oktopk::codec_level::message : oktopk::codec_level::collective;
                             algorithm(execution(), comm, {.length = 10, .reduce = {.codec = {}, .level = level}});
                           }),
               oktopk::fault::ranks_disagree, "level message") == "");
  CHECK(unlike(failures_of(3,
                           [](oktopk::in_process_communicator comm) {
                             algorithm(execution(), comm, {.length = 10, .reduce = {.codec = {.rate = 99}}});
                           }),
               oktopk::fault::option_out_of_range, "rate = 99 of block_float is not between 4 and 16") == "");
}
