// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "input.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <string_view>
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

/// How files of other kinds begin. Of raw gradients one in 2^24 does so by chance, or fewer.
struct kind {
  std::string_view begins;
  std::string_view name;
};

using namespace std::string_view_literals;

constexpr kind kinds[] = {
    {"PK\3\4"sv, "a zip archive, as numpy.savez (.npz) and torch.save write it"},
    {"\x89HDF\r\n\x1a\n"sv, "an HDF5 file"},
    {"\x1f\x8b\x08"sv, "compressed by gzip"},
    {"\x28\xb5\x2f\xfd"sv, "compressed by zstd"},
    {"\xfd"
     "7zXZ"sv,
     "compressed by xz"},
    {"ARROW1"sv, "an Arrow or Feather file"},
    {"PAR1"sv, "a Parquet file"},
    {"GGUF"sv, "a GGUF file"},
    {"CDF\1"sv, "a NetCDF file"},
    {"CDF\2"sv, "a NetCDF file"},
    {"\x80\2\x8a\x0a"sv, "a file of torch.save"},
    {"\x80\4\x95"sv, "a pickle of Python"},
    {"\x80\5\x95"sv, "a pickle of Python"},
};

/// .safetensors: the size of a header, and the header, which is JSON.
bool is_safetensors(std::string_view head, std::int64_t bytes) {
  std::uint64_t size = 0;
  for (std::size_t i = 8; i-- > 0;) {
    size = size << 8U | (i < head.size() ? static_cast<unsigned char>(head[i]) : 0xffU);
  }
  return head.substr(std::min<std::size_t>(head.size(), 8)).starts_with("{\"") &&
         size < static_cast<std::uint64_t>(bytes);
}

bool is_text(std::string_view head) {
  auto const belongs = [](char each) {
    return (each >= ' ' && each <= '~') || each == '\n' || each == '\r' || each == '\t';
  };
  return head.size() >= 32 && std::all_of(head.begin(), head.end(), belongs);
}

/// The type of raw values that are no float32, empty if it may be that. Where float16 and bfloat16 are below 2, the
/// lower half of each word has its second bit clear; in float32 that is a bit of the mantissa, before others that are
/// set. Of float64 every second word is the lower half of a value: as a float32 it is often huge, while the upper half
/// never is.
std::string_view other_type(std::string_view head) {
  std::int64_t halves = 0;
  std::int64_t large_halves = 0;
  std::int64_t huge[2] = {0, 0};
  auto const words = static_cast<std::int64_t>(head.size() / 4);
  for (std::int64_t i = 0; i < words; ++i) {
    std::uint32_t word = 0;
    for (std::size_t byte = 4; byte-- > 0;) {
      word = word << 8U | static_cast<unsigned char>(head[static_cast<std::size_t>(4 * i) + byte]);
    }
    halves += (word & 0x3fffU) != 0 ? 1 : 0;
    large_halves += (word & 0x4000U) != 0 ? 1 : 0;
    huge[i % 2] += (word >> 23U & 0xffU) >= 160 ? 1 : 0; // 2^33
  }
  if (words >= 64 && huge[1] == 0 && huge[0] >= words / 16) {
    return "float64";
  }
  return halves >= 64 && large_halves == 0 ? "float16 or bfloat16" : "";
}

/// Refuses a file that is not raw float32.
void check_raw(std::filesystem::path const& path, std::ifstream& file, std::int64_t bytes) {
  std::string head(65536, '\0');
  file.clear();
  file.seekg(0);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  constexpr char const* wanted = "; the bench reads NumPy's .npy and raw little-endian float32";
  for (kind const& each : kinds) {
    if (head.starts_with(each.begins)) {
      refuse(path, "is " + std::string(each.name) + wanted);
    }
  }
  if (is_safetensors(head, bytes)) {
    refuse(path, std::string("is a safetensors file") + wanted);
  }
  if (is_text(head)) {
    refuse(path, std::string("is text") + wanted);
  }
  if (bytes % static_cast<std::int64_t>(sizeof(float)) != 0) {
    refuse(path, "is neither a NumPy file (.npy) nor raw little-endian float32: it has " + std::to_string(bytes) +
                     " bytes, which is no multiple of 4");
  }
  if (std::string_view const type = other_type(head); !type.empty()) {
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
  check_raw(path, file, bytes);
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
