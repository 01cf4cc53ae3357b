// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "input_files.hpp"

#include "foreign_file.hpp"

#include <array>
#include <bit>
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

/// Their bytes would pass for values, often huge ones, and all figures would be wrong without a word.
void refuse_foreign(std::filesystem::path const& path, std::istream& file, std::int64_t bytes) {
  std::array<unsigned char, foreign_format_bytes> head{};
  file.read(reinterpret_cast<char*>(head.data()), head.size());
  auto const count = static_cast<std::size_t>(file.gcount());
  std::string const format = foreign_format(std::span(head).first(count), bytes, path);
  if (!format.empty()) {
    throw local_fault("the input file " + path.string() + " is " + format +
                      ", not raw little-endian float32. In Python, with its array or CPU tensor g: "
                      "numpy.asarray(g).astype('<f4').tofile('gradient.f32')");
  }
}

std::int64_t length_of(std::filesystem::path const& path) {
  std::error_code failure;
  auto const status = std::filesystem::status(path, failure);
  if (status.type() == std::filesystem::file_type::not_found) {
    throw local_fault("there is no input file " + path.string());
  }
  if (status.type() != std::filesystem::file_type::regular) {
    throw local_fault("the input " + path.string() + " is no regular file" + (failure ? ": " + failure.message() : ""));
  }
  auto const bytes = std::filesystem::file_size(path, failure);
  if (failure) {
    throw local_fault("the input file " + path.string() + " cannot be measured: " + failure.message());
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw local_fault("the input file " + path.string() + " cannot be opened for reading");
  }
  if (bytes == 0) {
    throw local_fault("the input file " + path.string() + " is empty");
  }
  refuse_foreign(path, file, static_cast<std::int64_t>(bytes));
  if (bytes % sizeof(float) != 0) {
    throw local_fault("the input file " + path.string() + " has " + std::to_string(bytes) +
                      " bytes, which is no multiple of 4");
  }
  return static_cast<std::int64_t>(bytes / sizeof(float));
}

void from_little_endian(std::span<float> values) {
  if constexpr (std::endian::native == std::endian::big) {
    for (float& value : values) {
      auto const bits = std::bit_cast<std::uint32_t>(value);
      value = std::bit_cast<float>((bits << 24) | ((bits & 0xff00U) << 8) | ((bits >> 8) & 0xff00U) | (bits >> 24));
    }
  }
}

} // namespace

file_input::file_input(std::vector<std::string> const& patterns, int rank) : patterns_(patterns) {
  for (std::string const& pattern : patterns_) {
    paths_.push_back(path_of_rank(pattern, rank));
    std::int64_t const length = length_of(paths_.back());
    if (paths_.size() > 1 && length != length_) {
      throw local_fault("the input file " + paths_.back().string() + " has " + std::to_string(length) +
                        " values, but " + paths_.front().string() + " has " + std::to_string(length_));
    }
    length_ = length;
  }
}

std::string file_input::description() const {
  std::string text = "input " + patterns_.front();
  if (patterns_.size() > 1) {
    text += " and " + std::to_string(patterns_.size() - 1) + " more";
  }
  return text;
}

void file_input::read(std::int64_t step, std::span<float> values) {
  auto const count = static_cast<std::int64_t>(paths_.size());
  auto const& path = paths_[static_cast<std::size_t>((step % count + count) % count)];
  std::ifstream file(path, std::ios::binary);
  auto const bytes = static_cast<std::streamsize>(values.size_bytes());
  file.read(reinterpret_cast<char*>(values.data()), bytes);
  if (file.gcount() != bytes) {
    throw local_fault("the input file " + path.string() + " ended after " + std::to_string(file.gcount()) + " of " +
                      std::to_string(bytes) + " bytes");
  }
  from_little_endian(values);
}

} // namespace oktopk_bench
