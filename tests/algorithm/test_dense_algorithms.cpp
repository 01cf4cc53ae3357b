// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/suite.hpp"

#include <oktopk/algorithm/dense_family.hpp>

using namespace oktopk_tests;

namespace {

/// That the update is the sum follows from conservation: nothing else is left over.
template <template <class, class> class Algorithm, bool Lossless>
struct subject : subject_of<> {
  template <class Comm>
  using algorithm = Algorithm<execution, Comm>;

  static typename algorithm<counting>::options options(std::int64_t length, std::int64_t) { return {.length = length}; }

  static std::string reference_fault(run_of<subject> const& run, shape what) {
    for (auto const& rank : run) {
      for (auto const& call : rank) {
        if (call.indices.size() != static_cast<std::size_t>(what.length) || call.contributed != call.indices) {
          return "not every index is in the update, or did not contribute";
        }
        if (Lossless && std::any_of(call.residual.begin(), call.residual.end(), [](float x) { return x != 0; })) {
          return "something is left over";
        }
        for (std::size_t i = 0; i < call.residual.size(); ++i) {
          // Half a unit in the last of 8 bits, of a partial sum of all ranks at most; or of the least there is.
          float most = std::ldexp(1.0F, -126);
          for (auto const& other : run) {
            most += std::fabs(other[static_cast<std::size_t>(&call - rank.data())].accumulator[i]);
          }
          if (std::fabs(call.residual[i]) > most / 128) {
            return "more is rounded off than 8 bits leave";
          }
        }
      }
    }
    return {};
  }
};

template <class E, class C>
using rabenseifner = oktopk::dense_rabenseifner<E, C>;

template <class E, class C>
using bfloat16 = oktopk::dense_bfloat16<E, C>;

} // namespace

TEST_CASE("dense_rabenseifner keeps the invariants") {
  check_invariants<subject<rabenseifner, true>>();
}

TEST_CASE("dense_rabenseifner refuses bad accumulators") {
  check_bad_accumulators<subject<rabenseifner, true>>();
}

TEST_CASE("dense_bfloat16 keeps the invariants") {
  check_invariants<subject<bfloat16, false>>();
}

TEST_CASE("dense_bfloat16 refuses bad accumulators") {
  check_bad_accumulators<subject<bfloat16, false>>();
}
