// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "algorithm/invariants.hpp"
#include "support/catch.hpp"
#include "support/emulated.hpp"

#include <functional>

// What every algorithm and every policy must pass. A new one: a subject (see record.hpp) and test cases that call
// these.
namespace oktopk_tests {

/// An input that some implementation has tripped over.
template <class Value>
struct special_input {
  std::string name;
  shape what;
  std::function<void(moment, std::vector<Value>&)> gradient;
  bool exact = true; ///< sums do not round
};

template <class Value>
std::vector<special_input<Value>> special_inputs() {
  using vector = std::vector<Value>;
  whole_numbers const whole{7};
  auto const each = [](auto const& value_at) { // each element by itself, of its number
    return [=](moment when, vector& gradient) {
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        gradient[i] = static_cast<Value>(value_at(when, i));
      }
    };
  };
  auto const scaled = [=](auto const& factor) { // whole numbers, each times its factor
    return [=](moment when, vector& gradient) {
      whole(when, gradient);
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        int const times = factor(when, i);
        gradient[i] = times == 0 ? Value(0) : gradient[i] * static_cast<Value>(times);
      }
    };
  };
  auto const everywhere = [=](int value) { return each([=](moment, std::size_t) { return value; }); };
  auto const small_number = [](moment when, std::size_t i, std::int64_t most) {
    auto const bits = noise(11, static_cast<std::uint64_t>(when.rank), static_cast<std::uint64_t>(when.iteration), i);
    return static_cast<Value>(number_in(-most, most, bits));
  };
  auto const ties = each([=](moment when, std::size_t i) { return small_number(when, i, 2); });
  return {
      {"no elements at all", {0, 0, 3}, whole},
      {"one element", {1, 1, 3}, whole},
      {"fewer elements than ranks", {3, 2, 4}, whole},
      {"k = 0", {50, 0, 3}, whole},
      {"k = 1", {50, 1, 6}, whole},
      {"k = n", {50, 50, 3}, whole},
      {"all zero", {100, 10, 3}, everywhere(0)},
      {"all equal", {100, 10, 5}, everywhere(-3)},
      {"ties at the threshold", {200, 30, 8}, ties},
      {"many ties at the threshold", {3000, 30, 6}, ties},
      {"very many zeros", {3000, 30, 6}, each([=](moment when, std::size_t i) {
         return i % 200 == 0 ? small_number(when, i, 9) : Value(0);
       })},
      {"very many of one magnitude", {3000, 30, 4}, everywhere(7)},
      {"one rank empty", {200, 20, 8}, scaled([](moment when, std::size_t) {
         return when.rank == when.ranks / 2 ? 0 : 1;
       })},
      {"all ranks but one empty", {200, 20, 8}, scaled([](moment when, std::size_t) {
         return when.rank == when.ranks - 1 ? 1 : 0;
       })},
      {"all mass in the last tenth", {300, 30, 8}, scaled([](moment, std::size_t i) { return i < 270 ? 0 : 1; })},
      {"each rank large in a place of its own, which wanders", {320, 20, 8}, scaled([](moment when, std::size_t i) {
         auto const begin = static_cast<std::size_t>((when.rank * 37 + when.iteration * 90) % 300);
         return i >= begin && i < begin + 20 ? 1000 : 1;
       })},
      {"each rank large in the next one's region", {1600, 40, 5}, scaled([](moment when, std::size_t i) {
         auto const blocks = static_cast<std::size_t>(when.ranks);
         bool const next = i * blocks / 1600 == static_cast<std::size_t>(when.rank + 1) % blocks;
         return when.iteration == 0 ? 1 : next ? 100 : 0;
       })},
      {"sums that cancel",
       {100, 10, 5},
       [=](moment when, vector& gradient) {
         whole({when.rank / 2, when.ranks, when.iteration}, gradient);
         for (Value& x : gradient) {
           x = when.rank % 2 == 0 ? x : -x;
         }
       }},
      {"denormal numbers", {100, 10, 5}, each([=](moment when, std::size_t i) {
         return small_number(when, i, 40) * std::numeric_limits<Value>::denorm_min();
       })},
      {"negative zeros", {100, 20, 5}, each([=](moment when, std::size_t i) {
         return i % 9 == 0 ? small_number(when, i, 5) : i % 2 == 0 ? -Value(0) : Value(0);
       })},
      {"magnitudes from the smallest to nearly the largest",
       {200, 60, 4},
       each([](moment when, std::size_t i) {
         auto const bits = noise(13, static_cast<std::uint64_t>(when.rank), i);
         int const exponent = static_cast<int>(
             number_in(std::numeric_limits<Value>::min_exponent, std::numeric_limits<Value>::max_exponent - 12, bits));
         return std::ldexp(static_cast<Value>(bits % 2 == 0 ? 1 : -1), exponent);
       }),
       false},
      {"gradients that jump to ten times and to a tenth", {1400, 25, 12}, scaled([](moment when, std::size_t) {
         return when.iteration % 5 == 3 ? 1000 : when.iteration % 5 == 4 ? 1 : 100;
       })},
  };
}

/// Runs a subject through all special inputs on so many ranks; the first thing that is wrong, or nothing.
template <class Subject>
std::string special_input_fault(int ranks) {
  for (auto const& input : special_inputs<typename Subject::value_type>()) {
    std::string fault;
    try {
      auto const once = run<Subject>(ranks, input.what, input.gradient);
      fault = run_fault<Subject>(once, input.what, input.exact);
    } catch (std::exception const& thrown) {
      fault = thrown.what();
    }
    if (!fault.empty()) {
      return input.name + ", " + std::to_string(ranks) + " ranks: " + fault;
    }
  }
  return {};
}

/// An accumulator as it is handed over: of any length, in any layout.
template <class Value>
struct handed_over {
  std::vector<Value> values;
  bool strided = false;
  oktopk::detail::fault_report fails{}; ///< handed over in place of the accumulator, unless it is none
};

/// How an accumulator is spoilt on some ranks, and what every rank must then say.
template <class Value>
struct bad_accumulator {
  std::string name;
  std::function<void(moment, handed_over<Value>&)> spoil;
  oktopk::fault code;
  std::function<std::string(int ranks)> words;
};

template <class Value>
std::vector<bad_accumulator<Value>> bad_accumulators(std::int64_t length) {
  using oktopk::fault;
  using oktopk::detail::fault_subject;
  using given = handed_over<Value>;
  auto const last = [](int ranks) { return "rank " + std::to_string(ranks - 1) + ": "; };
  auto const n = static_cast<std::size_t>(length);
  auto const put = [last](Value what, std::size_t where, char const* name) {
    return bad_accumulator<Value>{
        name,
        [=](moment when, given& accumulator) {
          if (when.rank == when.ranks - 1) {
            accumulator.values[where] = what;
          }
        },
        fault::non_finite, [=](int ranks) { return last(ranks) + "the value at index " + std::to_string(where); }};
  };
  Value const infinity = std::numeric_limits<Value>::infinity();
  return {
      {"one too long on the last rank",
       [=](moment when, given& a) { a.values.resize(n + (when.rank == when.ranks - 1 ? 1 : 0), Value(1)); },
       fault::length_mismatch,
       [=](int ranks) {
         return last(ranks) + "the accumulator has " + std::to_string(n + 1) + " elements, expected " +
                std::to_string(n);
       }},
      {"one too short on all ranks", [=](moment, given& a) { a.values.resize(n - 1); }, fault::length_mismatch,
       [=](int) { return "rank 0: the accumulator has " + std::to_string(n - 1); }},
      {"empty on rank 0", [=](moment when, given& a) { a.values.resize(when.rank == 0 ? 0 : n); },
       fault::length_mismatch, [](int) { return std::string("rank 0: the accumulator has 0 elements"); }},
      {"with a stride on the last rank", [](moment when, given& a) { a.strided = when.rank == when.ranks - 1; },
       fault::not_contiguous, [=](int ranks) { return last(ranks) + "the accumulator is not contiguous"; }},
      put(std::numeric_limits<Value>::quiet_NaN(), 0, "NaN"),
      put(-std::numeric_limits<Value>::quiet_NaN(), n - 1, "negative NaN"),
      put(infinity, n / 2, "infinity"),
      put(-infinity, n / 3, "negative infinity"),
      {"NaN everywhere on all ranks",
       [](moment, given& a) { a.values.assign(a.values.size(), std::numeric_limits<Value>::quiet_NaN()); },
       fault::non_finite, [](int) { return std::string("rank 0: the value at index 0 "); }},
      {"all ranks bad, each in its own way",
       [=](moment when, given& a) {
         a.values[static_cast<std::size_t>(when.rank) % n] = infinity;
         if (when.rank % 2 == 1) {
           a.values.resize(n + 7);
         }
       },
       fault::non_finite, [](int) { return std::string("rank 0: the value at index 0 "); }},
      {"the last rank has no accumulator",
       [](moment when, given& a) {
         a.fails.code = when.rank == when.ranks - 1 ? fault::bad_file : fault::none;
         a.fails.subject = fault_subject::rank;
       },
       fault::bad_file,
       [=](int ranks) {
         return last(ranks) + "it has no accumulator for this call, because of an error on that rank: bad_file";
       }},
      {"all ranks fail, each in its own way",
       [=](moment when, given& a) {
         a.fails = {when.rank == 0 ? fault::length_mismatch : fault::caller_failed, 77};
       },
       fault::length_mismatch, [](int) { return std::string("rank 0: the accumulator has 77 elements"); }},
      {"a communicator's error of rank 0, which is none of the call",
       [](moment when, given& a) { a.fails.code = when.rank == 0 ? fault::timed_out : fault::none; },
       fault::caller_failed, [](int) { return std::string("rank 0: caller_failed"); }},
  };
}

/// Calls with something spoilt. The views of what is handed over differ in type, as they do in a program.
template <class Allreduce>
void hand_over(Allreduce& allreduce, handed_over<typename Allreduce::value_type> const& given) {
  using value_type = typename Allreduce::value_type;
  if (given.fails) {
    allreduce.fail(given.fails);
    return;
  }
  if (!given.strided) {
    Kokkos::View<value_type*, memory> const view = to_view(given.values);
    allreduce(view);
    return;
  }
  Kokkos::View<value_type**, Kokkos::LayoutRight, memory> const table("test data", given.values.size(), 2);
  allreduce(Kokkos::View<value_type*, Kokkos::LayoutStride, memory>(Kokkos::subview(table, Kokkos::ALL(), 0)));
}

/// Every way to spoil an accumulator, before every iteration in turn: all ranks say the same, and the object goes on
/// like a twin that never saw the bad call. The first thing that is wrong, or nothing.
template <class Subject>
std::string bad_accumulator_fault(int ranks, shape what) {
  using value_type = typename Subject::value_type;
  whole_numbers const gradient{5, 4};
  run_of<Subject> const twin = run<Subject>(ranks, what, gradient);
  auto const cases = bad_accumulators<value_type>(what.length);
  for (int bad_at = 0; bad_at < what.iterations; ++bad_at) {
    for (auto const& bad : cases) {
      std::string const where =
          bad.name + ", before iteration " + std::to_string(bad_at) + ", " + std::to_string(ranks) + " ranks: ";
      INFO(where); // a later call that fails passes as an exception
      std::vector<failure> said(static_cast<std::size_t>(ranks));
      auto const all = run<Subject>(ranks, what, gradient, [&](auto& allreduce, moment now, auto const& accumulator) {
        if (now.iteration == bad_at) {
          handed_over<value_type> spoilt{accumulator};
          bad.spoil(now, spoilt);
          said[static_cast<std::size_t>(now.rank)] = failure_of([&] { hand_over(*allreduce, spoilt); });
        }
      });
      std::string fault = unlike(said, bad.code, bad.words(ranks));
      fault = fault.empty() ? repetition_fault(twin, all) : fault;
      if (!fault.empty()) {
        return where + fault;
      }
    }
  }
  return {};
}

/// Sums that overflow although every accumulator is finite: all ranks must say so, and not blame somebody's value.
template <class Subject>
std::string overflow_fault(int ranks, shape what) {
  auto const place = static_cast<std::size_t>(what.length) - 2;
  std::vector<failure> said(static_cast<std::size_t>(ranks));
  run<Subject>(ranks, what, whole_numbers{5}, [&](auto& allreduce, moment now, auto accumulator) {
    accumulator[place] = std::numeric_limits<typename Subject::value_type>::max();
    said[static_cast<std::size_t>(now.rank)] = failure_of([&] { hand_over(*allreduce, {accumulator}); });
  });
  std::string const fault = unlike(said, oktopk::fault::non_finite, "index " + std::to_string(place));
  return fault.empty() ? unlike(said, oktopk::fault::non_finite, "sum") : fault;
}

/// Goes on from the state saved before every iteration, in a new object: the rest must be the same to the bit.
template <class Subject>
std::string continuation_fault(int ranks, shape what) {
  whole_numbers const gradient{9, 6};
  auto const made_like = [&](auto& allreduce) {
    return std::make_unique<algorithm_of<Subject>>(execution(), allreduce->comm(),
                                                   Subject::options(what.length, what.k));
  };
  // Schemes without tags send more where there is another object, so there is one in all runs.
  auto const with_another = [&](auto& allreduce, moment now) {
    if (now.iteration == 0) {
      made_like(allreduce);
    }
  };
  run_of<Subject> const whole = run<Subject>(
      ranks, what, gradient, [&](auto& allreduce, moment now, auto const&) { with_another(allreduce, now); });
  for (int saved_at = 0; saved_at < what.iterations; ++saved_at) {
    auto const rest = run<Subject>(ranks, what, gradient, [&](auto& allreduce, moment now, auto const&) {
      with_another(allreduce, now);
      if (now.iteration == saved_at) {
        auto const saved = allreduce->state();
        allreduce = made_like(allreduce);
        allreduce->restore(saved);
      }
    });
    if (std::string const fault = repetition_fault(whole, rest); !fault.empty()) {
      return std::to_string(ranks) + " ranks, restored before iteration " + std::to_string(saved_at) + ": " + fault;
    }
  }
  return {};
}

/// Restores, on the last rank, a state that `spoil` has changed: an error on every rank, after which the object goes on
/// as if nothing had been. `spoil(state, rank, ranks)`.
template <class Subject, class Spoil>
std::string bad_state_fault(int ranks, shape what, Spoil const& spoil, oktopk::fault code) {
  whole_numbers const gradient{9};
  std::vector<failure> said(static_cast<std::size_t>(ranks));
  auto const all = run<Subject>(ranks, what, gradient, [&](auto& allreduce, moment now, auto const&) {
    if (now.iteration == 2) {
      auto saved = allreduce->state();
      spoil(saved, now.rank, ranks);
      said[static_cast<std::size_t>(now.rank)] = failure_of([&] { allreduce->restore(saved); });
    }
  });
  std::string const fault = unlike(said, code, "");
  return fault.empty() ? repetition_fault(run<Subject>(ranks, what, gradient), all) : fault;
}

/// All that is promised of a run, and that it is the same each time.
template <class Subject, class Gradient>
void check_runs(shape what, Gradient const& gradient, bool exact) {
  for (int const ranks : affordable_rank_counts()) {
    CAPTURE(ranks, what.length);
    auto const once = run<Subject>(ranks, what, gradient);
    CHECK(run_fault<Subject>(once, what, exact) == "");
    CHECK(repetition_fault(once, run<Subject>(ranks, what, gradient)) == "");
  }
}

/// Conservation, agreement of all ranks, the volume bound whatever comes, and the reference where there is one.
template <class Subject>
void check_invariants() {
  SECTION("whole numbers, whose sums are exact") {
    check_runs<Subject>({230, 23, 11}, whole_numbers{1, 7}, true);
  }
  SECTION("real numbers") {
    check_runs<Subject>({2600, 37, 11}, correlated{3, 8}, false); // long enough for selectors that guess
  }
  SECTION("special inputs") {
    for (int const ranks : affordable_rank_counts()) {
      CHECK(special_input_fault<Subject>(ranks) == "");
    }
  }
}

/// Bad accumulators are the same error on every rank, and leave no trace.
template <class Subject>
void check_bad_accumulators() {
  SECTION("each kind before each iteration") {
    for (int const ranks : {1, 2, 3, 5, 8}) {
      CHECK(bad_accumulator_fault<Subject>(ranks, {90, 9, 6}) == "");
    }
  }
  SECTION("with accumulators long enough for selectors that guess") {
    CHECK(bad_accumulator_fault<Subject>(3, {2500, 20, 6}) == "");
  }
  SECTION("nothing to select") {
    CHECK(bad_accumulator_fault<Subject>(3, {90, 0, 2}) == "");
  }
  SECTION("no length") {
    for (int const ranks : {1, 2, 3, 5}) {
      for (int bad_rank = 0; bad_rank < ranks; ++bad_rank) {
        auto const said = failures_of(ranks, [&](oktopk::in_process_communicator comm) {
          std::size_t const size = comm.rank() == bad_rank ? 3 : 0;
          hand_over(*made<Subject>(comm, 0, 0), {std::vector<typename Subject::value_type>(size)});
        });
        CHECK(unlike(said, oktopk::fault::length_mismatch,
                     "rank " + std::to_string(bad_rank) + ": the accumulator has 3 elements, expected 0") == "");
      }
    }
  }
  SECTION("a sum that overflows") {
    for (int const ranks : {2, 3, 5, 8}) {
      CHECK(overflow_fault<Subject>(ranks, {90, 9, 1}) == "");
    }
  }
}

/// State can be saved and restored; a bad one is the same error on every rank.
template <class Subject>
void check_continuation() {
  SECTION("from every iteration") {
    for (int const ranks : {1, 3, 4, 8}) {
      CHECK(continuation_fault<Subject>(ranks, {120, 12, 11}) == "");
    }
    CHECK(continuation_fault<Subject>(3, {2600, 26, 11}) == "");
  }
  SECTION("from no state of an impossible iteration, on whatever ranks") {
    auto const check = [](char const* what, auto const& spoil, oktopk::fault code) {
      CAPTURE(what);
      CHECK(bad_state_fault<Subject>(3, {120, 12, 11}, spoil, code) == "");
    };
    for (std::int64_t const bad : {std::int64_t(-1), std::numeric_limits<std::int64_t>::max()}) {
      check(
          bad < 0 ? "negative" : "the last", [=](auto& state, int, int) { state.iteration = bad; },
          oktopk::fault::bad_state);
    }
    check(
        "negative on one rank", [](auto& state, int rank, int) { state.iteration = rank == 1 ? -1 : state.iteration; },
        oktopk::fault::bad_state);
    check(
        "another on one rank", [](auto& state, int rank, int ranks) { state.iteration += rank == ranks - 1 ? 1 : 0; },
        oktopk::fault::ranks_disagree);
  }
}

/// All of the above.
template <class Subject>
void check_algorithm() {
  check_invariants<Subject>();
  check_bad_accumulators<Subject>();
  check_continuation<Subject>();
}

/// With selections drawn evenly over the index the documented bound holds on every call, however thresholds and regions
/// come of age, while gradients drift and when they jump. `used` is the part of the bound that must really be sent by
/// somebody: what is counted is the whole of it.
template <class Subject>
void check_bound(int ranks, shape what, correlated const& gradient, double used = 0.4) {
  CAPTURE(ranks);
  auto const all = run<Subject>(ranks, what, gradient);
  double most = 0;
  for (auto const& rank : all) {
    for (auto const& call : rank) {
      most = std::max(most, call.total().words_sent());
    }
  }
  CHECK(most <= all[0][0].bound_words);
  CHECK(most >= (ranks == 1 ? 0 : used * all[0][0].bound_words));
}

template <class Subject>
void check_bound(double used = 0.4) {
  for (int const ranks : {1, 2, 3, 4, 7, 16}) {
    check_bound<Subject>(ranks, {20000, 1000, 12}, correlated{17, 6}, used);
  }
}

} // namespace oktopk_tests
