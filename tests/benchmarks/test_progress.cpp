// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "programs/progress.hpp"

#include "support/catch.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>

using oktopk_programs::progress;
using std::chrono::milliseconds;

namespace {

/// What goes to the standard error stream, which is a file meanwhile, and so no terminal.
std::string said(std::function<void()> const& action) {
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  std::fflush(stderr);
  int const before = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  action();
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  std::rewind(file);
  std::array<char, 4096> bytes{};
  std::string const text(bytes.data(), std::fread(bytes.data(), 1, bytes.size(), file));
  std::fclose(file);
  return text;
}

std::ptrdiff_t lines(std::string const& text) {
  return std::count(text.begin(), text.end(), '\n');
}

std::string steps(bool wanted, std::int64_t total, milliseconds between_lines) {
  return said([&] {
    progress bar(wanted, total, between_lines);
    for (int step = 0; step < 8; ++step) {
      std::this_thread::sleep_for(milliseconds(20));
      bar.advance("loss " + std::to_string(step));
    }
  });
}

} // namespace

TEST_CASE("without a terminal progress is a line for each pause that has passed") {
  std::string const text = steps(true, 8, milliseconds(50));
  CHECK(lines(text) >= 2);
  CHECK(lines(text) < 8);
  CHECK(text.find("/8 loss ") != std::string::npos);
  CHECK(text.find(" s left\n") != std::string::npos);
  CHECK(text.find('\r') == std::string::npos);
}

TEST_CASE("progress without a known total says what is done") {
  std::string const text = steps(true, 0, milliseconds(50));
  CHECK(lines(text) >= 2);
  CHECK(text.find("] loss ") != std::string::npos);
  CHECK(text.find("left") == std::string::npos);
}

TEST_CASE("what takes less time than a pause says nothing, nor does another rank") {
  CHECK(steps(true, 8, std::chrono::seconds(30)).empty());
  CHECK(steps(false, 8, milliseconds(1)).empty());
}

TEST_CASE("time that passes within a step is told as well") {
  std::string const text = said([] {
    progress bar(true, 8, milliseconds(20));
    bar.advance("trained");
    for (int part = 0; part < 4; ++part) {
      std::this_thread::sleep_for(milliseconds(15));
      bar.show("evaluating");
    }
  });
  CHECK(lines(text) >= 1);
  CHECK(text.find("1/8 evaluating") != std::string::npos);
}
