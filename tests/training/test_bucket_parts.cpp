// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The buckets of `bucketed` as a whole: numbers that are none, a step that is undone, all restored or none.

#include "support/catch.hpp"
#include "support/caught.hpp"

#include <oktopk/training/bucket_parts.hpp>

#include <string>
#include <vector>

using namespace oktopk_tests;
using oktopk::fault;

namespace {

/// A bucket whose state is a number; a negative one is refused.
struct part {
  struct feedback_type {
    int value;
    int undone = 0;

    int state() const { return value; }
    void undo() { undone += 1; }
    void restore(int saved) {
      if (saved < 0) {
        throw oktopk::error(fault::bad_state, "negative");
      }
      value = saved;
    }
  };

  explicit part(int value) : feedback{value}, fresh(std::to_string(value)) {}

  feedback_type feedback;
  std::string fresh;
  bool done = false;
  std::vector<int> withheld;
};

oktopk::detail::bucket_parts<part> three() {
  oktopk::detail::bucket_parts<part> parts;
  for (int const value : {1, 2, 3}) {
    parts.make(value);
  }
  return parts;
}

} // namespace

TEST_CASE("a bucket is found by its number, and a number that is none is an error that says so") {
  auto const parts = three();
  CHECK(parts.size() == 3);
  CHECK(parts.at(2).feedback.value == 3);
  CHECK(parts.fresh() == std::vector<std::string>{"1", "2", "3"});
  for (int const none : {-1, 3, 99}) {
    auto const heard = outcome_of([&] { parts.at(none); });
    CHECK(heard.code == fault::option_out_of_range);
    CHECK(heard.says("no bucket " + std::to_string(none) + " among 3"));
  }
}

TEST_CASE("what is undone of a step are the buckets that have done it, and the next step begins with none") {
  auto parts = three();
  parts.at(1).done = true;
  parts.at(2).withheld = {5};
  parts.undo_step();
  CHECK(parts.at(0).feedback.undone == 0);
  CHECK(parts.at(1).feedback.undone == 1);
  parts.begin_step();
  CHECK(parts.at(2).withheld.empty());
  parts.undo_step();
  CHECK(parts.at(1).feedback.undone == 1);
}

TEST_CASE("all buckets are restored, or none is") {
  auto parts = three();
  CHECK(outcome_of([&] { parts.restore({7, 8, -1}); }).code == fault::bad_state);
  CHECK(parts.states() == std::vector<int>{1, 2, 3});
  parts.restore({7, 8, 9});
  CHECK(parts.states() == std::vector<int>{7, 8, 9});
}
