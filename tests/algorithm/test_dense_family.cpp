// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/suite.hpp"

#include <oktopk/algorithm/dense_family.hpp>

using namespace oktopk_tests;

namespace {

/// That the update is the sum follows from conservation: nothing is left over but what was rounded off. `Times`: how
/// often a value may be rounded to 8 bits; 0: never, 1: each for itself, else by the largest of all.
template <template <class> class Algorithm, int Times>
struct subject : subject_of<> {
  template <class Comm>
  using algorithm = Algorithm<Comm>;

  static typename algorithm<counting>::options options(std::int64_t length, std::int64_t) {
    typename algorithm<counting>::options how;
    how.length = length;
    SET_IF_THERE(how.reduce.cutoff_bytes, 0);
    return how;
  }

  static std::string reference_fault(run_of<subject> const& run, shape what) {
    for (auto const& rank : run) {
      for (auto const& call : rank) {
        if (call.indices.size() != static_cast<std::size_t>(what.length) || call.contributed != call.indices) {
          return "not every index is in the update, or did not contribute";
        }
        float largest = 0;
        std::vector<float> sizes(call.residual.size()); // of a partial sum of all ranks at most
        for (auto const& other : run) {
          auto const& accumulator = other[static_cast<std::size_t>(&call - rank.data())].accumulator;
          for (std::size_t i = 0; i < sizes.size(); ++i) {
            sizes[i] += std::fabs(accumulator[i]);
            largest = std::max(largest, std::fabs(accumulator[i]));
          }
        }
        for (std::size_t i = 0; i < sizes.size(); ++i) {
          // Half a unit in the last of 8 bits; or of the least there is.
          float const size = Times == 1 ? sizes[i] : largest * static_cast<float>(run.size());
          float const most = Times == 1 ? size + std::ldexp(1.0F, -126) : std::max(size, std::ldexp(1.0F, -126));
          if (std::fabs(call.residual[i]) > (Times == 1 ? most / 128 : most / 127 * Times)) {
            return "more is rounded off than 8 bits leave";
          }
        }
      }
    }
    return {};
  }
};

template <class Comm>
using rabenseifner = oktopk::dense_rabenseifner<execution, Comm>;

template <class Comm>
using bfloat16 = oktopk::dense_bfloat16<execution, Comm>;

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

// A value is rounded as often as it is encoded: log2 P times at most.
TEMPLATE_TEST_CASE("dense algorithms keep the invariants", "", (subject<rabenseifner, 0>), (subject<bfloat16, 1>),
                   (subject<ring, 0>), (subject<ring_chunked, 0>), (subject<halving_doubling, 0>),
                   (subject<coded_ring_chunked, 5>), (subject<coded_recursive_doubling, 5>)) {
  check_invariants<TestType>();
}

TEMPLATE_TEST_CASE("dense algorithms refuse bad accumulators", "", (subject<rabenseifner, 0>), (subject<bfloat16, 1>),
                   (subject<ring_chunked, 0>), (subject<coded_ring_chunked, 5>),
                   (subject<coded_recursive_doubling, 5>)) {
  check_bad_accumulators<TestType>();
}

TEST_CASE("ranks that code at different rates or levels are told so") {
  using algorithm = coded_ring_chunked<oktopk::in_process_communicator>;
  auto const check = [](auto const& reduce_on, oktopk::fault code, std::string const& words) {
    auto const said = failures_of(3, [&](oktopk::in_process_communicator comm) {
      algorithm(execution(), comm, {.length = 10, .reduce = reduce_on(comm.rank())});
    });
    CHECK(unlike(said, code, words) == "");
  };
  using how = decltype(algorithm::options::reduce);
  check([](int rank) { return how{.codec = {.rate = rank == 1 ? 9 : 8}}; }, oktopk::fault::ranks_disagree,
        "ring_chunked of block_float 9");
  check(
      [](int rank) {
        return how{.codec = {}, .level = rank == 2 ? oktopk::codec_level::message : oktopk::codec_level::collective};
      },
      oktopk::fault::ranks_disagree, "level message");
  check([](int) { return how{.codec = {.rate = 99}}; }, oktopk::fault::option_out_of_range,
        "rate = 99 of block_float is not between 4 and 16");
}
