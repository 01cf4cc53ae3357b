// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Checkpoints: what comes back is what went in, and a file that is not one says so.

#include "support/catch.hpp"
#include "support/caught.hpp"

#include <oktopk/core/checkpoint.hpp>

#include <cstring>
#include <fstream>
#include <ios>
#include <new>
#include <sstream>
#include <streambuf>

using namespace oktopk_tests;
using oktopk::fault;

namespace {

// With padding between its two numbers.
struct small_part {
  float threshold = 0;
  std::int64_t evaluated = 0;

  bool operator==(small_part const&) const = default;

  template <class Part, class Visit>
  static void each_part(Part& part, Visit& visit) {
    visit(part.threshold);
    visit(part.evaluated);
  }
};

struct some_state {
  std::int64_t iteration = 0;
  small_part part;
  std::vector<double> residual;
  std::vector<std::int64_t> boundaries;

  bool operator==(some_state const&) const = default;

  static std::string type_name() { return "some state"; }

  template <class State, class Visit>
  static void each_part(State& state, Visit& visit) {
    visit(state.iteration);
    small_part::each_part(state.part, visit);
    visit(state.residual);
    visit(state.boundaries);
  }
};

// The same numbers under another name.
struct other_state : some_state {
  static std::string type_name() { return "other state"; }
};

// The same name and one number more.
struct longer_state : some_state {
  template <class State, class Visit>
  static void each_part(State& state, Visit& visit) {
    some_state::each_part(state, visit);
    std::int64_t more = 1;
    visit(more);
  }
};

static_assert(oktopk::detail::state_of_parts<some_state>);

// One defect each.
struct without_name : some_state {
  static void type_name() = delete;
};
struct without_parts : some_state {
  static void each_part() = delete;
};
struct never_const : some_state {
  template <class Visit>
  static void each_part(never_const& state, Visit& visit) {
    some_state::each_part(state, visit);
  }
};
struct not_made_of_nothing : some_state {
  explicit not_made_of_nothing(int);
};
static_assert(!oktopk::detail::names_its_type<without_name> && oktopk::detail::visits_its_parts<without_name>);
static_assert(oktopk::detail::names_its_type<without_parts> && !oktopk::detail::visits_its_parts<without_parts>);
static_assert(oktopk::detail::names_its_type<never_const> && !oktopk::detail::visits_its_parts<never_const>);
static_assert(!oktopk::detail::state_of_parts<without_name> && !oktopk::detail::state_of_parts<without_parts>);
static_assert(!oktopk::detail::state_of_parts<never_const> && !oktopk::detail::state_of_parts<not_made_of_nothing>);

some_state example() {
  return {std::int64_t(1) << 40, {0.1F, -1}, {0.1, -0.0, 1e-310}, {0, 7, 99}};
}

template <class State>
std::string saved(State const& state) {
  std::ostringstream out;
  oktopk::save(out, state);
  return out.str();
}

template <class State = some_state>
outcome loading(std::string const& bytes) {
  return outcome_of([&] {
    std::istringstream in(bytes);
    oktopk::load<State>(in);
  });
}

/// Takes nothing and gives nothing, as a disk that fails.
struct broken_buffer : std::streambuf {
  int_type underflow() override { throw std::string("no disk"); }
};

} // namespace

TEST_CASE("states come back from a stream as they were, several one behind the other") {
  some_state without_vectors;
  without_vectors.iteration = 3;
  std::string const both = saved(example()) + saved(without_vectors);
  std::istringstream stream(both);
  CHECK(oktopk::load_next<some_state>(stream) == example());
  CHECK(oktopk::load<some_state>(stream) == without_vectors);
  CHECK(unlike(loading(both), fault::bad_file, "something follows") == "");
  CHECK(unlike(loading(saved(example()) + '\0'), fault::bad_file, "something follows") == "");
}

TEST_CASE("a state is saved in memory as in a stream, without room to spare") {
  std::vector<char> const bytes = oktopk::detail::checkpoint_of(example());
  CHECK(std::string(bytes.begin(), bytes.end()) == saved(example()));
  CHECK(bytes.capacity() == bytes.size());
}

TEST_CASE("long vectors come back, also across the steps they are read in") {
  for (std::size_t const size : {(std::size_t(1) << 20) - 1, std::size_t(1) << 20, (std::size_t(5) << 19) + 3}) {
    some_state state;
    for (std::size_t i = 0; i < size; ++i) {
      state.boundaries.push_back(static_cast<std::int64_t>(i * i));
    }
    std::istringstream in(saved(state));
    CHECK((oktopk::load<some_state>(in) == state));
  }
}

TEST_CASE("a checkpoint cut short anywhere is an error") {
  std::string const whole = saved(example());
  for (std::size_t kept = 0; kept < whole.size(); ++kept) {
    auto const heard = loading(whole.substr(0, kept));
    REQUIRE(unlike(heard, fault::bad_file, "cut short") == "");
  }
  CHECK(loading(whole) == outcome{});
}

TEST_CASE("what is no checkpoint, or one of another state, is told apart") {
  std::string bytes = saved(example());
  CHECK(unlike(loading<other_state>(bytes), fault::bad_file, "a state of some state, expected one of other state") ==
        "");
  CHECK(unlike(loading<longer_state>(bytes), fault::bad_file, "less than the state has") == "");
  CHECK(unlike(loading(saved(longer_state{example()})), fault::bad_file, "8 bytes more than the state has") == "");
  bytes[0] = 'O';
  CHECK(unlike(loading(bytes), fault::bad_file, "no checkpoint") == "");
}

TEST_CASE("a damaged byte anywhere is an error, and never takes much memory") {
  std::string const whole = saved(example());
  for (std::size_t place = 0; place < whole.size(); ++place) {
    for (int const flip : {0x01, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[place] = static_cast<char>(damaged[place] ^ flip);
      REQUIRE(loading(damaged).code == fault::bad_file);
    }
  }
}

TEST_CASE("the same state gives the same bytes, whatever lay in its padding") {
  auto const save_over = [](unsigned char junk) {
    alignas(some_state) unsigned char space[sizeof(some_state)];
    std::memset(space, junk, sizeof(space));
    auto* const state = new (space) some_state;
    state->part.threshold = 0.5F;
    std::string bytes = saved(*state);
    state->~some_state();
    return bytes;
  };
  CHECK(save_over(0x00) == save_over(0xff));
}

TEST_CASE("a stream that cannot be read is told from a checkpoint that is cut short") {
  std::ifstream missing("/a/folder/that/is/not/there", std::ios::binary);
  auto const heard = outcome_of([&] { oktopk::load<some_state>(missing); });
  CHECK(unlike(heard, fault::bad_file, "the stream cannot be read") == "");
  broken_buffer broken;
  std::istream in(&broken);
  CHECK(outcome_of([&] { oktopk::load<some_state>(in); }).says("the stream cannot be read"));
  CHECK(loading("").says("cut short"));
}

TEST_CASE("a stream that throws gives the same errors, and throws as before afterwards") {
  std::string const whole = saved(example());
  for (auto const mask :
       {std::ios::failbit, std::ios::eofbit, std::ios::badbit, std::ios::failbit | std::ios::eofbit}) {
    CAPTURE(static_cast<int>(mask));
    std::istringstream good(whole);
    good.exceptions(mask);
    CHECK(oktopk::load<some_state>(good) == example());
    CHECK((good.exceptions() == mask && good.eof()));
    std::istringstream cut(whole.substr(0, 40));
    cut.exceptions(mask);
    auto const heard = outcome_of([&] { oktopk::load<some_state>(cut); });
    CHECK((heard.code == fault::bad_file && heard.says("cut short")));
    CHECK(cut.exceptions() == mask);
    std::istringstream longer(whole + "x");
    longer.exceptions(mask);
    CHECK(outcome_of([&] { oktopk::load<some_state>(longer); }).says("something follows"));
    std::istringstream next(whole + whole);
    next.exceptions(mask);
    CHECK(oktopk::load_next<some_state>(next) == example());
    CHECK(oktopk::load<some_state>(next) == example());
  }
  std::ostream out(nullptr); // takes nothing
  CHECK(outcome_of([&] { oktopk::save(out, example()); }).code == fault::bad_file);
  broken_buffer full;
  std::ostream throwing(&full);
  throwing.exceptions(std::ios::failbit | std::ios::badbit);
  CHECK(outcome_of([&] { oktopk::save(throwing, example()); }).code == fault::bad_file);
  CHECK(throwing.exceptions() == (std::ios::failbit | std::ios::badbit));
}
