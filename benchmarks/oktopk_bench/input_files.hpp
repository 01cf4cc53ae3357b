// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "input.hpp"
#include "npy.hpp"

#include <filesystem>
#include <optional>
#include <vector>

namespace oktopk_bench {

/// Accumulators from files, one per rank and iteration: NumPy's (.npy) or raw little-endian float32.
class file_input : public input {
public:
  /// Reads no values yet, but refuses files that are missing, empty, damaged, of different lengths or no whole number
  /// of values.
  file_input(std::vector<std::string> const& patterns, int rank);

  std::int64_t length() const override { return length_; }
  std::string description() const override;
  /// Refuses values that are not finite, too.
  void read(std::int64_t step, std::span<float> values) override;

private:
  struct source {
    std::filesystem::path path;
    std::optional<npy_layout> npy; // raw float32 where there is none
    std::int64_t length = 0;
  };

  static source open(std::filesystem::path const& path);

  std::vector<std::string> patterns_;
  std::vector<source> sources_;
  std::int64_t length_ = 0;
};

} // namespace oktopk_bench
