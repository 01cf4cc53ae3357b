// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "progress.hpp"

#include <unistd.h>

#include <cstdio>

namespace oktopk_programs {
namespace {

constexpr std::int64_t bar_width = 40;
constexpr char const* wipe = "\r\033[K";

} // namespace

progress::progress(bool wanted, std::int64_t total) : shown_(wanted && isatty(STDERR_FILENO) == 1), total_(total) {
}

progress::~progress() {
  if (shown_) {
    std::fputs(wipe, stderr);
  }
}

void progress::advance(std::string const& now) {
  done_ += 1;
  if (!shown_) {
    return;
  }
  std::int64_t const full = bar_width * done_ / total_;
  std::string const bar =
      std::string(static_cast<std::size_t>(full), '#') + std::string(static_cast<std::size_t>(bar_width - full), '.');
  std::fprintf(stderr, "%s[%s] %lld/%lld %s", wipe, bar.c_str(), static_cast<long long>(done_),
               static_cast<long long>(total_), now.c_str());
  std::fflush(stderr);
}

} // namespace oktopk_programs
