// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Checkpoints: what comes back is what went in, and a file that is not one says so.

#include "support/catch.hpp"
#include "support/caught.hpp"

#include <oktopk/core/checkpoint.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

using namespace oktopk_tests;
using oktopk::fault;

namespace {

struct small_part {
  float threshold = 0;
  std::int64_t evaluated = 0;

  bool operator==(small_part const&) const = default;
};

struct some_state {
  std::int64_t iteration = 0;
  small_part part;
  std::vector<double> residual;
  std::vector<std::int64_t> boundaries;

  bool operator==(some_state const&) const = default;

  template <class State, class Visit>
  static void each_part(State& state, Visit& visit) {
    visit(state.iteration);
    visit(state.part);
    visit(state.residual);
    visit(state.boundaries);
  }
};

some_state example() {
  return {std::int64_t(1) << 40, {0.1F, -1}, {0.1, -0.0, 1e-310}, {0, 7, 99}};
}

std::string saved(some_state const& state) {
  std::ostringstream out;
  oktopk::save(out, state);
  return out.str();
}

outcome loading(std::string const& bytes) {
  return outcome_of([&] {
    std::istringstream in(bytes);
    oktopk::load<some_state>(in);
  });
}

} // namespace

TEST_CASE("a state comes back from a stream as it was, and so does the next one behind it") {
  some_state without_vectors;
  without_vectors.iteration = 3;
  std::stringstream stream;
  oktopk::save(stream, example());
  oktopk::save(stream, without_vectors);
  CHECK(oktopk::load<some_state>(stream) == example());
  CHECK(oktopk::load<some_state>(stream) == without_vectors);
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
    REQUIRE(heard.code == fault::bad_file);
    REQUIRE(heard.says("cut short"));
  }
  CHECK(loading(whole) == outcome{});
}

TEST_CASE("what is no checkpoint is told apart") {
  std::string bytes = saved(example());
  bytes[0] = 'O';
  auto const heard = loading(bytes);
  CHECK(heard.code == fault::bad_file);
  CHECK(heard.says("no checkpoint"));
}

TEST_CASE("a damaged size ends with the file and not with the memory") {
  std::string bytes = saved(example());
  std::size_t const size_of_residual = 8 + sizeof(std::int64_t) + sizeof(small_part);
  for (std::size_t byte = 0; byte < 8; ++byte) {
    bytes[size_of_residual + byte] = static_cast<char>(0xff);
  }
  CHECK(loading(bytes).code == fault::bad_file);
}

TEST_CASE("a stream that takes nothing is an error") {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  CHECK(outcome_of([&] { oktopk::save(out, example()); }).code == fault::bad_file);
}
