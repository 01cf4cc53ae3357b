// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Every algorithm of the catalogue with every value of its options passes the suite, and so does what has no text. What
// enters the catalogue is here by itself. Pairs of options are tried by tests/fuzz and tests/simulate.

#include "algorithm/suite.hpp"
#include "support/catch.hpp"
#include "support/pairwise.hpp"

#include <fstream>
#include <iterator>
#include <sstream>

using namespace oktopk_tests;

namespace {

/// What is promised of one, on numbers of ranks that differ from subject to subject: all of `rank_counts` occur.
void check(subject const& of, std::size_t number) {
  int const few = rank_counts[number % 5];
  int const many = rank_counts[5 + number % (std::size(rank_counts) - 5)];
  CAPTURE(few, many);
  CHECK(algorithm_fault(of, few) == "");
  CHECK(repeated_run_fault(of, many, {230, 23, 6}, whole_numbers{1, 4}) == "");
  CHECK(continuation_fault(of, few, {120, 12, 6}) == "");
  CHECK(damaged_state_fault(of) == "");
}

/// A test case for each, of its name: `ctest -R 'algorithm/ok_topk.*reduce=radix'` runs those with that policy.
bool const are_registered = [] {
  auto const add = [](std::string const& name, void (*body)(std::size_t), std::size_t number) {
    add_test_case(name + " keeps its promises and its state", body, number);
  };
  auto const typed = oktopk_fuzz::typed_subjects();
  for (std::size_t i = 0; i < typed.size(); ++i) {
    add(
        typed[i].about.name, [](std::size_t number) { check(oktopk_fuzz::typed_subjects()[number], number); }, i);
  }
  auto const texts = oktopk_fuzz::texts(false);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    add(
        texts[i], [](std::size_t number) { check(subject_of(oktopk_fuzz::texts(false)[number]), number); }, i);
  }
  return true;
}();

} // namespace

namespace {

std::string in_words(std::optional<oktopk::selection_promises> const& promised) {
  if (!promised) {
    return "all";
  }
  std::ostringstream text;
  if (promised->low == 1 && promised->high == 1) {
    text << "k";
  } else if (std::isfinite(promised->high)) {
    text << promised->low << " k to " << promised->high << " k";
  } else {
    text << "any number";
  }
  text << (promised->largest ? ", the largest" : "") << (promised->as_sent ? " as they are sent" : "");
  return text.str();
}

std::string in_words(oktopk::allreduce_promises const& promised) {
  std::string const orders[] = {"any", "rank by rank", "from the owner on", "up a tree"};
  std::string beside = promised.all_contribute ? "all selected entries contribute" : "";
  beside += promised.full_sums ? "sums of all that the ranks have there, which all contributes" : "";
  beside += promised.conserves ? "" : "what is dropped is lost";
  beside += promised.repeats ? "" : "goes by the clock";
  bool const is_tree = promised.sums == oktopk::allreduce_promises::order::of_tree;
  return in_words(promised.local) + " | " + (is_tree ? "k at most" : in_words(promised.global)) + " | " +
         orders[static_cast<std::size_t>(promised.sums)] + " | " + promised.rounding + " | " + beside + " |\n";
}

} // namespace

TEST_CASE("the page of policies has a table of what is promised of each algorithm, and where an option changes that") {
  std::string table;
  std::string of_algorithm;
  auto const add = [&](std::string const& text) {
    std::string const words = in_words(subject_of(text).about.promised);
    table += words == of_algorithm ? "" : "| `" + text + "` | " + words;
    return words;
  };
  for (auto const& algorithm : oktopk::list_allreduces()) {
    of_algorithm.clear();
    of_algorithm = add(algorithm.name);
    for (text_option const& option : options_of(algorithm)) {
      for (std::size_t i = 1; option.of.empty() && i < option.values.size(); ++i) {
        add(algorithm.name + "(" + option.key + "=" + option.values[i] + ")");
      }
    }
  }
  add("ok_topk(local=chunked(per_chunk=8))");
  add("ok_topk(format=packed(values=bfloat16))");
  std::string const here = __FILE__;
  std::ifstream in(here.substr(0, here.rfind('/')) + "/../../docs/policies.md");
  std::string const page(std::istreambuf_iterator<char>(in), {});
  INFO(table);
  CHECK(page.find("|---|---|---|---|---|---|\n" + table + "\n") != page.npos);
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
    if (!of.about.is_dense() || !of.about.lossless()) {
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
  conserving.about.promised.conserves = true;
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
