// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "oktopk_bench/foreign_file.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

// Files that people keep gradients in are told by name, and no gradient is taken for one of them.
using oktopk_bench::foreign_format;

namespace {

/// What a file is said to be that begins with `head` and then has zeros.
std::string format_of(std::string head, std::int64_t bytes = 4000, std::string const& name = "gradient.f32") {
  head.resize(static_cast<std::size_t>(std::min<std::int64_t>(bytes, oktopk_bench::foreign_format_bytes)));
  std::vector<unsigned char> const values(head.begin(), head.end());
  return foreign_format(values, bytes, name);
}

std::string text(char const* bytes, std::size_t count) {
  return {bytes, count};
}

std::string format_of(std::vector<float> const& gradient) {
  std::vector<unsigned char> head(4 * std::min<std::size_t>(gradient.size(), oktopk_bench::foreign_format_bytes / 4));
  std::memcpy(head.data(), gradient.data(), head.size());
  return foreign_format(head, static_cast<std::int64_t>(4 * gradient.size()), "gradient.f32");
}

} // namespace

TEST_CASE("files of other formats are told by their first bytes") {
  CHECK(format_of(text("PK\x03\x04\x14\x00\x00\x00\x00\x00", 10)).find(".npz and PyTorch's .pt") != std::string::npos);
  CHECK(format_of(text("PK\x03\x04\x2d\x00\x08\x08\x00\x00", 10)).find("zip") != std::string::npos);
  CHECK(format_of("\x89HDF\r\n\x1a\n") == "an HDF5 file");
  CHECK(format_of("MATLAB 5.0 MAT-file, Platform: GLNXA64") == "a MATLAB file");
  CHECK(format_of(text("\x58\x00\x00\x00\x00\x00\x00\x00{\"gradient\"", 19)) == "a safetensors file");
  CHECK(format_of(text("\x80\x04\x95\x8c\x00\x00\x00\x00\x00\x00\x00\x8c", 12)).find("pickle") != std::string::npos);
  CHECK(format_of(text("\x80\x05\x95\x8c\x00\x00\x00\x00\x00\x00\x00\x8c", 12)).find("pickle") != std::string::npos);
  CHECK(format_of("\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19").find("PyTorch") != std::string::npos);
  CHECK(format_of(text("\x1f\x8b\x08\x08\x12\x34\x56\x67\x02\x03g.npy", 15)) == "compressed with gzip");
  CHECK(format_of("0.25, -1.5e-3, 12, 0.5, 1e-7, 7, 2.5, 0.125, 3.25, 8, 1, 2, 3, 4, 5") == "text");
}

TEST_CASE("few bytes of a format are enough only with the name of its files") {
  std::string const pickle = text("\x80\x02}q\x00", 5);
  CHECK(format_of(pickle).empty());
  for (std::string const name : {"g.pkl", "g.pickle", "g.pt", "g.pth"}) {
    CHECK(format_of(pickle, 4000, name).find("pickle") != std::string::npos);
    CHECK(format_of("\x3f\x80\x12", 4000, name).empty());
  }
  // A frame that is longer than the file, a method that gzip has not, a version of zip that there is not.
  CHECK(format_of(text("\x80\x04\x95\x8c\xff\x00\x00\x00\x00\x00\x00\x8c", 12)).empty());
  CHECK(format_of("\x1f\x8b\x07\x08").empty());
  CHECK(format_of(text("PK\x03\x04\x14\x42\x00\x00", 8)).empty());
  CHECK(format_of(text("\xff\xff\x00\x00\x00\x00\x00\x00{\"gradient\"", 19)).empty());
}

TEST_CASE("short files are what they are") {
  for (std::int64_t bytes = 0; bytes < 12; ++bytes) {
    CAPTURE(bytes);
    CHECK(format_of("1.25", bytes).empty());
    CHECK(format_of("\x93NUM", std::min<std::int64_t>(bytes, 5)).empty());
    CHECK(format_of(text("\x1f\x8b\x08\x00", 4), bytes).empty());
    CHECK(format_of(text("PK\x03\x04\x14\x00", 6), bytes).empty());
    CHECK(format_of(std::string(11, '\0'), bytes).empty());
  }
}

TEST_CASE("no gradient is taken for another format") {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<std::uint32_t> any;
  std::string wrong;
  for (int round = 0; round < 200000 && wrong.empty(); ++round) {
    std::vector<float> gradient(static_cast<std::size_t>(1 + round % 40));
    float const scale = std::ldexp(1.0F, -(round % 140));
    for (float& value : gradient) {
      auto const bits = any(random);
      std::memcpy(&value, &bits, sizeof(value));
      value = round % 2 == 0 ? value : scale * normal(random);
    }
    wrong = format_of(gradient);
  }
  CHECK(wrong == "");
  for (float const value :
       {0.0F, -0.0F, 1.0F, 1e-30F, std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::min()}) {
    CHECK(format_of(std::vector<float>(100, value)) == "");
  }
}
