// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The decisions of `automatic`, from times that are given.
#include <oktopk/catalogue/scheme_choice.hpp>

#include "support/catch.hpp"

#include <functional>
#include <map>

namespace {

using oktopk::catalogue::forecast;
using oktopk::detail::scheme_choice;

forecast scheme(std::string const& text, double predicted, bool dense = false) {
  forecast made;
  made.text = text;
  made.dense = dense;
  made.predicted = predicted;
  return made;
}

scheme_choice begun(std::vector<forecast> const& all, scheme_choice::setting const& machine = {}) {
  scheme_choice choice;
  choice.begin(all, machine, false);
  return choice;
}

/// Ends the trials with the times that each scheme takes; gives the calls of each.
std::map<std::string, int> settle(scheme_choice& choice, std::function<double(std::string const&, int)> const& time) {
  std::map<std::string, int> calls;
  for (int i = 0; i < 10000 && choice.on_trial(); ++i) {
    std::string const text = choice.next();
    double const seconds = time(text, calls[text]++);
    choice.note_trial(seconds);
  }
  REQUIRE_FALSE(choice.on_trial());
  return calls;
}

std::map<std::string, int> settle(scheme_choice& choice, std::map<std::string, double> const& times) {
  return settle(choice, [&](std::string const& text, int) { return times.at(text); });
}

/// Calls until the next look at the clocks.
int calls_to_look(scheme_choice& choice, double seconds) {
  int calls = 1;
  for (; calls < 10000 && !choice.note(seconds); ++calls) {
  }
  return calls;
}

/// Calls until trials begin again, which all take the same time; 10,000 if they do not.
int calls_to_trials(scheme_choice& choice, double seconds) {
  int calls = 0;
  while (calls < 10000 && !choice.on_trial()) {
    calls += calls_to_look(choice, seconds);
    CHECK_FALSE(choice.look(seconds));
  }
  return calls;
}

} // namespace

TEST_CASE("scheme_choice: tries what is predicted to come near the best, the best first, and takes the fastest",
          "[automatic]") {
  scheme_choice choice = begun({scheme("far", 1.7e-3), scheme("near", 1.5e-3), scheme("best", 1e-3)});
  CHECK(choice.next() == "best");
  CHECK(choice.chosen().empty());
  auto const calls = settle(choice, {{"best", 1.5e-3}, {"near", 1.1e-3}});
  CHECK(calls.size() == 2);
  CHECK(choice.chosen() == "near");
  CHECK(choice.next() == "near");
  CHECK(choice.find("near").measured == 1.1e-3);
  CHECK(choice.find("far").measured == 0);
  CHECK(choice.switches() == 0);
}

TEST_CASE("scheme_choice: predictions of long calls are good, so fewer schemes are tried", "[automatic]") {
  auto const tried = [](double best, double other) {
    scheme_choice choice = begun({scheme("best", best), scheme("other", other)});
    return settle(choice, [&](std::string const&, int) { return best; }).size();
  };
  CHECK(tried(1.9e-3, 3e-3) == 2);
  CHECK(tried(2e-3, 2.61e-3) == 1);
  CHECK(tried(2e-3, 2.59e-3) == 2);
  std::vector<forecast> many;
  for (int i = 0; i < 10; ++i) {
    many.push_back(scheme("s" + std::to_string(i), 0.01 + i * 1e-4));
  }
  scheme_choice choice = begun(many);
  auto const calls = settle(choice, [](std::string const&, int) { return 0.01; });
  CHECK(calls.size() == 6);
  CHECK(calls.contains("s5"));
}

TEST_CASE("scheme_choice: a prediction counts as one more call, as far as it differs from the others", "[automatic]") {
  auto const chosen = [](double predicted, double measured) {
    scheme_choice choice = begun({scheme("a", 0.1), scheme("b", predicted)});
    settle(choice, {{"a", 0.2}, {"b", measured}}); // four calls each, of which the first does not count
    CHECK(choice.usual() == choice.find(choice.chosen()).measured);
    return choice.chosen();
  };
  CHECK(chosen(0.1, 0.199) == "b");
  CHECK(chosen(0.12, 0.19) == "a");  // calls take 1.58 times their prediction: 4 * 0.19 > 3 * 0.2 + 0.158
  CHECK(chosen(0.12, 0.186) == "b"); // 1.55 times: 4 * 0.186 < 3 * 0.2 + 0.155

  scheme_choice far_off = begun({scheme("a", 1e-5), scheme("b", 1e-4)}, {.noise = 1});
  settle(far_off, {{"a", 0.1}, {"b", 0.07}});
  CHECK(far_off.chosen() == "b"); // one that is off by more than a factor of 1.6 counts as off by that

  scheme_choice often = begun({scheme("a", 1e-5), scheme("b", 1.5e-5)});
  settle(often, {{"a", 1e-5}, {"b", 0.9e-5}});
  CHECK(often.chosen() == "b"); // one of six

  scheme_choice none = begun({scheme("a", 0), scheme("b", 0)});
  settle(none, {{"a", 0.1}, {"b", 0.09}});
  CHECK(none.chosen() == "b");
}

TEST_CASE(
    "scheme_choice: a prediction may be off by noise: where calls are short, three schemes of each kind are tried "
    "and that in use",
    "[automatic]") {
  auto const tried = [](double noise, int more, bool has_one = false) {
    std::vector<forecast> all{scheme("best", 1e-5), scheme("off", 9e-5)};
    for (int i = 0; i < more; ++i) {
      all.push_back(scheme("more" + std::to_string(i), 2e-5));
      all.push_back(scheme("best(format=" + std::to_string(i) + ")", 2e-5));
      all.push_back(scheme("more_dense" + std::to_string(i), 9e-5, true));
    }
    all.push_back(scheme("dense", 1e-4, true));
    scheme_choice choice;
    if (has_one) {
      choice.begin({scheme("off", 1e-5)}, {}, false);
      settle(choice, {{"off", 1e-5}});
    }
    choice.begin(all, {.noise = noise}, false);
    return settle(choice, [](std::string const&, int) { return 1e-4; });
  };
  CHECK(tried(7.3e-5, 0).size() == 1);
  CHECK(tried(7.5e-5, 0).size() == 2);
  CHECK(tried(1e-3, 0).size() == 3);
  CHECK(tried(1e-3, 1).size() == 5);
  auto const of_many = tried(1e-3, 20);
  CHECK(of_many.size() == 4); // "best", two more sparse ones, and the best dense one, which sixteen others come before
  for (std::string const each : {"best", "more0", "more1", "more_dense0"}) {
    CHECK(of_many.contains(each));
  }
  CHECK(tried(1e-3, 20, true).size() == 5);
  CHECK(tried(1e-3, 20, true).contains("off"));
}

TEST_CASE("scheme_choice: the first call of a trial does not count, nor do some that are late", "[automatic]") {
  scheme_choice choice = begun({scheme("a", 1e-3), scheme("b", 1e-3)});
  settle(choice, [](std::string const& text, int call) {
    bool const is_first = call == 0;
    bool const is_late = text == "a" && call == 2;
    return is_first ? 1.0 : (is_late ? 0.02 : (text == "a" ? 1e-3 : 1.2e-3));
  });
  CHECK(choice.chosen() == "a");
  CHECK(choice.find("a").measured == 1e-3);

  scheme_choice of_two = begun({scheme("a", 2.5e-3)});
  settle(of_two, [](std::string const&, int call) { return call == 2 ? 0.02 : 2.5e-3; });
  CHECK(of_two.find("a").measured == 2.5e-3);
}

TEST_CASE("scheme_choice: short calls are tried often, long ones twice, and no longer where all are late",
          "[automatic]") {
  auto const calls_of = [](double seconds, double first) {
    scheme_choice choice = begun({scheme("a", seconds)});
    return settle(choice, [&](std::string const&, int call) { return call == 1 ? first : seconds; })["a"];
  };
  CHECK(calls_of(1e-6, 1e-6) == 12);
  CHECK(calls_of(1e-3, 1e-3) == 5);
  CHECK(calls_of(0.1, 0.1) == 2);
  CHECK(calls_of(5e-3, 1e-4) == 10); // 40 ms in all, though one was short
}

TEST_CASE("scheme_choice: trials of many schemes whose calls are short take 18 calls, later ones 20", "[automatic]") {
  std::vector<forecast> all;
  for (int i = 0; i < 16; ++i) {
    all.push_back(scheme("s" + std::to_string(i), 2e-4, i % 2 == 1));
  }
  scheme_choice choice = begun(all);
  auto const sum_of = [&](std::function<double(std::string const&, int)> const& time) {
    int sum = 0;
    for (auto const& [text, calls] : settle(choice, time)) {
      sum += calls;
    }
    return sum;
  };
  auto const alike = [](std::string const&, int) { return 2e-4; };
  CHECK(sum_of(alike) == 6 * 3);
  CHECK(calls_to_trials(choice, 2e-4) == 66); // looks are 6 calls apart
  CHECK(sum_of(alike) == 5 * 4);
  CHECK(calls_to_trials(choice, 2e-4) == 258);
  CHECK(sum_of(alike) == 5 * 4);
  CHECK(calls_to_trials(choice, 2e-4) == 1026);
}

TEST_CASE("scheme_choice: formats that send as much are one scheme where calls are short", "[automatic]") {
  auto const tried = [](double seconds, std::string const& other, double bytes) {
    forecast a = scheme("a", seconds);
    forecast b = scheme(other, seconds);
    a.cost = {.messages = 4, .bytes = 1000};
    b.cost = {.messages = 4, .bytes = bytes};
    scheme_choice choice = begun({a, b});
    auto const at_first = settle(choice, [&](std::string const&, int) { return seconds; }).size();
    calls_to_trials(choice, seconds);
    return std::max(at_first, settle(choice, [&](std::string const&, int) { return seconds; }).size());
  };
  CHECK(tried(1e-4, "a(format=coo)", 1000) == 1);
  CHECK(tried(1e-4, "a(format=packed)", 500) == 2);
  CHECK(tried(1e-4, "b", 1000) == 2);
  CHECK(tried(1e-2, "a(format=coo)", 1000) == 2);
}

TEST_CASE("scheme_choice: short calls that were late for a while do not lose a scheme", "[automatic]") {
  scheme_choice choice = begun({scheme("a", 2e-4), scheme("b", 2e-4), scheme("c", 2.4e-4), scheme("d", 2.4e-4)});
  int calls = 0;
  auto const time = [&](std::string const& text, int) {
    return (calls++ < 8 ? 4 : 1) * (text == "a" ? 2e-4 : 3e-4); // all calls of the first two trials are late
  };
  settle(choice, time);
  CHECK(choice.chosen() == "c");
  calls_to_trials(choice, 3e-4);
  settle(choice, time);
  CHECK(choice.chosen() == "a");
  CHECK(choice.find("a").measured == 2e-4);
}

TEST_CASE("scheme_choice: a choice by short calls is tried again, later and later, and long ones are not",
          "[automatic]") {
  auto const begin = [](double seconds) {
    scheme_choice choice = begun({scheme("a", seconds), scheme("b", seconds), scheme("far", 1.5 * seconds)});
    settle(choice, {{"a", 1.2 * seconds}, {"b", seconds}, {"far", 3 * seconds}});
    CHECK(choice.chosen() == "b");
    return choice;
  };
  scheme_choice choice = begin(1e-3);
  CHECK_FALSE(choice.in_rematch());
  CHECK(calls_to_trials(choice, 1e-3) == 66); // looks are 6 calls apart
  CHECK(choice.in_rematch());
  CHECK(choice.chosen() == "b");
  CHECK(choice.next() == "b");                                                    // which is made
  auto const calls = settle(choice, {{"a", 1e-3}, {"b", 1.5e-3}, {"far", 3e-3}}); // which the trials had not seen
  CHECK(calls.size() == 3);
  CHECK_FALSE(choice.in_rematch());
  CHECK(choice.chosen() == "a");
  CHECK(choice.switches() == 1);
  CHECK(calls_to_trials(choice, 1e-3) == 258);

  scheme_choice long_calls = begin(2e-3);
  CHECK(calls_to_trials(long_calls, 2e-3) >= 10000);
  scheme_choice given = begun({scheme("a", 1e-3), scheme("b", 1e-3)});
  given.choose("b", 1e-3); // no other has been tried
  CHECK(calls_to_trials(given, 1e-3) >= 10000);
  scheme_choice changed = begin(1e-3);
  calls_to_trials(changed, 1e-3);
  changed.begin({scheme("a", 1e-3)}, {}, true);
  CHECK_FALSE(changed.in_rematch());
}

TEST_CASE("scheme_choice: variants of a scheme whose calls are short are tried when it is in use", "[automatic]") {
  scheme_choice choice = begun({scheme("a", 2e-4), scheme("b", 2.2e-4), scheme("a(x=1)", 2.4e-4)});
  std::map<std::string, double> const times{{"a", 2e-4}, {"b", 3e-4}, {"a(x=1)", 1.5e-4}};
  CHECK_FALSE(settle(choice, times).contains("a(x=1)"));
  CHECK(choice.chosen() == "a");
  calls_to_trials(choice, 2e-4);
  CHECK(settle(choice, times).contains("a(x=1)"));
  CHECK(choice.chosen() == "a(x=1)");
}

TEST_CASE("scheme_choice: of earlier times fewer count than of new ones", "[automatic]") {
  scheme_choice choice = begun({scheme("a", 2e-4), scheme("b", 2e-4)});
  settle(choice, {{"a", 2e-4}, {"b", 3e-4}}); // six calls each, of which five count
  calls_to_trials(choice, 2e-4);
  settle(choice, [](std::string const& text, int call) { // ten calls each, of which nine count
    return text == "a" && call < 7 ? 3e-4 : 2e-4;
  });
  CHECK(choice.find("a").measured == 2e-4); // six of nine were late, and none of five before
  CHECK(choice.find("b").measured == 2e-4); // nine, against five before
  CHECK(choice.chosen() == "a");
}

TEST_CASE("scheme_choice: short calls of another scheme must take 10 % less than the shortest of the scheme in use",
          "[automatic]") {
  auto const chosen = [](double other) {
    scheme_choice choice = begun({scheme("used", 2e-4), scheme("other", 2e-4)});
    settle(choice, {{"used", 2e-4}, {"other", 3e-4}});
    calls_to_trials(choice, 2e-4);
    settle(choice, [&](std::string const& text, int call) { // the machine was busy for most of the first trial
      return text == "other" ? other : call == 3 ? 2e-4 : 3e-4;
    });
    return choice.chosen();
  };
  CHECK(chosen(1.82e-4) == "used");
  CHECK(chosen(1.78e-4) == "other");
}

TEST_CASE("scheme_choice: finals are at least four calls, of one variant of a scheme, for four schemes at most",
          "[automatic]") {
  std::vector<forecast> all;
  std::map<std::string, double> times;
  for (auto const& [text, seconds] : std::map<std::string, double>{
           {"a", 0.100}, {"a(x=1)", 0.101}, {"b", 0.102}, {"c", 0.103}, {"d", 0.104}, {"e", 0.105}}) {
    all.push_back(scheme(text, 0.1));
    times[text] = seconds;
  }
  scheme_choice choice = begun(all);
  auto const calls = settle(choice, times);
  CHECK(calls == std::map<std::string, int>{{"a", 6}, {"a(x=1)", 2}, {"b", 6}, {"c", 6}, {"d", 6}, {"e", 2}});
  scheme_choice slow_one = begun({scheme("a", 0.1), scheme("b", 0.1), scheme("c", 0.1)});
  CHECK(settle(slow_one, {{"a", 0.1}, {"b", 0.14}, {"c", 0.15}}) ==
        std::map<std::string, int>{{"a", 6}, {"b", 6}, {"c", 2}});
}

TEST_CASE("scheme_choice: a time that only one round saw does not win", "[automatic]") {
  scheme_choice choice = begun({scheme("a", 0.1), scheme("b", 0.1)});
  settle(choice, [](std::string const& text, int call) {
    return text == "b" && call < 2 ? 0.09 : text == "b" ? 0.2 : 0.1;
  });
  CHECK(choice.chosen() == "a");
}

TEST_CASE("scheme_choice: a switch must gain 10 %, and the scheme in use is always tried", "[automatic]") {
  auto const after = [](double other) {
    scheme_choice choice = begun({scheme("used", 0.1)});
    settle(choice, {{"used", 0.1}});
    choice.begin({scheme("used", 1.0), scheme("other", 0.1)}, {}, true);
    settle(choice, {{"used", 0.1}, {"other", other}});
    return choice;
  };
  CHECK(after(0.091).chosen() == "used");
  CHECK(after(0.091).switches() == 0);
  CHECK(after(0.091).usual() == 0.1);
  CHECK(after(0.089).chosen() == "other");
  CHECK(after(0.089).switches() == 1);

  scheme_choice slow_once = begun({scheme("used", 0.1)});
  settle(slow_once, {{"used", 0.1}});
  slow_once.begin({scheme("used", 0.1), scheme("other", 0.1)}, {}, false);
  settle(slow_once, [](std::string const& text, int call) { return text == "used" && call < 2 ? 0.3 : 0.1; });
  CHECK(slow_once.chosen() == "used");
}

TEST_CASE("scheme_choice: a look is due every few calls, and tells a change from noise", "[automatic]") {
  scheme_choice choice = begun({scheme("a", 0.1)}, {.noise = 0.05, .agreeing = 0, .recheck = 64});
  settle(choice, {{"a", 0.1}});
  CHECK(choice.usual() == 0.1);
  CHECK(calls_to_look(choice, 0.1) == 6);
  CHECK(choice.least() == 0.1);
  auto const twice = [&](double seconds) { return !choice.look(seconds) && choice.look(seconds); };
  CHECK_FALSE(twice(0.139));
  CHECK(twice(0.151));
  CHECK_FALSE(twice(0.149)); // 1.49 times as long, but noise can be 0.05 s
  CHECK_FALSE(choice.look(0.2));
  CHECK_FALSE(choice.look(0.1)); // two in a row, or none
  CHECK(twice(0.045));
  CHECK_FALSE(twice(0.06));
  CHECK_FALSE(choice.look(0.249));
  CHECK_FALSE(choice.look(0.1));
  CHECK(choice.look(0.251)); // one will do
  CHECK(choice.look(0.039));
  CHECK(calls_to_look(choice, 0.3) == 6);
  CHECK(choice.least() == 0.3);

  scheme_choice quiet = begun({scheme("a", 0.1)}, {.noise = 0, .agreeing = 0.02, .recheck = 64});
  settle(quiet, {{"a", 0.1}});
  CHECK(calls_to_look(quiet, 0.1) == 20); // an agreement takes 1 % of 20 calls
  CHECK_FALSE(quiet.look(0.139));
  CHECK_FALSE(quiet.is_suspected());
  CHECK_FALSE(quiet.look(0.141));
  CHECK(quiet.is_suspected());
  CHECK_FALSE(quiet.look(0.06)); // longer, then shorter
  CHECK(quiet.look(0.06));
  quiet.choose("a", 0.1);
  CHECK_FALSE(quiet.is_suspected());

  scheme_choice seldom = begun({scheme("a", 0.1)}, {.noise = 0, .agreeing = 10, .recheck = 64});
  settle(seldom, {{"a", 0.1}});
  CHECK(calls_to_look(seldom, 0.1) == 64);
}

TEST_CASE("scheme_choice: the first look after trials learns what calls take without a meeting", "[automatic]") {
  scheme_choice choice = begun({scheme("a", 0.1)});
  settle(choice, {{"a", 0.1}});
  CHECK_FALSE(choice.look(0.01));
  CHECK(choice.usual() == 0.01);
  CHECK_FALSE(choice.look(0.012));
  CHECK(choice.look(0.1));
  CHECK(choice.look(0.001));

  scheme_choice slower = begun({scheme("a", 0.1)});
  settle(slower, {{"a", 0.1}});
  CHECK_FALSE(slower.look(0.15));
  CHECK(slower.look(0.15));
  CHECK(slower.usual() == 0.1);

  scheme_choice given = begun({scheme("a", 0.1)});
  given.choose("a", 0.1); // without trials, and so without meetings
  CHECK(given.look(0.01));
}

TEST_CASE("scheme_choice: a look takes two calls at least, and its later half counts", "[automatic]") {
  auto const least_of = [](std::int64_t recheck, std::vector<double> const& seconds) {
    scheme_choice choice = begun({scheme("a", 0.1)}, {.noise = 0, .agreeing = 10, .recheck = recheck});
    choice.choose("a", 0.1);
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      CHECK(choice.note(seconds[i]) == (i + 1 == seconds.size()));
    }
    return choice.least();
  };
  CHECK(least_of(1, {1, 3}) == 3);
  CHECK(least_of(2, {1, 3}) == 3);
  CHECK(least_of(3, {1, 4, 3}) == 3);
  CHECK(least_of(3, {1, 3, 4}) == 3);
  CHECK(least_of(4, {1, 2, 4, 3}) == 3);
  CHECK(least_of(4, {1, 2, 3, 4}) == 3);
  CHECK(least_of(8, {1, 1, 1, 2, 4, 3, 5, 6}) == 3);
}

TEST_CASE("scheme_choice: a scheme that none comes near is chosen without another round", "[automatic]") {
  scheme_choice choice = begun({scheme("a", 0.1), scheme("b", 0.1)});
  CHECK(settle(choice, {{"a", 0.1}, {"b", 0.2}}) == std::map<std::string, int>{{"a", 2}, {"b", 2}});
  CHECK(choice.chosen() == "a");
}

TEST_CASE("scheme_choice: after a change the best dense and sparse schemes are tried from further away",
          "[automatic]") {
  std::vector<forecast> const all{scheme("sparse", 0.1), scheme("dense", 0.31, true), scheme("ring", 0.315, true),
                                  scheme("farther", 0.33)};
  scheme_choice choice;
  choice.begin(all, {}, false);
  CHECK(settle(choice, {{"sparse", 0.1}}).size() == 1);
  choice.begin(all, {}, true);
  auto const calls = settle(choice, {{"sparse", 0.4}, {"dense", 0.1}});
  CHECK(calls.size() == 2);
  CHECK(choice.chosen() == "dense");
  CHECK_FALSE(choice.is_surprised());
}

TEST_CASE("scheme_choice: the scheme that took the shortest time is called again, whatever its prediction",
          "[automatic]") {
  scheme_choice choice = begun({scheme("used", 0.1)});
  settle(choice, {{"used", 0.1}});
  choice.begin({scheme("used", 0.1), scheme("x", 0.1), scheme("dense", 0.31, true)}, {}, true);
  settle(choice, {{"used", 0.1}, {"x", 0.099}, {"dense", 0.075}});
  CHECK(choice.chosen() == "dense");

  scheme_choice many; // five names, and finals for four
  many.begin({scheme("a", 0.1), scheme("b", 0.1), scheme("c", 0.1), scheme("d", 0.1), scheme("far", 0.31, true)}, {},
             true);
  settle(many, {{"a", 0.1}, {"b", 0.1}, {"c", 0.1}, {"d", 0.1}, {"far", 0.08}});
  CHECK(many.chosen() == "far");
}

TEST_CASE("scheme_choice: predictions count though one scheme stalls", "[automatic]") {
  scheme_choice choice = begun({scheme("a", 0.1), scheme("b", 0.12), scheme("c", 0.12)});
  settle(choice, [](std::string const& text, int call) {
    return text == "c" && call < 2 ? 5.0 : text == "a" ? 0.2 : text == "b" ? 0.19 : 0.3;
  });
  CHECK(choice.chosen() == "a");
}

TEST_CASE("scheme_choice: a network that changes again during the trials of its change is noticed", "[automatic]") {
  auto const surprised = [](double seconds, bool changed, double noise) {
    scheme_choice choice;
    choice.begin({scheme("a", 0.01)}, {.noise = noise}, changed);
    settle(choice, {{"a", seconds}});
    return choice.is_surprised();
  };
  CHECK(surprised(0.081, true, 0));
  CHECK(surprised(0.001, true, 0));
  CHECK_FALSE(surprised(0.079, true, 0));
  CHECK_FALSE(surprised(0.081, false, 0)); // the prediction was off
  CHECK_FALSE(surprised(0.081, true, 0.1));
}

TEST_CASE("scheme_choice: a scheme can be given, one that there is none of leaves the trials", "[automatic]") {
  scheme_choice choice = begun({scheme("a", 0.1), scheme("b", 0.1)});
  choice.choose("c", 1);
  CHECK(choice.on_trial());
  choice.choose("b", 0.2);
  CHECK_FALSE(choice.on_trial());
  CHECK(choice.next() == "b");
  CHECK(choice.usual() == 0.2);
  CHECK(choice.switches() == 0);
  choice.forget();
  choice.begin({scheme("a", 0.1)}, {}, false);
  settle(choice, {{"a", 0.1}});
  CHECK(choice.chosen() == "a");
  CHECK(choice.switches() == 0);
}
