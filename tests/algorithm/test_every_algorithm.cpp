// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Every algorithm of the catalogue with every value of its options passes the suite, and so does what has no text. What
// enters the catalogue is here by itself. Pairs of options are tried by tests/fuzz and tests/simulate.

#include "algorithm/suite.hpp"
#include "support/catch.hpp"
#include "support/pairwise.hpp"

using namespace oktopk_tests;

namespace {

// Test cases that take seconds share the subjects.
constexpr std::size_t parts = 8;

std::vector<subject> const& all_subjects() {
  static std::vector<subject> const all = [] {
    auto made = oktopk_fuzz::typed_subjects();
    for (std::string const& text : oktopk_fuzz::texts(false)) {
      made.push_back(subject_of(text));
    }
    return made;
  }();
  return all;
}

/// Checks every subject of a part.
template <class Fault>
void check_part(std::size_t part, Fault const& fault_of) {
  auto const& all = all_subjects();
  for (std::size_t i = part; i < all.size(); i += parts) {
    INFO(all[i].about.name);
    CHECK(fault_of(all[i]) == "");
  }
}

// Numbers of ranks that differ from subject to subject: all of `rank_counts` occur.
int few_ranks(subject const& of) {
  return rank_counts[std::hash<std::string>()(of.about.name) % 5];
}
int many_ranks(subject const& of) {
  return rank_counts[5 + std::hash<std::string>()(of.about.name) % (std::size(rank_counts) - 5)];
}

} // namespace

TEMPLATE_TEST_CASE_SIG("every algorithm and policy keeps its promises", "", ((std::size_t Part), Part), 0, 1, 2, 3, 4,
                       5, 6, 7) {
  check_part(Part, [](subject const& of) {
    std::string const fault = algorithm_fault(of, few_ranks(of));
    return fault.empty() ? repeated_run_fault(of, many_ranks(of), {230, 23, 6}, whole_numbers{1, 4}) : fault;
  });
}

TEMPLATE_TEST_CASE_SIG("every algorithm and policy goes on from a saved state, and refuses a damaged one", "",
                       ((std::size_t Part), Part), 0, 1, 2, 3, 4, 5, 6, 7) {
  check_part(Part, [](subject const& of) {
    std::string const fault = continuation_fault(of, few_ranks(of), {120, 12, 6});
    return fault.empty() ? damaged_state_fault(of) : fault;
  });
}

TEST_CASE("every algorithm finds sums that overflow") {
  for (auto const& algorithm : oktopk::list_allreduces()) {
    for (int const ranks : {2, 3, 5, 8}) {
      auto const of = subject_of(algorithm.name);
      INFO(algorithm.name << " on " << ranks << " ranks");
      CHECK(overflow_fault(of, ranks, {90, 9, 1}) == "");
    }
  }
}

TEST_CASE("every algorithm keeps its promises on every number of ranks, in long calls as well") {
  for (auto const& algorithm : oktopk::list_allreduces()) {
    auto const of = subject_of(algorithm.name);
    for (int const ranks : rank_counts) {
      INFO(algorithm.name << " on " << ranks << " ranks");
      CHECK(repeated_run_fault(of, ranks, {2600, 37, 5}, correlated{3, 3}) == "");
    }
  }
}

TEST_CASE("special inputs of ok_topk on many ranks, whose regions and parts are uneven then") {
  for (char const* const text : {"ok_topk", "ok_topk(local=reused, global=reused, ratio=1)", "paper_ok_topk"}) {
    for (int const ranks : {4, 8, 13}) {
      INFO(text << " on " << ranks << " ranks");
      CHECK(special_input_fault(subject_of(text), ranks) == "");
    }
  }
}

TEST_CASE("bounds hold where selections are even, and say something") {
  for (auto const& [text, used] :
       {std::pair("ok_topk(local=reused(tau_prime=4), global=reused(tau_prime=4), partition=sampled(tau=5))", 0.4),
        {"ok_topk(partition=uniform, bucket=2)", 0.4},
        {"ok_topk(partition=balanced(tau=3), bucket=1)", 0.4},
        {"ok_topk(format=packed)", 0.3},
        {"topk_dsa(bucket=2)", 0.01},
        {"dense", 0.4}}) {
    for (int const ranks : {1, 2, 3, 4, 7, 16}) {
      INFO(text << " on " << ranks << " ranks");
      CHECK(bound_fault(subject_of(text), ranks, {20000, 1000, 12}, correlated{17, 6}, used) == "");
    }
  }
}

TEST_CASE("ok_topk with reused thresholds keeps everything over the default periods") {
  subject const of = subject_of("ok_topk(local=reused, global=reused)");
  for (int const ranks : {3, 4}) {
    shape const what{4000, 400, 140};
    CHECK(run_fault(of, run(of, ranks, what, correlated{23, 90}), what) == "");
  }
  CHECK(bound_fault(of, 4, {10000, 1000, 70}, correlated{19, 35}, 0.4) == "");
}

TEST_CASE("paper_ok_topk keeps its bound, when thresholds are evaluated too") {
  subject const of = subject_of("paper_ok_topk(tau_prime=4, tau=5)");
  for (int const ranks : {2, 3, 4, 7, 16}) {
    CAPTURE(ranks);
    run(of, ranks, {20000, 1000, 8}, correlated{17},
        {.before = [](before_call const& at) { // without what is left over, so that the threshold stays
          numbers weights(20000, 0);
          numbers gradient(20000);
          correlated{17}({at.now.rank, at.now.ranks, 0}, gradient);
          for (int call = 0; at.now.iteration == 0 && call < 8; ++call) {
            auto const seen = at.allreduce->call({gradient, 20000}, weights);
            CHECK(seen.statistics.global_reevaluated == (call % 4 == 0));
            CHECK(seen.statistics.global_selected == 1000);
            CHECK(seen.words() <= seen.bound_words);
          }
        }});
  }
}

TEST_CASE("shorter messages of exact values give the bits of COO") {
  for (char const* const name : {"ok_topk", "gtopk", "topk_a", "topk_dsa"}) {
    subject const coo = subject_of(std::string(name) + "(format=coo)");
    for (int const ranks : {1, 2, 5, 8}) {
      for (shape const what : {shape{230, 23, 6}, shape{20000, 600, 3}}) {
        auto const expected = run(coo, ranks, what, correlated{5, 3});
        for (char const* const format : {"(format=packed)", "(format=gap16)"}) {
          subject const of = subject_of(name + std::string(format));
          INFO(of.about.name << " on " << ranks << " ranks");
          CHECK(repetition_fault(of, run(of, ranks, what, correlated{5, 3}), expected, false) == "");
        }
      }
    }
  }
}

TEST_CASE("dense algorithms that round nothing send not one byte beside the allreduce itself") {
  for (auto const& algorithm : oktopk::list_allreduces()) {
    subject const of = subject_of(algorithm.name);
    if (of.about.kind != oktopk_fuzz::family::dense || !of.about.lossless()) {
      continue;
    }
    for (auto const& rank : run(of, 5, {230, 23, 3}, correlated{5, 3})) {
      for (call_record const& call : rank) {
        INFO(algorithm.name);
        CHECK(call.traffic[static_cast<std::size_t>(oktopk::phase::control)].bytes_sent == 0);
        CHECK(call.words() > 0);
      }
    }
  }
}

TEST_CASE("gtopk as published gives the same updates, and loses what it drops") {
  subject const published = subject_of("gtopk(return_dropped=false)");
  subject conserving = published;
  conserving.about.kind = oktopk_fuzz::family::other; // of which the checks know that it shall lose nothing
  shape const what{230, 23, 6};
  for (int const ranks : rank_counts) {
    CAPTURE(ranks);
    auto const all = run(published, ranks, what, whole_numbers{1, 3});
    CHECK(run_fault(published, all, what) == "");
    bool const lost = run_fault(conserving, all, what).find("[conservation]") != std::string::npos;
    CHECK(lost == (ranks > 2)); // with two ranks all branches meet in the root
  }
}

TEST_CASE("every value of an option, every two of them and every algorithm stand in a text of the pairs") {
  std::size_t texts = 0;
  for (auto const& algorithm : oktopk::list_allreduces()) {
    auto const options = options_of(algorithm);
    auto const covered = covering(options, true);
    texts += covered.size();
    INFO(algorithm.name);
    REQUIRE(!covered.empty());
    CHECK(text_of(algorithm.name, options, covered.front()) == algorithm.name);
    for (std::size_t i = 0; i < options.size(); ++i) {
      for (std::size_t j = i + 1; j < options.size(); ++j) {
        for (std::size_t a = 0; a < options[i].values.size(); ++a) {
          for (std::size_t b = 0; b < options[j].values.size(); ++b) {
            // Two options of one choice go together if a value of the choice has both.
            auto const choices_of = [&](text_option const& one, text_option const& other, std::string const& value) {
              return one.of == other.key && other.of.empty() ? oktopk::detail::has(one.choices, value) : true;
            };
            bool const has_both =
                options[i].of.empty() || options[i].of != options[j].of ||
                std::any_of(options[i].choices.begin(), options[i].choices.end(),
                            [&](std::string const& each) { return oktopk::detail::has(options[j].choices, each); });
            bool const possible = has_both && choices_of(options[i], options[j], options[j].values[b]) &&
                                  choices_of(options[j], options[i], options[i].values[a]);
            bool const there = std::any_of(covered.begin(), covered.end(),
                                           [&](chosen_values const& each) { return each[i] == a && each[j] == b; });
            INFO(options[i].key << "=" << options[i].values[a] << ", " << options[j].key << "="
                                << options[j].values[b]);
            CHECK(there == possible);
          }
        }
      }
    }
    for (chosen_values const& each : covered) {
      for (std::size_t i = 0; i < options.size(); ++i) { // an option is there if its choice is
        std::size_t const parent = oktopk_tests::detail::place_of(options, options[i].of);
        CHECK(each[i].has_value() ==
              (options[i].of.empty() ||
               oktopk::detail::has(options[i].choices, options[parent].values[each[parent].value()])));
      }
    }
  }
  CHECK(texts < 400); // few enough for all of them to be tried in a minute
}
