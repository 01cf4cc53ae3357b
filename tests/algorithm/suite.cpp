// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/suite.hpp"

#include "fuzz/checks/checks.hpp"

#include <oktopk/partition/regions.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace oktopk_tests {

namespace {

using oktopk::fault;
using oktopk::detail::fault_subject;
using oktopk_fuzz::fuzz_case;
using oktopk_fuzz::handed_over;
using oktopk_fuzz::state_numbers;
using oktopk_fuzz::value_type;
using oktopk_fuzz::way;

fuzz_case case_of(subject const& of, int ranks, shape what) {
  fuzz_case made;
  made.values = of.about.values;
  made.ranks = ranks;
  made.k = of.about.is_dense() ? what.length : what.k;
  made.how = {.length = what.length, .k = what.k, .density = {}};
  return made;
}

std::string at(std::size_t iteration) {
  return "iteration " + std::to_string(iteration) + ": ";
}

// What a check finds, in words.
template <class Check>
std::string found(Check const& check) {
  auto const wrong = oktopk_fuzz::found_by(check);
  return wrong ? "[" + wrong->check + "] " + wrong->text : std::string();
}

/// The first fault of some checks.
template <class... Checks>
std::string first_of(Checks const&... checks) {
  std::string fault;
  (void)((fault = checks(), !fault.empty()) || ...);
  return fault;
}

struct special_input {
  std::string name;
  shape what;
  filling gradient;
};

std::vector<special_input> special_inputs(oktopk_fuzz::facts const& about) {
  value_type const& values = about.values;
  // The code of doubles in 16 bits has the exponents of a float.
  int const most_exponent = about.codec() == oktopk_fuzz::rounding::bfloat16 ? 127 : values.most_exponent;
  whole_numbers const whole{7};
  auto const each = [](auto const& value_at) { // each element by itself, of its number
    return [=](moment when, numbers& gradient) {
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        gradient[i] = static_cast<double>(value_at(when, i));
      }
    };
  };
  auto const scaled = [=](auto const& factor) { // whole numbers, each times its factor
    return [=](moment when, numbers& gradient) {
      whole(when, gradient);
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        int const times = factor(when, i);
        gradient[i] = times == 0 ? 0 : gradient[i] * times;
      }
    };
  };
  auto const everywhere = [=](int value) { return each([=](moment, std::size_t) { return value; }); };
  auto const small_number = [](moment when, std::size_t i, std::int64_t most) {
    auto const bits = noise(11, static_cast<std::uint64_t>(when.rank), static_cast<std::uint64_t>(when.iteration), i);
    return static_cast<double>(number_in(-most, most, bits));
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
         return i % 200 == 0 ? small_number(when, i, 9) : 0;
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
       [=](moment when, numbers& gradient) {
         whole({when.rank / 2, when.ranks, when.iteration}, gradient);
         for (double& x : gradient) {
           x = when.rank % 2 == 0 ? x : -x;
         }
       }},
      {"denormal numbers", {100, 10, 5}, each([=](moment when, std::size_t i) {
         return small_number(when, i, 40) * values.denormal;
       })},
      {"negative zeros", {100, 20, 5}, each([=](moment when, std::size_t i) {
         return i % 9 == 0 ? small_number(when, i, 5) : i % 2 == 0 ? -0.0 : 0.0;
       })},
      {"magnitudes from the smallest to nearly the largest", {200, 60, 4}, each([=](moment when, std::size_t i) {
         auto const bits = noise(13, static_cast<std::uint64_t>(when.rank), i);
         auto const least = static_cast<std::int64_t>(std::ilogb(values.least)) + 1;
         return std::ldexp(bits % 2 == 0 ? 1.0 : -1.0, static_cast<int>(number_in(least, most_exponent - 11, bits)));
       })},
      {"gradients that jump to ten times and to a tenth", {1400, 25, 12}, scaled([](moment when, std::size_t) {
         return when.iteration % 5 == 3 ? 1000 : when.iteration % 5 == 4 ? 1 : 100;
       })},
  };
}

/// How an accumulator is spoilt on some ranks, and what every rank must then say.
struct bad_accumulator {
  std::string name;
  std::function<void(moment, handed_over&)> spoil;
  fault code;
  std::function<std::string(int ranks)> words;
};

std::vector<bad_accumulator> bad_accumulators(std::int64_t length) {
  auto const last = [](int ranks) { return "rank " + std::to_string(ranks - 1) + ": "; };
  auto const n = static_cast<std::size_t>(length);
  auto const put = [last](double what, std::size_t where, char const* name) {
    return bad_accumulator{name,
                           [=](moment when, handed_over& a) {
                             if (when.rank == when.ranks - 1) {
                               a.gradient[where] = what;
                             }
                           },
                           fault::non_finite,
                           [=](int ranks) { return last(ranks) + "the value at index " + std::to_string(where); }};
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return {
      {"one too long on the last rank",
       [=](moment when, handed_over& a) { a.gradient.resize(n + (when.rank == when.ranks - 1 ? 1 : 0), 1); },
       fault::length_mismatch,
       [=](int ranks) {
         return last(ranks) + "the accumulator has " + std::to_string(n + 1) + " elements, expected " +
                std::to_string(n);
       }},
      {"one too short on all ranks", [=](moment, handed_over& a) { a.gradient.resize(n - 1); }, fault::length_mismatch,
       [=](int) { return "rank 0: the accumulator has " + std::to_string(n - 1); }},
      {"empty on rank 0", [=](moment when, handed_over& a) { a.gradient.resize(when.rank == 0 ? 0 : n); },
       fault::length_mismatch, [](int) { return std::string("rank 0: the accumulator has 0 elements"); }},
      {"with a stride on the last rank", [](moment when, handed_over& a) { a.strided = when.rank == when.ranks - 1; },
       fault::not_contiguous, [=](int ranks) { return last(ranks) + "the accumulator is not contiguous"; }},
      put(nan, 0, "NaN"),
      put(-nan, n - 1, "negative NaN"),
      put(infinity, n / 2, "infinity"),
      put(-infinity, n / 3, "negative infinity"),
      {"NaN everywhere on all ranks", [=](moment, handed_over& a) { a.gradient.assign(a.gradient.size(), nan); },
       fault::non_finite, [](int) { return std::string("rank 0: the value at index 0 "); }},
      {"all ranks bad, each in its own way",
       [=](moment when, handed_over& a) {
         a.gradient[static_cast<std::size_t>(when.rank) % n] = infinity;
         if (when.rank % 2 == 1) {
           a.gradient.resize(n + 7);
         }
       },
       fault::non_finite, [](int) { return std::string("rank 0: the value at index 0 "); }},
      {"the last rank has no accumulator",
       [](moment when, handed_over& a) {
         a.fails.code = when.rank == when.ranks - 1 ? fault::bad_file : fault::none;
         a.fails.subject = fault_subject::rank;
       },
       fault::bad_file,
       [=](int ranks) {
         return last(ranks) + "it has no accumulator for this call, because of an error on that rank: bad_file";
       }},
      {"all ranks fail, each in its own way",
       [=](moment when, handed_over& a) {
         a.fails = {when.rank == 0 ? fault::length_mismatch : fault::caller_failed, 77};
       },
       fault::length_mismatch, [](int) { return std::string("rank 0: the accumulator has 77 elements"); }},
      {"a communicator's error of rank 0, which is none of the call",
       [](moment when, handed_over& a) { a.fails.code = when.rank == 0 ? fault::timed_out : fault::none; },
       fault::caller_failed, [](int) { return std::string("rank 0: caller_failed"); }},
  };
}

} // namespace

calls_of_ranks run(subject const& of, int ranks, shape what, filling const& gradient, run_options const& how) {
  calls_of_ranks all(static_cast<std::size_t>(ranks));
  fuzz_case const drawn = case_of(of, ranks, what);
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator inner) {
    oktopk::any_communicator const comm = how.transport ? how.transport(inner) : oktopk::any_communicator(inner);
    std::function<std::unique_ptr<participant>()> const make = [&] { return of.make(comm, drawn.how, way::bare, 1); };
    auto allreduce = make();
    auto& mine = all[static_cast<std::size_t>(inner.rank())];
    numbers residual(static_cast<std::size_t>(what.length), 0);
    numbers weights = residual;
    for (int iteration = 0; iteration < what.iterations; ++iteration) {
      moment const now{inner.rank(), ranks, iteration};
      numbers accumulator(residual.size());
      gradient(now, accumulator);
      for (std::size_t i = 0; i < residual.size(); ++i) {
        accumulator[i] = drawn.values.rounded(drawn.values.rounded(accumulator[i]) + residual[i]);
      }
      if (how.before) {
        how.before({allreduce, make, now, accumulator});
      }
      mine.push_back(allreduce->call({accumulator, what.length}, weights));
      if (mine.back().threw()) {
        throw oktopk::error(mine.back().said.code, mine.back().said.text);
      }
      residual = oktopk_fuzz::left_over(drawn, mine.back(), accumulator);
    }
  });
  return all;
}

std::string run_fault(subject const& of, calls_of_ranks const& run, shape what) {
  fuzz_case const drawn = case_of(of, static_cast<int>(run.size()), what);
  std::string fault;
  for (std::size_t i = 0; i < run.front().size() && fault.empty(); ++i) {
    std::vector<call_record> ranks;
    for (auto const& rank : run) {
      ranks.push_back(rank[i]);
    }
    fault = found([&] { oktopk_fuzz::check_call({of.about, drawn, std::move(ranks)}); });
    fault = fault.empty() ? fault : at(i) + fault;
  }
  return fault;
}

std::string repetition_fault(subject const& of, calls_of_ranks once, calls_of_ranks again, bool in_the_same_bytes) {
  for (std::size_t rank = 0; rank < once.size() && of.about.promised.repeats; ++rank) {
    for (std::size_t i = 0; i < once[rank].size(); ++i) {
      if (!in_the_same_bytes) {
        once[rank][i].traffic = again[rank][i].traffic;
      }
      std::string const fault = found([&] { oktopk_fuzz::expect_same("repetition", once[rank][i], again[rank][i]); });
      if (!fault.empty()) {
        return "rank " + std::to_string(rank) + ", " + at(i) + fault;
      }
    }
  }
  return {};
}

std::string repeated_run_fault(subject const& of, int ranks, shape what, filling const& gradient,
                               run_options const& how) {
  auto const once = run(of, ranks, what, gradient, how);
  return first_of([&] { return run_fault(of, once, what); },
                  [&] { return repetition_fault(of, once, run(of, ranks, what, gradient, how)); });
}

std::string special_input_fault(subject const& of, int ranks, run_options const& how) {
  for (special_input const& input : special_inputs(of.about)) {
    std::string fault;
    try {
      fault = run_fault(of, run(of, ranks, input.what, input.gradient, how), input.what);
    } catch (std::exception const& thrown) {
      fault = thrown.what();
    }
    if (!fault.empty()) {
      return input.name + ": " + fault;
    }
  }
  return {};
}

std::string bad_accumulator_fault(subject const& of, int ranks, shape what, run_options const& how) {
  whole_numbers const gradient{5, 4};
  auto const twin = run(of, ranks, what, gradient, how);
  auto const cases = bad_accumulators(what.length);
  for (int bad_at = 0; bad_at < what.iterations; ++bad_at) {
    for (bad_accumulator const& bad : cases) {
      std::vector<outcome> said(static_cast<std::size_t>(ranks));
      run_options with_bad = how;
      with_bad.before = [&](before_call const& at) {
        if (at.now.iteration == bad_at) {
          handed_over spoilt{at.accumulator, what.length};
          bad.spoil(at.now, spoilt);
          numbers weights(static_cast<std::size_t>(what.length), 0);
          said[static_cast<std::size_t>(at.now.rank)] = at.allreduce->call(spoilt, weights).said;
        }
      };
      auto const all = run(of, ranks, what, gradient, with_bad);
      std::string const fault = first_of([&] { return unlike(said, bad.code, bad.words(ranks)); },
                                         [&] { return repetition_fault(of, twin, all); });
      if (!fault.empty()) {
        return bad.name + ", before " + at(static_cast<std::size_t>(bad_at)) + fault;
      }
    }
  }
  return {};
}

std::string overflow_fault(subject const& of, int ranks, shape what) {
  auto const place = static_cast<std::size_t>(what.length) - 2;
  auto const said = [&](bool last_is_bad) {
    std::vector<outcome> all(static_cast<std::size_t>(ranks));
    run(of, ranks, what, whole_numbers{5}, {.before = [&](before_call const& at) {
          numbers accumulator = at.accumulator;
          accumulator[place] = of.about.values.most;
          if (last_is_bad && at.now.rank == ranks - 1) {
            accumulator[0] = std::numeric_limits<double>::quiet_NaN();
          }
          numbers weights(accumulator.size(), 0);
          all[static_cast<std::size_t>(at.now.rank)] = at.allreduce->call({accumulator, what.length}, weights).said;
        }});
    return all;
  };
  std::string const blamed = "rank " + std::to_string(ranks - 1) + ": the value at index 0";
  return first_of([&] { return unlike(said(false), fault::non_finite, "index " + std::to_string(place)); },
                  [&] { return unlike(said(false), fault::non_finite, "sum"); },
                  [&] { return unlike(said(true), fault::non_finite, blamed); });
}

std::string no_length_fault(subject const& of, int ranks) {
  for (int bad_rank = 0; bad_rank < ranks; ++bad_rank) {
    std::vector<outcome> said(static_cast<std::size_t>(ranks));
    run(of, ranks, {0, 0, 1}, whole_numbers{}, {.before = [&](before_call const& at) {
          handed_over const given{numbers(at.now.rank == bad_rank ? 3 : 0, 1)};
          numbers weights;
          said[static_cast<std::size_t>(at.now.rank)] = at.allreduce->call(given, weights).said;
        }});
    std::string const words = "rank " + std::to_string(bad_rank) + ": the accumulator has 3 elements, expected 0";
    if (auto const fault = unlike(said, fault::length_mismatch, words); !fault.empty()) {
      return "no length: " + fault;
    }
  }
  return {};
}

std::string continuation_fault(subject const& of, int ranks, shape what) {
  whole_numbers const gradient{9, 6};
  auto const restored_at = [&](int saved_at) {
    return run(of, ranks, what, gradient, {.before = [=](before_call const& at) {
                 if (at.now.iteration == 0) { // schemes without tags send more where there is another object
                   at.make();
                 }
                 if (at.now.iteration == saved_at) {
                   std::string const saved = at.allreduce->save();
                   at.allreduce = at.make();
                   at.allreduce->load(saved);
                 }
               }});
  };
  auto const whole = restored_at(-1);
  for (int saved_at = 0; saved_at < what.iterations; ++saved_at) {
    if (auto const fault = repetition_fault(of, whole, restored_at(saved_at)); !fault.empty()) {
      return "restored before iteration " + std::to_string(saved_at) + ": " + fault;
    }
  }
  return {};
}

std::string bad_state_fault(subject const& of, int ranks, shape what, spoiling const& spoil, fault code) {
  whole_numbers const gradient{9};
  std::vector<outcome> said(static_cast<std::size_t>(ranks));
  auto const all = run(of, ranks, what, gradient, {.before = [&](before_call const& at) {
                         if (at.now.iteration == 2) {
                           state_numbers saved = at.allreduce->state();
                           if (saved.boundaries.empty()) { // after uneven regions
                             saved.boundaries.resize(static_cast<std::size_t>(ranks) + 1);
                             oktopk::detail::even_regions(what.length, saved.boundaries);
                           }
                           spoil(saved, at.now.rank);
                           said[static_cast<std::size_t>(at.now.rank)] =
                               outcome_of([&] { at.allreduce->restore(saved); });
                         }
                       }});
  return first_of([&] { return unlike(said, code, ""); },
                  [&] { return repetition_fault(of, run(of, ranks, what, gradient), all); });
}

std::string damaged_state_fault(subject const& of) {
  constexpr int ranks = 3;
  constexpr shape some_calls{120, 12, 4};
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  std::string wrong;
  // On each rank in turn, and on all (-1).
  auto const refuse = [&](std::string const& what, fault code, auto const& spoil, int first, int end) {
    for (int bad_rank = first; bad_rank < end && wrong.empty(); ++bad_rank) {
      wrong = bad_state_fault(
          of, ranks, some_calls,
          [&](state_numbers& state, int rank) {
            if (bad_rank < 0 || rank == bad_rank) {
              spoil(state);
            }
          },
          code);
      wrong = wrong.empty() ? wrong : what + " of rank " + std::to_string(bad_rank) + ": " + wrong;
    }
  };
  auto const bad = [&](std::string const& what, auto const& spoil) {
    refuse(what, fault::bad_state, spoil, -1, ranks);
  };
  auto const differs = [&](std::string const& what, auto const& spoil) {
    refuse(what, fault::ranks_disagree, spoil, 1, 2);
  };
  for (std::int64_t const iteration : {std::int64_t(-1), std::numeric_limits<std::int64_t>::max()}) {
    bad("the iteration", [=](state_numbers& state) { state.iteration = iteration; });
  }
  differs("another iteration", [](state_numbers& state) { state.iteration += 1; });
  state_numbers has;
  run(of, 1, some_calls, whole_numbers{9}, {.before = [&](before_call const& at) { has = at.allreduce->state(); }});
  for (auto const which : {&state_numbers::local, &state_numbers::global}) {
    std::string const name = which == &state_numbers::local ? "the local " : "the global ";
    auto const spoil = [&](std::string const& part, auto const& with) {
      bad(name + part, [=](state_numbers& state) { with(state.*which); });
    };
    using selector = oktopk_fuzz::selector_numbers;
    for (double const value : {nan, infinity, -1.0}) {
      if ((has.*which).has_guess) {
        spoil("guess of one rank", [=](selector& one) { one.prefilter = value; });
        spoil("guess", [=](selector& one) { one.magnitude = value; });
      }
      if ((has.*which).has_threshold) {
        spoil("threshold", [=](selector& one) { one.threshold = value; });
      }
    }
    for (std::int64_t const width :
         {std::int64_t(8 * of.about.values.bytes - 1), std::int64_t(1000), std::int64_t(-1)}) {
      if ((has.*which).has_guess) {
        spoil("width", [=](selector& one) { one.bits = width; });
      }
    }
    for (std::int64_t const when : {1'000'000'000, 2, -2}) {
      if ((has.*which).has_threshold) {
        spoil("evaluation", [=](selector& one) { one.evaluated = when; });
      }
    }
  }
  if (has.global.has_guess) { // sound, but not the same on all ranks
    differs("the global guess", [](state_numbers& state) { state.global.magnitude += 1; });
    differs("the global width", [](state_numbers& state) { state.global.bits = state.global.bits == 7 ? 6 : 7; });
  }
  if (has.global.has_threshold) {
    differs("the global threshold", [](state_numbers& state) { state.global.threshold += 1; });
    differs("the global evaluation", [](state_numbers& state) { state.global.evaluated -= 1; });
  }
  if (has.has_boundaries) {
    using boundaries = std::vector<std::int64_t>;
    auto const spoil = [&](std::string const& what, auto const& with) {
      bad(what, [=](state_numbers& state) { with(state.boundaries); });
    };
    spoil("one boundary too few", [](boundaries& b) { b.pop_back(); });
    spoil("one boundary too many", [](boundaries& b) { b.push_back(b.back()); });
    spoil("a first boundary that is not 0", [](boundaries& b) { b.front() = 1; });
    spoil("a last boundary that is not the length", [](boundaries& b) { b.back() += 1; });
    spoil("a boundary that descends", [](boundaries& b) { b[1] = b[2] + 1; });
    spoil("a negative boundary", [](boundaries& b) { b[1] = -5; });
    differs("a boundary", [](state_numbers& state) { state.boundaries[1] += 1; });
    differs("no boundaries", [](state_numbers& state) { state.boundaries.clear(); });
  }
  return wrong;
}

std::string bound_fault(subject const& of, int ranks, shape what, correlated const& gradient, double used) {
  double most = 0;
  double bound = 0;
  for (auto const& rank : run(of, ranks, what, gradient)) {
    for (call_record const& call : rank) {
      most = std::max(most, call.words());
      bound = call.bound_words;
      if (call.words() > call.bound_words) {
        return std::to_string(call.words()) + " words, more than the bound " + std::to_string(call.bound_words);
      }
    }
  }
  return ranks == 1 || most >= used * bound
             ? std::string()
             : "no call takes more than " + std::to_string(most) + " words of the bound " + std::to_string(bound);
}

std::string algorithm_fault(subject const& of, int ranks, run_options const& how) {
  std::string const fault = first_of(
      [&] {
        return repeated_run_fault(of, ranks, {230, 23, 6}, whole_numbers{1, 4}, how);
      },
      [&] {
        return repeated_run_fault(of, ranks, {2600, 37, 6}, correlated{3, 4}, how);
      }, // selectors guess
      [&] { return special_input_fault(of, ranks, how); },
      [&] {
        return bad_accumulator_fault(of, ranks, {90, 9, 3}, how);
      },
      [&] { return no_length_fault(of, ranks); });
  return fault.empty() ? fault : std::to_string(ranks) + " ranks: " + fault;
}

} // namespace oktopk_tests
