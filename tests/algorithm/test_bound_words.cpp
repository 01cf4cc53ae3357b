// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// No call sends more than bound_words() says where rounding and control words weigh most: few entries of 12 bytes,
// nothing at all, everything.

#include "algorithm/suite.hpp"
#include "fuzz/subject_of.hpp"
#include "support/catch.hpp"
#include "support/strict_gap16.hpp"

#include <oktopk/algorithm/gtopk.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/algorithm/topk_dsa.hpp>

using namespace oktopk_tests;

namespace {

/// The most words that a rank sent in one of three calls, less the bound; each rank's values are its own.
double excess(subject const& of, int ranks, std::int64_t length, std::int64_t k) {
  double most = -1e300;
  auto const all = run(of, ranks, {length, k, 3}, [](moment when, numbers& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = heavy_tailed(noise(static_cast<std::uint64_t>(when.iteration * when.ranks + when.rank), i));
    }
  });
  for (auto const& rank : all) {
    for (call_record const& call : rank) {
      most = std::max(most, call.words() - call.bound_words);
    }
  }
  return most;
}

void check_bounds(subject const& of) {
  for (int const ranks : {1, 2, 3, 7, 16}) {
    for (std::int64_t const length : {0, 1, 2, 3, 40}) {
      for (std::int64_t const k : {std::int64_t(0), std::int64_t(1), length / 2, length}) {
        if (k <= length) {
          CAPTURE(of.about.name, ranks, length, k);
          CHECK(excess(of, ranks, length, k) <= 0);
        }
      }
    }
  }
}

template <class Algorithm>
void check_bounds_of(char const* name) {
  check_bounds(oktopk_fuzz::typed_subject<Algorithm>(name));
}

using C = oktopk::any_communicator;
using E = execution;

} // namespace

TEST_CASE("bounds hold in any format") {
  for (subject const& of : oktopk_fuzz::typed_subjects()) { // entries of 12 and 16 bytes
    check_bounds(of);
  }
  for (auto const& algorithm : oktopk::list_allreduces()) {
    for (oktopk::detail::listed_option const& option : algorithm.options) {
      for (char const* const format : {"coo", "coo_or_dense", "packed", "gap16"}) {
        if (option.key == "format") {
          check_bounds(subject_of(algorithm.name + "(format=" + format + ")"));
        }
      }
    }
  }
}

TEST_CASE("bounds hold in formats whose size is not known before") {
  check_bounds_of<oktopk::topk_a<E, C, oktopk::with_format<strict_gap16>>>("topk_a of strict gap16");
  check_bounds_of<oktopk::gaussian_k<E, C, strict_gap16>>("gaussian_k of strict gap16");
  check_bounds_of<oktopk::gtopk<E, C, oktopk::with_format<strict_gap16>>>("gtopk of strict gap16");
}

TEST_CASE("the bound of ok_topk's default policies is the documented one") {
  for (int const ranks : rank_counts) {
    for (double const k : {0, 1, 1000}) {
      CAPTURE(ranks, k);
      oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
        oktopk::ok_topk const allreduce(execution(), comm, {.length = 20000, .k = static_cast<std::int64_t>(k)});
        double const others = ranks - 1;
        double const steps = oktopk::detail::ceil_log2(ranks);
        double const headers_and_sizes = 14 * others;
        double const histograms = ranks == 1 ? 0 : (steps + 1) * (2 * 31.0 / 4 + 1) * 32;
        double const boundaries = 3 * 2 * ranks * steps;
        double const documented = 6 * k * others / ranks + (ranks == 1 ? 0 : k / 2);
        CHECK(allreduce.bound_words() <= 1e-9 + documented + headers_and_sizes + histograms + boundaries);
        CHECK(allreduce.bound_words() >= documented);
      });
    }
  }
}

TEST_CASE("ok_topk keeps its bound however often regions are evened") {
  for (int const ranks : {2, 3, 13, 16}) {
    for (int const rounds : {0, 1, 2, 5, 17}) {
      CAPTURE(ranks, rounds);
      auto const of = subject_of("ok_topk(partition=evened(tau=1, rounds=" + std::to_string(rounds) + "))");
      CHECK(excess(of, ranks, 400, 40) <= 0);
    }
  }
}

TEST_CASE("ok_topk keeps its bound in stages, and where regions are checked in every call") {
  for (int const ranks : {2, 3, 8, 13, 16}) {
    for (char const* const options :
         {"reduce=radix", "reduce=radix(2)", "reduce=radix(3), format=packed", "reduce=radix(2), local=unguarded",
          "partition=sampled(most=1.01, check_from=0)", "global=foreseen"}) {
      CAPTURE(ranks, options);
      CHECK(excess(subject_of("ok_topk(" + std::string(options) + ")"), ranks, 400, 40) <= 0);
    }
  }
}

TEST_CASE("with large k, regions that are balanced and all of the result on one rank, no call exceeds the bound") {
  constexpr std::int64_t k = 64000;
  constexpr std::int64_t length = 1 << 20;
  constexpr int ranks = 4;
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator inner) {
    oktopk::counted comm(inner);
    oktopk::ok_topk allreduce(execution(), comm, {.length = length, .k = k});
    comm.reset();
    for (int call = 0; call < 3; ++call) {
      // Each rank selects k/4 entries in each quarter; those of the first are the largest, and no two at one place.
      std::vector<float> values(static_cast<std::size_t>(length), 0);
      for (std::int64_t quarter = 0; quarter < ranks; ++quarter) {
        for (std::int64_t i = 0; i < k / ranks; ++i) {
          auto const place = static_cast<std::size_t>(quarter * length / ranks + 16 * i + comm.rank());
          auto const part = static_cast<float>((i * 7919 + comm.rank() * 131 + call * 17) % 16001) / 16001;
          values[place] = quarter == 0 ? 16 + 16 * part : 1 + part;
        }
      }
      allreduce(to_view(values));
      CHECK(comm.total().words_sent() <= allreduce.bound_words());
      comm.reset();
    }
  });
}
