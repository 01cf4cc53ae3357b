// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "progress_bar.hpp"

#include <cstdio>
#include <string>

namespace fashion {

progress_bar::progress_bar(bool shown, std::int64_t epochs, std::int64_t iterations_per_epoch)
    : shown_(shown), epochs_(epochs), iterations_per_epoch_(iterations_per_epoch) {
}

void progress_bar::update(std::int64_t epoch, std::int64_t iteration, double loss) {
  auto const now = clock::now();
  if (!shown_ || now - last_drawn_ < std::chrono::milliseconds(100)) {
    return;
  }
  last_drawn_ = now;
  drawn_ = true;

  double const share = static_cast<double>(iteration) / static_cast<double>(iterations_per_epoch_);
  double const done = (static_cast<double>(epoch - 1) + share) / static_cast<double>(epochs_);
  double const elapsed = std::chrono::duration<double>(now - start_).count();
  std::size_t const width = 30;
  std::string bar(static_cast<std::size_t>(share * static_cast<double>(width)), '#');
  bar.resize(width, '.');
  std::printf("\r  epoch %lld/%lld [%s] %lld/%lld  loss %.3f  %.0f s left \x1b[K", static_cast<long long>(epoch),
              static_cast<long long>(epochs_), bar.c_str(), static_cast<long long>(iteration),
              static_cast<long long>(iterations_per_epoch_), loss, elapsed / done - elapsed);
  std::fflush(stdout);
}

void progress_bar::clear() {
  if (drawn_) {
    std::printf("\r\x1b[K");
    std::fflush(stdout);
    drawn_ = false;
  }
}

} // namespace fashion
