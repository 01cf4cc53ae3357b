// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/policies.hpp"

#include <oktopk/algorithm/dense_family.hpp>
#include <oktopk/allreduce.hpp>

// Objects are made by all ranks together: whatever one of them gets wrong, all of them hear the same.
using namespace oktopk_tests;
using oktopk::fault;

namespace {

using in_process = oktopk::in_process_communicator;
// Of many options.
using usual = oktopk::ok_topk<execution, in_process, reused_policies>;
using usual_options = usual::options;

/// Every rank makes an object with `options(rank)`, and all hear this.
template <class Algorithm, class Options>
void check_made(int ranks, Options const& options, fault code, std::string const& words) {
  CAPTURE(ranks, words);
  auto const said =
      outcomes_of(ranks, [&](in_process comm) { Algorithm const made_of_it(execution(), comm, options(comm.rank())); });
  CHECK(unlike(said, code, words) == "");
}

/// A bad option on one rank, on each in turn, and on all.
void check_bad_option(usual_options const& bad, fault code, std::string const& words) {
  usual_options const good{.length = 100, .k = 10};
  for (int const ranks : {1, 2, 3, 5}) {
    check_made<usual>(
        ranks, [&](int) { return bad; }, code, words);
    for (int bad_rank = 0; bad_rank < ranks; ++bad_rank) {
      auto const options = [&](int rank) { return rank == bad_rank ? bad : good; };
      check_made<usual>(ranks, options, code, ranks == 1 ? words : "rank " + std::to_string(bad_rank) + ": " + words);
    }
  }
}

void check_good_option(usual_options const& good) {
  check_made<usual>(
      3, [&](int) { return good; }, fault::none, "");
}

/// One rank differs from the others, each in turn.
void check_disagreement(usual_options const& one, usual_options const& other, std::string const& words) {
  for (int const ranks : {2, 3, 5}) {
    for (int odd_one = 0; odd_one < ranks; ++odd_one) {
      check_made<usual>(
          ranks, [&](int rank) { return rank == odd_one ? other : one; }, fault::ranks_disagree, words);
    }
  }
}

/// Rank 1 of 3 makes another type of object than the others.
template <class One, class Other>
void check_types_disagree(typename One::options const& one, typename Other::options const& other,
                          std::string const& words) {
  CAPTURE(words);
  auto const said = outcomes_of(3, [&](in_process comm) {
    if (comm.rank() == 1) {
      Other const made_of_it(execution(), comm, other);
    } else {
      One const made_of_it(execution(), comm, one);
    }
  });
  CHECK(unlike(said, fault::ranks_disagree, words) == "");
}

} // namespace

TEST_CASE("k and density out of range are the same error on every rank") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  check_bad_option({.length = 100, .k = 101}, fault::k_out_of_range, "k = 101 is not in [0, length], length = 100");
  check_bad_option({.length = 100, .k = -1}, fault::k_out_of_range, "k = -1 ");
  check_bad_option({.length = 0, .k = 1}, fault::k_out_of_range, "k = 1 ");
  check_bad_option({.length = 100}, fault::k_out_of_range, "give k or density");
  check_bad_option({.length = 100, .k = 10, .density = 0.1}, fault::k_out_of_range,
                   "give either k or density, not both");
  check_bad_option({.length = 100, .density = 0.0}, fault::density_out_of_range, "density = 0 is not in (0, 1]");
  check_bad_option({.length = 100, .density = -1.0}, fault::density_out_of_range, "density = -1 ");
  check_bad_option({.length = 100, .density = 2.0}, fault::density_out_of_range, "density = 2 ");
  check_bad_option({.length = 100, .density = 1.0000001}, fault::density_out_of_range, "density = ");
  check_bad_option({.length = 100, .density = nan}, fault::density_out_of_range, "density = nan");
  check_bad_option({.length = 100, .density = HUGE_VAL}, fault::density_out_of_range, "density = inf");
}

TEST_CASE("a length that is negative or does not fit the index type is the same error on every rank") {
  std::int64_t const too_long = std::int64_t(1) << 31;
  check_bad_option({.length = -1, .k = 0}, fault::option_out_of_range, "length = -1 is negative");
  check_bad_option({.length = too_long, .k = 10}, fault::index_overflow, "length = 2147483648 does not fit");
  using dense = oktopk::dense<execution, in_process>;
  check_made<dense>(
      3, [&](int) { return dense::options{.length = too_long}; }, fault::index_overflow,
      "length = 2147483648 does not fit");
  check_made<dense>(
      3, [&](int) { return dense::options{.length = -5}; }, fault::option_out_of_range, "length = -5 is negative");
  // A longer gradient is what wider indices are for; nothing of its length is allocated before the first call.
  auto const make_wide = [](std::int64_t length) {
    return outcomes_of(3, [length](in_process comm) {
      using format = oktopk::coo<float, std::int64_t>;
      oktopk::ok_topk<execution, in_process, oktopk::with_format<format>> const made_of_it(
          execution(), comm, {.length = length, .density = 0.01});
      CHECK(made_of_it.k() == 1374389535);
    });
  };
  CHECK(unlike(make_wide(std::int64_t(1) << 37), fault::none, "") == "");
  CHECK(unlike(make_wide(std::int64_t(1) << 38), fault::index_overflow, "more than the messages can count") == "");
}

TEST_CASE("options of policies out of range are the same error on every rank") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  fault const code = fault::option_out_of_range;
  check_bad_option({.length = 9, .k = 1, .local_select = {.tau_prime = 0}}, code, "tau' = 0 of reused_threshold");
  check_bad_option({.length = 9, .k = 1, .deliver = {.global_select = {.tau_prime = -3}}}, code,
                   "tau' = -3 of reused_threshold");
  check_bad_option({.length = 9, .k = 1, .local_select = {.low = 1.1}}, code, "the band of reused_threshold");
  check_bad_option({.length = 9, .k = 1, .local_select = {.low = -0.1}}, code, "the band of reused_threshold");
  check_bad_option({.length = 9, .k = 1, .local_select = {.low = nan}}, code, "the band of reused_threshold");
  check_bad_option({.length = 9, .k = 1, .deliver = {.global_select = {.high = 0.9}}}, code,
                   "the band of reused_threshold");
  check_bad_option({.length = 9, .k = 1, .deliver = {.global_select = {.high = nan}}}, code,
                   "the band of reused_threshold");
  check_bad_option({.length = 9, .k = 1, .partition = {.tau = 0}}, code, "tau = 0 of sampled");
  check_bad_option({.length = 9, .k = 1, .schedule = {.bucket = 0}}, code, "bucket = 0 of rotated");
  check_bad_option({.length = 9, .k = 1, .deliver = {.gather = {.ratio = 0.5}}}, code,
                   "the ratio of balanced_allgatherv");
  check_bad_option({.length = 9, .k = 1, .deliver = {.gather = {.ratio = nan}}}, code,
                   "the ratio of balanced_allgatherv");
}

TEST_CASE("options at the edge of their range are taken") {
  check_good_option({.length = 0, .k = 0});
  check_good_option({.length = 100, .k = 100});
  check_good_option({.length = 100, .density = 1.0});
  check_good_option({.length = 100, .density = 1e-300});
  check_good_option({.length = std::numeric_limits<std::int32_t>::max(), .k = 1});
  check_good_option({.length = 9, .k = 1, .local_select = {.tau_prime = 1, .low = 0, .high = 1}});
  check_good_option({.length = 9, .k = 1, .local_select = {.low = 1, .high = HUGE_VAL}});
  check_good_option(
      {.length = 9, .k = 1, .partition = {.tau = 1}, .schedule = {.bucket = 1}, .deliver = {.gather = {.ratio = 1}}});
}

TEST_CASE("density becomes a rounded k of at least one") {
  auto const k_of = [](std::int64_t length, double density) {
    return oktopk::ok_topk(execution(), oktopk::self_communicator(), {.length = length, .density = density}).k();
  };
  CHECK(k_of(1000, 0.01) == 10);
  CHECK(k_of(1049, 0.01) == 10);
  CHECK(k_of(1050, 0.01) == 11);
  CHECK(k_of(1000, 1e-9) == 1);
  CHECK(k_of(1000, 1) == 1000);
  CHECK(k_of(3, 0.999) == 3);
  CHECK(k_of(0, 0.5) == 0);
}

TEST_CASE("ranks that disagree on an option are told so, all of them") {
  usual_options const usual_ones{.length = 100, .k = 10};
  check_disagreement(usual_ones, {.length = 101, .k = 10}, "length = 101");
  check_disagreement(usual_ones, {.length = 100, .k = 11}, "k = 11");
  check_disagreement(usual_ones, {.length = 100, .density = 0.2}, "k = 20");
  check_disagreement(usual_ones, {.length = 100, .k = 10, .local_select = {.tau_prime = 31}}, "tau' 31");
  check_disagreement(usual_ones, {.length = 100, .k = 10, .deliver = {.global_select = {.tau_prime = 33}}}, "tau' 33");
  check_disagreement(usual_ones, {.length = 100, .k = 10, .local_select = {.high = std::nextafter(1.5, 2)}},
                     "high 1.5");
  check_disagreement(usual_ones, {.length = 100, .k = 10, .partition = {.tau = 63}}, "tau 63");
  check_disagreement(usual_ones, {.length = 100, .k = 10, .schedule = {.bucket = 5}}, "bucket 5");
  check_disagreement(usual_ones, {.length = 100, .k = 10, .deliver = {.gather = {.ratio = 3}}}, "ratio 3");
  check_disagreement(usual_ones, {.length = 100, .k = 10, .deliver = {.gather = {.bound_sent = false}}},
                     "balanced_allgatherv");
  // The same k said in another way is no disagreement.
  check_made<usual>(
      3, [&](int rank) { return rank == 1 ? usual_options{.length = 100, .density = 0.1} : usual_ones; }, fault::none,
      "");
}

TEST_CASE("ranks that disagree on types or policies are told so, all of them") {
  using oktopk::coo;
  using E = execution;
  using C = in_process;
  using double_values =
      oktopk::ok_topk<E, C, policies_of<coo<double>, oktopk::reused_threshold, oktopk::reused_threshold>>;
  using wide_indices =
      oktopk::ok_topk<E, C, policies_of<coo<float, std::int64_t>, oktopk::reused_threshold, oktopk::reused_threshold>>;
  using exact_local = oktopk::ok_topk<E, C, policies_of<coo<>, oktopk::exact, oktopk::reused_threshold>>;
  using exact_global = oktopk::ok_topk<E, C, policies_of<coo<>, oktopk::reused_threshold, oktopk::exact>>;
  using uniform_regions =
      oktopk::ok_topk<E, C, policies_of<coo<>, oktopk::reused_threshold, oktopk::reused_threshold, oktopk::uniform>>;
  using paper = oktopk::paper_ok_topk<E, C>;
  using dense = oktopk::dense<E, C>;
  usual_options const ours{.length = 100, .k = 10};
  check_types_disagree<usual, double_values>(ours, {.length = 100, .k = 10}, "coo<float64, int32>");
  check_types_disagree<usual, wide_indices>(ours, {.length = 100, .k = 10}, "coo<float32, int64>");
  check_types_disagree<usual, exact_local>(ours, {.length = 100, .k = 10}, "local selector = exact");
  check_types_disagree<usual, exact_global>(ours, {.length = 100, .k = 10}, "deliverer = exact");
  check_types_disagree<usual, uniform_regions>(ours, {.length = 100, .k = 10}, "partitioner = uniform");
  check_types_disagree<usual, paper>(ours, {.length = 100, .k = 10}, "rank 1 has ");
  check_types_disagree<usual, dense>(ours, {.length = 100}, "rank 1 has object = dense");
  check_types_disagree<dense, usual>({.length = 100}, ours, "rank 1 has object = ok_topk");
  check_types_disagree<dense, dense>({.length = 100}, {.length = 99}, "length = 99");
  check_types_disagree<dense, oktopk::dense<E, C, double>>({.length = 100}, {.length = 100}, "value bits = 64");
  check_types_disagree<dense, oktopk::dense<E, C, float, std::int64_t>>({.length = 100}, {.length = 100},
                                                                        "index bits = 64");
}

TEST_CASE("topk_dsa checks the options of its schedule, and compares them") {
  auto const check = [](auto const& bucket_of, fault code, std::string const& words) {
    using algorithm = oktopk::topk_dsa<execution, in_process>;
    auto const options = [&](int rank) {
      return algorithm::options{.length = 100, .k = 10, .schedule = {.bucket = bucket_of(rank)}};
    };
    check_made<algorithm>(3, options, code, words);
  };
  check([](int) { return 0; }, fault::option_out_of_range, "bucket = 0 of rotated is not positive");
  check([](int rank) { return rank == 1 ? -3 : 4; }, fault::option_out_of_range, "rank 1: bucket = -3");
  check([](int rank) { return rank == 2 ? 5 : 4; }, fault::ranks_disagree, "schedule");
}

TEST_CASE("ranks that code at different rates or levels are told so") {
  using algorithm =
      oktopk::dense_ring_chunked<execution, in_process, float, std::int32_t, oktopk::coded_wire<oktopk::block_float>>;
  using how = decltype(algorithm::options::reduce);
  auto const check = [](auto const& reduce_on, fault code, std::string const& words) {
    auto const options = [&](int rank) { return algorithm::options{.length = 10, .reduce = reduce_on(rank)}; };
    check_made<algorithm>(3, options, code, words);
  };
  using oktopk::detail::codec_level;
  check([](int rank) { return how{.codec = {.rate = rank == 1 ? 9 : 8}}; }, fault::ranks_disagree,
        "ring_chunked of block_float 9");
  check([](int rank) { return how{.level = rank == 2 ? codec_level::message : codec_level::collective}; },
        fault::ranks_disagree, "level message");
  check([](int) { return how{.codec = {.rate = 99}}; }, fault::option_out_of_range,
        "rate = 99 of block_float is not between 4 and 16");
}

TEST_CASE("the extent of a view is a length, without a cast") {
  Kokkos::View<float*, memory> const gradient("gradient", 30);
  oktopk::ok_topk allreduce(execution(), oktopk::self_communicator(), {.length = gradient.extent(0), .k = 3});
  CHECK(allreduce.length() == 30);
  CHECK_THROWS_AS(oktopk::ok_topk(execution(), oktopk::self_communicator(), {.length = ~std::size_t(0), .k = 3}),
                  oktopk::error);
}

TEST_CASE("only the paper's own policies together go by the paper's name") {
  using oktopk::coo;
  oktopk::self_communicator const alone;
  using paper = oktopk::paper_ok_topk<execution, oktopk::self_communicator>;
  using mixed = oktopk::ok_topk<execution, oktopk::self_communicator,
                                policies_of<coo<>, oktopk::unguarded_threshold, oktopk::gathered_threshold>>;
  CHECK(paper(execution(), alone, {.length = 10, .k = 1}).name() == "paper_ok_topk");
  CHECK(mixed(execution(), alone, {.length = 10, .k = 1}).name() == "ok_topk");
}
