// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "foreign_file.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace oktopk_bench {
namespace {

using head_bytes = std::span<unsigned char const>;

bool begins_with(head_bytes head, std::initializer_list<int> start) {
  return head.size() >= start.size() && std::equal(start.begin(), start.end(), head.begin());
}

bool begins_with(head_bytes head, std::string_view start) {
  return head.size() >= start.size() &&
         std::equal(start.begin(), start.end(), head.begin(),
                    [](char wanted, unsigned char found) { return static_cast<unsigned char>(wanted) == found; });
}

/// Eight bytes of a length, the lowest first.
std::uint64_t number_at(head_bytes head, std::size_t at) {
  std::uint64_t number = 0;
  for (std::size_t i = 8; i-- > 0;) {
    number = number << 8 | head[at + i];
  }
  return number;
}

bool ends_in(std::filesystem::path const& name, std::initializer_list<std::string_view> endings) {
  std::string const ending = name.extension().string();
  return std::find(endings.begin(), endings.end(), ending) != endings.end();
}

// A member's header: the version that unpacks it is below 10.0, and no bit of the unused half of its flags is set.
bool is_zip(head_bytes head) {
  return head.size() >= 30 && begins_with(head, {'P', 'K', 3, 4}) && head[4] < 100 && head[5] == 0;
}

// Method 8 is the only one there is; of the flags three are reserved, and what packed it says 0, 2 or 4.
bool is_gzip(head_bytes head) {
  return head.size() >= 18 && begins_with(head, {0x1f, 0x8b, 8}) && head[3] < 0x20 && head[8] <= 4;
}

// From protocol 4 on a pickle says how long it is; PyTorch's old files begin with a number of their own.
bool is_pickle(head_bytes head, std::uint64_t bytes, std::filesystem::path const& name) {
  bool const framed = head.size() >= 11 && head[0] == 0x80 && (head[1] == 4 || head[1] == 5) && head[2] == 0x95 &&
                      number_at(head, 3) <= bytes - 11;
  bool const torch = begins_with(head, {0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9});
  bool const named = head.size() >= 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5 &&
                     ends_in(name, {".pkl", ".pickle", ".pt", ".pth"});
  return framed || torch || named;
}

bool is_safetensors(head_bytes head, std::uint64_t bytes) {
  return head.size() >= 10 && number_at(head, 0) <= bytes - 8 && head[8] == '{' && head[9] == '"';
}

// Numbers in digits: all of the first bytes are what numbers and what parts them are written with.
bool is_text(head_bytes head) {
  constexpr std::string_view digits = "0123456789+-.eE,; \t\r\n[]()";
  return head.size() >= 16 && std::all_of(head.begin(), head.end(), [&](unsigned char c) {
           return digits.find(static_cast<char>(c)) != std::string_view::npos;
         });
}

} // namespace

std::string foreign_format(std::span<unsigned char const> head, std::int64_t bytes, std::filesystem::path const& name) {
  auto const size = static_cast<std::uint64_t>(bytes);
  if (is_zip(head)) {
    return "a zip archive, as NumPy's .npz and PyTorch's .pt are";
  }
  if (begins_with(head, "\x89HDF\r\n\x1a\n")) {
    return "an HDF5 file";
  }
  if (begins_with(head, "MATLAB 5.0 MAT-file") || begins_with(head, "MATLAB 7.3 MAT-file")) {
    return "a MATLAB file";
  }
  if (is_safetensors(head, size)) {
    return "a safetensors file";
  }
  if (is_pickle(head, size, name)) {
    return "a Python pickle, as old PyTorch files are";
  }
  if (is_gzip(head)) {
    return "compressed with gzip";
  }
  return is_text(head) ? "text" : std::string();
}

} // namespace oktopk_bench
