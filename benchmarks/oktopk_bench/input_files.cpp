// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "input.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <system_error>

namespace oktopk_bench {
namespace {

std::filesystem::path path_of_rank(std::string pattern, int rank) {
  std::string const mark = "{rank}";
  std::string const number = std::to_string(rank);
  for (auto at = pattern.find(mark); at != std::string::npos; at = pattern.find(mark, at + number.size())) {
    pattern.replace(at, mark.size(), number);
  }
  return pattern;
}

[[noreturn]] void refuse(std::filesystem::path const& path, std::string const& what) {
  throw local_fault("the input file " + path.string() + " " + what);
}

std::int64_t bytes_of(std::filesystem::path const& path) {
  std::error_code failure;
  if (!std::filesystem::exists(path, failure)) {
    throw local_fault("there is no input file " + path.string() + (failure ? ": " + failure.message() : ""));
  }
  if (!std::filesystem::is_regular_file(path, failure)) {
    throw local_fault("the input " + path.string() + " is no regular file");
  }
  auto const bytes = std::filesystem::file_size(path, failure);
  if (failure) {
    refuse(path, "cannot be measured: " + failure.message());
  }
  return static_cast<std::int64_t>(bytes);
}

} // namespace

file_input::source file_input::open(std::filesystem::path const& path) {
  std::int64_t const bytes = bytes_of(path);
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    refuse(path, "cannot be opened for reading");
  }
  if (bytes == 0) {
    refuse(path, "is empty");
  }
  std::string head(6, '\0');
  file.read(head.data(), 6);
  if (head == "\x93NUMPY" || path.extension() == ".npy") {
    file.clear();
    file.seekg(0);
    return {path, read_npy_layout(file, bytes, path.string())};
  }
  if (bytes % static_cast<std::int64_t>(sizeof(float)) != 0) {
    refuse(path, "is neither a NumPy file (.npy) nor raw little-endian float32: it has " + std::to_string(bytes) +
                     " bytes, which is no multiple of 4");
  }
  return {path, {.length = bytes / static_cast<std::int64_t>(sizeof(float))}};
}

file_input::file_input(std::vector<std::string> const& patterns, int rank) : patterns_(patterns) {
  for (std::string const& pattern : patterns_) {
    sources_.push_back(open(path_of_rank(pattern, rank)));
    std::int64_t const length = sources_.back().layout.length;
    if (sources_.size() > 1 && length != length_) {
      refuse(sources_.back().path, "has " + std::to_string(length) + " values, but " + sources_.front().path.string() +
                                       " has " + std::to_string(length_));
    }
    length_ = length;
  }
}

std::string file_input::description() const {
  std::string text = "input " + patterns_.front();
  if (patterns_.size() > 1) {
    text += " and " + std::to_string(patterns_.size() - 1) + " more";
  }
  if (int const bytes = sources_.front().layout.value_bytes; bytes != 4) {
    text += " (float" + std::to_string(8 * bytes) + " as float32)";
  }
  return text;
}

void file_input::read(std::int64_t step, std::span<float> values) {
  auto const count = static_cast<std::int64_t>(sources_.size());
  source const& from = sources_[static_cast<std::size_t>((step % count + count) % count)];
  std::ifstream file(from.path, std::ios::binary);
  read_npy_values(file, from.layout, values, from.path.string());
  auto const bad = std::find_if_not(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  if (bad != values.end()) {
    refuse(from.path,
           "has a value at index " + std::to_string(bad - values.begin()) + " that is not finite as float32");
  }
}

} // namespace oktopk_bench
