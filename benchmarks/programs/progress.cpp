// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace oktopk_programs {

progress::progress(bool wanted, std::int64_t total, clock::duration between_lines)
    : wanted_(wanted), terminal_(isatty(STDERR_FILENO) == 1), total_(total),
      pause_(terminal_ ? std::chrono::milliseconds(100) : between_lines),
      last_drawn_(terminal_ ? clock::time_point() : start_) {
}

void progress::wipe() {
  if (drawn_) {
    fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
    drawn_ = false;
  }
}

std::string progress::place(std::string const& now) const {
  if (total_ == 0) {
    return now;
  }
  std::string const text = fmt::format("{}/{} {}", done_, total_, now);
  double const elapsed = std::chrono::duration<double>(clock::now() - start_).count();
  return done_ == 0 ? text
                    : fmt::format("{}, {:.0f} s left", text,
                                  elapsed * static_cast<double>(total_ - done_) / static_cast<double>(done_));
}

void progress::advance(std::string const& now) {
  done_ += 1;
  show(now);
}

void progress::show(std::string const& now) {
  bool const complete = terminal_ && total_ > 0 && done_ >= total_;
  if (!wanted_ || (clock::now() - last_drawn_ < pause_ && !complete)) {
    return;
  }
  last_drawn_ = clock::now();
  if (!terminal_) {
    double const elapsed = std::chrono::duration<double>(last_drawn_ - start_).count();
    fmt::print(stderr, "[{:4.0f} s] {}\n", elapsed, place(now));
  } else {
    constexpr std::int64_t width = 30;
    std::int64_t const filled = total_ > 0 ? width * done_ / total_ : 0;
    drawn_ = true;
    fmt::print(stderr, "\r\033[K[{:.<{}}] {}", std::string(static_cast<std::size_t>(filled), '#'), width, place(now));
  }
  std::fflush(stderr);
}

} // namespace oktopk_programs
