// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A state with any number that no call can have left behind is refused, on every rank, whoever has it.

#include "algorithm/continuation.hpp"
#include "support/catch.hpp"
#include "support/policies.hpp"

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/algorithm/gtopk.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/algorithm/paper_ok_topk.hpp>
#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/algorithm/topk_dsa.hpp>
#include <oktopk/select/reused_threshold.hpp>
#include <oktopk/sgd.hpp>

#include <functional>
#include <sstream>
#include <type_traits>

using namespace oktopk_tests;
using oktopk::fault;

namespace {

constexpr shape some_calls{120, 12, 5};

template <class Subject>
using state_of = typename algorithm_of<Subject>::state_type;

template <template <class> class Algorithm>
struct subject {
  using value_type = float;
  using index_type = std::int32_t;
  template <class Comm>
  using algorithm = Algorithm<Comm>;

  static typename Algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {.length = length, .k = k};
  }
};

template <class Comm>
using exact = oktopk::ok_topk<execution, Comm>;
template <class Comm>
using reusing = oktopk::ok_topk<execution, Comm, reused_policies>;
template <class Comm>
using paper = oktopk::paper_ok_topk<execution, Comm>;
template <class Comm>
using topk_a = oktopk::topk_a<execution, Comm, policies_of<oktopk::coo<>, oktopk::reused_threshold>>;
template <class Comm>
using topk_dsa = oktopk::topk_dsa<execution, Comm, policies_of<oktopk::coo_or_dense<>, oktopk::reused_threshold>>;
template <class Comm>
using gtopk = oktopk::gtopk<execution, Comm, policies_of<oktopk::coo<>, oktopk::reused_threshold>>;

template <class Part>
using damage = std::pair<std::string, std::function<void(Part&)>>;

template <class Guess>
std::vector<damage<Guess>> damages_of_guess() {
  float const infinity = std::numeric_limits<float>::infinity();
  return {
      {"a magnitude that is NaN", [](Guess& guess) { guess.prefilter.magnitude = std::nanf(""); }},
      {"an infinite magnitude", [=](Guess& guess) { guess.prefilter.magnitude = infinity; }},
      {"a negative magnitude", [](Guess& guess) { guess.prefilter.magnitude = -1; }},
      {"a middle that is NaN", [](Guess& guess) { guess.bracket.magnitude = std::nanf(""); }},
      {"an infinite middle", [=](Guess& guess) { guess.bracket.magnitude = infinity; }},
      {"a negative middle", [](Guess& guess) { guess.bracket.magnitude = -1; }},
      {"a range wider than any", [](Guess& guess) { guess.bracket.bits = 25; }},
      {"a range of all magnitudes", [](Guess& guess) { guess.bracket.bits = 31; }},
      {"the widest range", [](Guess& guess) { guess.bracket.bits = std::numeric_limits<std::int32_t>::max(); }},
      {"a negative range", [](Guess& guess) { guess.bracket.bits = -1; }},
  };
}

template <class Threshold>
std::vector<damage<Threshold>> damages_of_threshold() {
  std::vector<damage<Threshold>> all = {
      {"a threshold that is NaN", [](Threshold& state) { state.threshold = std::nanf(""); }},
      {"an infinite threshold", [](Threshold& state) { state.threshold = std::numeric_limits<float>::infinity(); }},
      {"a negative threshold", [](Threshold& state) { state.threshold = -0.5F; }},
      {"an evaluation in the future", [](Threshold& state) { state.evaluated = 1'000'000'000; }},
      {"an evaluation in the iteration that is to come", [](Threshold& state) { state.evaluated = 2; }},
      {"an evaluation before the first", [](Threshold& state) { state.evaluated = -2; }},
  };
  for (auto const& [name, spoil] : damages_of_guess<decltype(Threshold::guess)>()) {
    all.push_back({name, [spoil = spoil](Threshold& state) { spoil(state.guess); }});
  }
  return all;
}

/// Spoils a part of the state on one rank, on each in turn, and on all; the state is that of iteration 2.
template <class Subject, class Part>
void check_damages(std::vector<damage<Part>> const& damages, std::function<Part&(state_of<Subject>&)> const& part) {
  for (auto const& [name, spoil] : damages) {
    CAPTURE(name);
    for (int bad_rank = -1; bad_rank < 3; ++bad_rank) {
      auto const on_rank = [&](auto& state, int rank, int) {
        if (bad_rank < 0 || rank == bad_rank) {
          spoil(part(state));
        }
      };
      CHECK(bad_state_fault<Subject>(3, some_calls, on_rank, fault::bad_state) == "");
    }
  }
}

} // namespace

TEST_CASE("ok_topk refuses a damaged guess, local or global") {
  using state = state_of<subject<exact>>;
  using guess = decltype(state::local.guess);
  check_damages<subject<exact>, guess>(damages_of_guess<guess>(), [](state& all) -> guess& { return all.local.guess; });
  check_damages<subject<exact>, guess>(damages_of_guess<guess>(),
                                       [](state& all) -> guess& { return all.global.guess; });
}

TEMPLATE_TEST_CASE("thresholds that are reused refuse a damaged state", "", subject<reusing>, subject<paper>) {
  using state = state_of<TestType>;
  using threshold = decltype(state::local);
  check_damages<TestType, threshold>(damages_of_threshold<threshold>(),
                                     [](state& all) -> threshold& { return all.local; });
  check_damages<TestType, threshold>(damages_of_threshold<threshold>(),
                                     [](state& all) -> threshold& { return all.global; });
}

TEMPLATE_TEST_CASE("schemes that only select locally refuse a damaged state", "", subject<topk_a>, subject<topk_dsa>,
                   subject<gtopk>) {
  using state = state_of<TestType>;
  using threshold = decltype(state::local);
  check_damages<TestType, threshold>(damages_of_threshold<threshold>(),
                                     [](state& all) -> threshold& { return all.local; });
}

TEST_CASE("a global state that is sound but not the same on all ranks is refused") {
  auto const differs = [](auto const& change) {
    return [=](auto& state, int rank, int) {
      if (rank == 1) {
        change(state.global);
      }
    };
  };
  auto const other_magnitude = differs([](auto& global) { global.guess.bracket.magnitude += 1; });
  auto const other_range = differs([](auto& global) { global.guess.bracket.bits = 7; });
  auto const other_threshold = differs([](auto& global) { global.threshold += 1; });
  auto const other_time = differs([](auto& global) { global.evaluated -= 1; });
  CHECK(bad_state_fault<subject<exact>>(3, some_calls, other_magnitude, fault::ranks_disagree) == "");
  CHECK(bad_state_fault<subject<exact>>(3, some_calls, other_range, fault::ranks_disagree) == "");
  CHECK(bad_state_fault<subject<reusing>>(3, some_calls, other_magnitude, fault::ranks_disagree) == "");
  CHECK(bad_state_fault<subject<reusing>>(3, some_calls, other_threshold, fault::ranks_disagree) == "");
  CHECK(bad_state_fault<subject<reusing>>(3, some_calls, other_time, fault::ranks_disagree) == "");
  auto const other_regions = [](auto& state, int rank, int) { state.boundaries[1] += rank == 1 ? 1 : 0; };
  auto const no_regions = [](auto& state, int rank, int) { state.boundaries.resize(rank == 1 ? 0 : 4); };
  CHECK(bad_state_fault<subject<exact>>(3, some_calls, other_regions, fault::ranks_disagree) == "");
  CHECK(bad_state_fault<subject<exact>>(3, some_calls, no_regions, fault::ranks_disagree) == "");
}

TEST_CASE("ok_topk refuses damaged boundaries") {
  using state = state_of<subject<exact>>;
  using boundaries = std::vector<std::int64_t>;
  std::vector<damage<boundaries>> const damages = {
      {"one too few", [](boundaries& b) { b.pop_back(); }},
      {"one too many", [](boundaries& b) { b.push_back(b.back()); }},
      {"a first that is not 0", [](boundaries& b) { b.front() = 1; }},
      {"a last that is not the length", [](boundaries& b) { b.back() += 1; }},
      {"one that descends", [](boundaries& b) { b[1] = b[2] + 1; }},
      {"a negative one", [](boundaries& b) { b[1] = -5; }},
  };
  check_damages<subject<exact>, boundaries>(damages, [](state& all) -> boundaries& { return all.boundaries; });
}

TEST_CASE("a checkpoint of one scheme is not read as that of another") {
  using comm = oktopk::in_process_communicator;
  oktopk::in_process::run(1, [](comm alone) {
    exact<comm> sparse(execution(), alone, {.length = 100, .k = 10});
    sparse(to_view(std::vector<float>(100, 1.0F)));
    std::ostringstream out;
    oktopk::save(out, sparse.state());
    auto const reading = [&](auto const& which) {
      using other = std::remove_cvref_t<decltype(which)>;
      return failure_of([&] {
        std::istringstream in(out.str());
        oktopk::load<other>(in);
      });
    };
    CHECK(reading(exact<comm>::state_type()).code == fault::none);
    for (auto const& heard :
         {reading(reusing<comm>::state_type()), reading(paper<comm>::state_type()), reading(topk_a<comm>::state_type()),
          reading(oktopk::dense<execution, comm>::state_type()), reading(oktopk::sgd<exact<comm>>::state_type()),
          reading(oktopk::ok_topk<execution, comm, oktopk::with_format<oktopk::coo<double>>>::state_type())}) {
      CHECK(heard.code == fault::bad_file);
      CHECK(heard.text.find("the checkpoint holds a state of ok_topk (local exact, global exact, 32-bit values)") !=
            std::string::npos);
    }
  });
}

TEST_CASE("sgd refuses a residual that is not finite") {
  using comm = oktopk::in_process_communicator;
  for (float const bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    auto const heard = failures_of(3, [&](comm ranks) {
      exact<comm> allreduce(execution(), ranks, {.length = 100, .k = 10});
      oktopk::sgd<exact<comm>> optimizer(execution(), allreduce, {});
      auto saved = optimizer.state();
      saved.residual[7] = ranks.rank() == 1 ? bad : 0;
      optimizer.restore(saved);
    });
    CHECK(unlike(heard, fault::bad_state, "rank 1: ") == "");
  }
}
