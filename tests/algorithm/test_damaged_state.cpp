// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A state with any number that no call can have left behind is refused, on every rank, whoever has it.

#include "algorithm/suite.hpp"
#include "support/policies.hpp"

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/algorithm/gtopk.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/algorithm/paper_ok_topk.hpp>
#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/algorithm/topk_dsa.hpp>
#include <oktopk/select/reused_threshold.hpp>
#include <oktopk/sgd.hpp>

#include <sstream>
#include <type_traits>

using namespace oktopk_tests;
using oktopk::fault;

namespace {

constexpr shape some_calls{120, 12, 5};

template <template <class> class Algorithm>
struct subject {
  using value_type = float;
  using index_type = std::int32_t;
  using communicator = counting;
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

/// Spoils a part of the state by `spoil(part(state))` on one rank, on each in turn, and on all; it is the state of
/// iteration 2.
template <class Subject, class Part, class Spoil>
void check_damage(char const* what, Part const& part, Spoil const& spoil) {
  for (int bad_rank = -1; bad_rank < 3; ++bad_rank) {
    CAPTURE(what, bad_rank);
    auto const on_rank = [&](auto& state, int rank, int) {
      if (bad_rank < 0 || rank == bad_rank) {
        spoil(part(state));
      }
    };
    CHECK(bad_state_fault<Subject>(3, some_calls, on_rank, fault::bad_state) == "");
  }
}

/// Magnitudes that are none, and ranges wider than any, of all magnitudes, the widest, and a negative one.
template <class Subject, class Part>
void check_damaged_guess(Part const& guess_of) {
  for (float const bad : {std::nanf(""), std::numeric_limits<float>::infinity(), -1.0F}) {
    CAPTURE(bad);
    check_damage<Subject>("magnitude", guess_of, [=](auto& guess) { guess.prefilter.magnitude = bad; });
    check_damage<Subject>("middle", guess_of, [=](auto& guess) { guess.bracket.magnitude = bad; });
  }
  for (int const bits : {25, 31, std::numeric_limits<std::int32_t>::max(), -1}) {
    CAPTURE(bits);
    check_damage<Subject>("range", guess_of, [=](auto& guess) { guess.bracket.bits = bits; });
  }
}

/// The same, thresholds that are none, and evaluations in the future, in the iteration to come and before the first.
template <class Subject, class Part>
void check_damaged_threshold(Part const& part) {
  for (float const bad : {std::nanf(""), std::numeric_limits<float>::infinity(), -0.5F}) {
    CAPTURE(bad);
    check_damage<Subject>("threshold", part, [=](auto& state) { state.threshold = bad; });
  }
  for (std::int64_t const bad : {1'000'000'000, 2, -2}) {
    CAPTURE(bad);
    check_damage<Subject>("evaluation", part, [=](auto& state) { state.evaluated = bad; });
  }
  check_damaged_guess<Subject>([=](auto& all) -> auto& { return part(all).guess; });
}

auto const local = [](auto& all) -> auto& { return all.local; };
auto const global = [](auto& all) -> auto& { return all.global; };

} // namespace

TEST_CASE("ok_topk refuses a damaged guess, local or global") {
  check_damaged_guess<subject<exact>>([](auto& all) -> auto& { return all.local.guess; });
  check_damaged_guess<subject<exact>>([](auto& all) -> auto& { return all.global.guess; });
}

TEMPLATE_TEST_CASE("thresholds that are reused refuse a damaged state", "", subject<reusing>, subject<paper>) {
  check_damaged_threshold<TestType>(local);
  check_damaged_threshold<TestType>(global);
}

TEMPLATE_TEST_CASE("schemes that only select locally refuse a damaged state", "", subject<topk_a>, subject<topk_dsa>,
                   subject<gtopk>) {
  check_damaged_threshold<TestType>(local);
}

TEST_CASE("a global state that is sound but not the same on all ranks is refused") {
  auto const check = [](char const* what, auto of, auto const& change) { // on rank 1 alone
    CAPTURE(what);
    auto const spoil = [&](auto& state, int rank, int) { rank == 1 ? change(state.global) : void(); };
    CHECK(bad_state_fault<decltype(of)>(3, some_calls, spoil, fault::ranks_disagree) == "");
  };
  check("magnitude, exact", subject<exact>(), [](auto& global) { global.guess.bracket.magnitude += 1; });
  check("range, exact", subject<exact>(), [](auto& global) { global.guess.bracket.bits = 7; });
  check("magnitude, reusing", subject<reusing>(), [](auto& global) { global.guess.bracket.magnitude += 1; });
  check("threshold", subject<reusing>(), [](auto& global) { global.threshold += 1; });
  check("evaluation", subject<reusing>(), [](auto& global) { global.evaluated -= 1; });
  auto const other_regions = [](auto& state, int rank, int) { state.boundaries[1] += rank == 1 ? 1 : 0; };
  auto const no_regions = [](auto& state, int rank, int) { state.boundaries.resize(rank == 1 ? 0 : 4); };
  CHECK(bad_state_fault<subject<exact>>(3, some_calls, other_regions, fault::ranks_disagree) == "");
  CHECK(bad_state_fault<subject<exact>>(3, some_calls, no_regions, fault::ranks_disagree) == "");
}

TEST_CASE("ok_topk refuses damaged boundaries") {
  auto const check = [](char const* what, auto const& spoil) {
    check_damage<subject<exact>>(
        what, [](auto& all) -> auto& { return all.boundaries; }, spoil);
  };
  check("one too few", [](auto& b) { b.pop_back(); });
  check("one too many", [](auto& b) { b.push_back(b.back()); });
  check("a first that is not 0", [](auto& b) { b.front() = 1; });
  check("a last that is not the length", [](auto& b) { b.back() += 1; });
  check("one that descends", [](auto& b) { b[1] = b[2] + 1; });
  check("a negative one", [](auto& b) { b[1] = -5; });
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
    std::string damaged = out.str();
    damaged[damaged.find("ok_topk (")] = '\x1b';
    auto const said = failure_of([&] {
      std::istringstream in(damaged);
      oktopk::load<exact<comm>::state_type>(in);
    });
    CHECK(said.text.find("the checkpoint holds a state of ?k_topk (local exact") != std::string::npos);
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
