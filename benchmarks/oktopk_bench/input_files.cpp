// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "input.hpp"

#include "file_kinds.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace oktopk_bench {
namespace {

[[noreturn]] void refuse(std::filesystem::path const& path, std::string const& what) {
  throw local_fault("the input file " + path.string() + " " + what);
}

/// Refuses a file that is not raw float32.
void check_raw(std::filesystem::path const& path, std::ifstream& file, std::int64_t bytes) {
  if (std::string const kind = kind_of_file(file, bytes); !kind.empty()) {
    refuse(path, "is " + kind + "; the bench reads NumPy's .npy and raw little-endian float32");
  }
  if (bytes % static_cast<std::int64_t>(sizeof(float)) != 0) {
    refuse(path, "is neither a NumPy file (.npy) nor raw little-endian float32: it has " + std::to_string(bytes) +
                     " bytes, which is no multiple of 4");
  }
  if (std::string_view const type = other_type_of_values(head_of(file)); !type.empty()) {
    refuse(path, "looks like raw " + std::string(type) + "; raw values are float32, and a .npy tells their type");
  }
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

/// The digits that "{rank" and what follows it ask for, such as 2 of "{rank:02d}"; none where the rank has no such form.
std::optional<std::size_t> width_in(std::string_view form) {
  if (!form.starts_with(':')) {
    return form.empty() ? std::optional<std::size_t>(0) : std::nullopt;
  }
  form.remove_prefix(1);
  form.remove_suffix(form.ends_with('d') ? 1 : 0);
  if (form.empty()) {
    return 0;
  }
  // Python's fill, alignment and zero, of those that put zeros in front.
  bool has_zeros = false;
  for (std::string_view const mark : {"0>", "0=", ">0", "=0", "0"}) {
    if (!has_zeros && form.starts_with(mark)) {
      has_zeros = true;
      form.remove_prefix(mark.size());
    }
  }
  bool const is_number = !form.empty() && form.size() <= 2 &&
                         std::all_of(form.begin(), form.end(), [](char each) { return each >= '0' && each <= '9'; });
  if (!is_number || !has_zeros) {
    return std::nullopt;
  }
  return std::stoul(std::string(form));
}

constexpr std::string_view rank_mark = "{rank";

} // namespace

std::string path_of_rank(std::string const& pattern, int rank) {
  std::string path;
  std::string_view rest = pattern;
  for (auto at = rest.find(rank_mark); at != rest.npos; at = rest.find(rank_mark)) {
    path += rest.substr(0, at);
    rest.remove_prefix(at + rank_mark.size());
    auto const end = rest.find('}');
    auto const width = end == rest.npos ? std::nullopt : width_in(rest.substr(0, end));
    if (!width) {
      throw local_fault(pattern + ": the place of the rank is {rank}, or {rank:02} for two digits with zeros in front");
    }
    std::string const number = std::to_string(rank);
    path += std::string(*width - std::min(*width, number.size()), '0') + number;
    rest.remove_prefix(end + 1);
  }
  if (rest.size() == pattern.size()) {
    throw local_fault(pattern + " has no {rank} in it, so all ranks would read one file");
  }
  return path + std::string(rest);
}

std::vector<std::string> patterns_in(std::string_view list) {
  std::vector<std::string> patterns;
  std::string begun; // has no rank yet, so that the comma behind it belongs to a name
  while (true) {
    auto const comma = list.find(',');
    begun += list.substr(0, comma);
    bool const is_last = comma == list.npos;
    if (begun.find(rank_mark) != begun.npos || (is_last && patterns.empty())) {
      patterns.push_back(std::exchange(begun, {}));
    } else if (is_last) {
      patterns.back() += "," + begun;
    } else {
      begun += ',';
    }
    if (is_last) {
      return patterns;
    }
    list.remove_prefix(comma + 1);
  }
}

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
  check_raw(path, file, bytes);
  return {path, {.length = bytes / static_cast<std::int64_t>(sizeof(float))}};
}

file_input::file_input(std::vector<std::string> const& patterns, int rank) : patterns_(patterns) {
  for (std::string const& pattern : patterns_) {
    add(path_of_rank(pattern, rank));
  }
}

void file_input::add(std::filesystem::path const& path) {
  sources_.push_back(open(path));
  std::int64_t const length = sources_.back().layout.length;
  if (sources_.size() > 1 && length != length_) {
    refuse(path, "has " + std::to_string(length) + " values, but " + sources_.front().path.string() + " has " +
                     std::to_string(length_));
  }
  length_ = length;
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
