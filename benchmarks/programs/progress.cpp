// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace oktopk_programs {

progress::progress(bool wanted, std::int64_t total) : shown_(wanted && isatty(STDERR_FILENO) == 1), total_(total) {
}

void progress::wipe() {
  if (drawn_) {
    fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
    drawn_ = false;
  }
}

void progress::advance(std::string const& now) {
  done_ += 1;
  if (!shown_ || (clock::now() - last_drawn_ < std::chrono::milliseconds(100) && done_ < total_)) {
    return;
  }
  last_drawn_ = clock::now();
  drawn_ = true;
  constexpr std::int64_t width = 30;
  double const elapsed = std::chrono::duration<double>(last_drawn_ - start_).count();
  fmt::print(stderr, "\r\033[K[{:.<{}}] {}/{} {}, {:.0f} s left", fmt::format("{:#<{}}", "", width * done_ / total_),
             width, done_, total_, now, elapsed * static_cast<double>(total_ - done_) / static_cast<double>(done_));
  std::fflush(stderr);
}

} // namespace oktopk_programs
