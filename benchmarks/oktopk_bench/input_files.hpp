// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "input.hpp"

#include <filesystem>
#include <vector>

namespace oktopk_bench {

/// Accumulators from raw little-endian float32 files, one file per rank and iteration.
class file_input : public input {
public:
  /// Reads no values yet, but refuses files that are missing, empty, of different lengths, no whole number of values or
  /// of another format (`foreign_format`).
  file_input(std::vector<std::string> const& patterns, int rank);

  std::int64_t length() const override { return length_; }
  std::string description() const override;
  void read(std::int64_t step, std::span<float> values) override;

private:
  std::vector<std::string> patterns_;
  std::vector<std::filesystem::path> paths_;
  std::int64_t length_ = 0;
};

} // namespace oktopk_bench
