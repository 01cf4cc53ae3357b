// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

namespace oktopk_programs {

/// A bar on the standard error stream while the program works; nothing where that is no terminal.
class progress {
public:
  /// `wanted` is for one rank only, so that there is one bar.
  progress(bool wanted, std::int64_t total);
  progress(progress const&) = delete;
  progress& operator=(progress const&) = delete;
  /// Wipes the bar, so that a message does not begin behind it.
  ~progress();

  void advance(std::string const& now);

private:
  bool shown_;
  std::int64_t total_;
  std::int64_t done_ = 0;
};

} // namespace oktopk_programs
