// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "oktopk_bench/input.hpp"
#include "support/catch.hpp"

#include <unistd.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

// Files that are neither NumPy's nor raw float32 are refused by their kind, whatever their length; float32 is not.
namespace {

/// The bytes of numbers, as this machine has them.
template <class Value>
std::string bytes_of(std::vector<Value> const& values) {
  std::string bytes(values.size() * sizeof(Value), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<float> normal_numbers(std::size_t count, double scale) {
  std::mt19937_64 generator(7);
  std::normal_distribution<double> draw(0, scale);
  std::vector<float> values(count);
  for (float& each : values) {
    each = static_cast<float>(draw(generator));
  }
  return values;
}

/// What is said of a file with these bytes; empty where it is read.
std::string said_of(std::string const& bytes) {
  std::filesystem::path const path = "input_file_" + std::to_string(::getpid());
  std::ofstream(path, std::ios::binary) << bytes;
  std::string said;
  try {
    oktopk_bench::file_input file(path);
    CHECK(file.length() * 4 == static_cast<std::int64_t>(bytes.size()));
  } catch (oktopk_bench::local_fault const& fault) {
    said = fault.what();
    CHECK(said.starts_with("the input file " + path.string() + " "));
  }
  std::filesystem::remove(path);
  return said;
}

std::string with_values(std::string head) {
  head.resize((head.size() + 3) / 4 * 4, ' ');
  return head + bytes_of(normal_numbers(1000, 1));
}

void check_refused(std::string const& bytes, std::string const& words) {
  INFO(words);
  CHECK(said_of(bytes).find(words) != std::string::npos);
}

} // namespace

TEST_CASE("files of other kinds are refused by their names") {
  check_refused(with_values("PK\3\4"),
                "is a zip archive, as numpy.savez (.npz) and torch.save write it; the bench reads");
  check_refused(with_values("\x89HDF\r\n\x1a\n"), "is an HDF5 file");
  check_refused(with_values("\x1f\x8b\x08"), "is compressed by gzip");
  check_refused(with_values("\x28\xb5\x2f\xfd"), "is compressed by zstd");
  check_refused(with_values("ARROW1"), "is an Arrow or Feather file");
  check_refused(with_values("PAR1"), "is a Parquet file");
  check_refused(with_values("GGUF"), "is a GGUF file");
  check_refused(with_values("\x80\2\x8a\x0a"), "is a file of torch.save");
  std::string const header = R"({"g": {"dtype": "F32", "shape": [1000], "data_offsets": [0, 4000]}}   )";
  std::string size(8, '\0');
  size[0] = static_cast<char>(header.size());
  check_refused(with_values(size + header), "is a safetensors file");
  std::string text = "%%MatrixMarket matrix array real general\n1000 1\n";
  for (int i = 0; i < 1000; ++i) {
    text += std::to_string(0.001 * i) + "\n";
  }
  text.resize(text.size() / 4 * 4, '\n');
  check_refused(text, "is text");
}

TEST_CASE("files that programs of science write are refused by their names") {
  std::string const raw = bytes_of(normal_numbers(1000, 1));
  auto const number = [](std::uint32_t value, bool big_endian = false) {
    std::string bytes = bytes_of(std::vector<std::uint32_t>{value});
    return big_endian ? std::string(bytes.rbegin(), bytes.rend()) : bytes;
  };
  for (bool const big_endian : {false, true}) {
    check_refused(number(4000, big_endian) + raw + number(4000, big_endian), "is unformatted records of Fortran");
    check_refused(number(400, big_endian) + raw.substr(0, 400) + number(400, big_endian) + raw, "of Fortran");
  }
  check_refused(with_values("MATLAB 5.0 MAT-file, Platform: GLNXA64"), "is a MATLAB file (.mat)");
  check_refused(number(10) + number(1000) + number(1) + number(0) + number(4) + std::string("grad") + raw,
                "is a MATLAB file");
  check_refused(std::string(512, '\0') + "\x89HDF\r\n\x1a\n" + raw, "is an HDF5 file");
  check_refused(with_values("ADIOS-BP v2.9.0 Index Table"), "is an ADIOS file");
  check_refused(with_values(std::string("SQLite format 3\0", 16)), "is an SQLite database");
  check_refused(with_values("\x04\x22\x4d\x18"), "is compressed by LZ4");
  check_refused("\2\1\x21\4" + number(4000) + number(4000) + number(4016) + raw, "is compressed by Blosc");
  check_refused(number(4000) + number(0) + number(7) + raw + number(7), "is a TFRecord file");
  check_refused(with_values("\x85\xc4\2nd"), "is MessagePack");
  check_refused("\xc6" + number(4000, true) + raw, "is MessagePack");
  check_refused(with_values("\x08\x07\x12\x07pytorch"), "is an ONNX file");
  check_refused(with_values("oktopk02"), "is a checkpoint of oktopk");
  check_refused(std::string("\0\x12\x7b\x4e", 4) + number(1000, true) + raw, "is a vector of PETSc");
  check_refused(std::string("\0\0\x0d\1", 4) + number(1000, true) + raw, "is an idx file");
  check_refused(with_values("\x89PNG\r\n"), "is a PNG picture");
  check_refused(with_values("\x7f"
                            "ELF"),
                "is a program or a library");
}

TEST_CASE("text is refused, whatever its letters") {
  std::string lines;
  for (int i = 0; i < 999; ++i) {
    lines += std::to_string(0.001 * i) + "\n";
  }
  std::string wide = "\xff\xfe";
  for (char const each : lines) {
    wide += std::string{each, '\0'};
  }
  wide.resize(wide.size() / 4 * 4);
  check_refused(wide, "is text");
  for (std::string text :
       {"# Gradient f\xc3\xbcr Schicht 1\n" + lines, "\xef\xbb\xbf" + lines, "# f\xfcr Schicht\n" + lines,
        std::string("\xe5\x8b\xbe\xe9\x85\x8d\xe3\x81\xae\xe5\x80\xa4\xe5\x8b\xbe\xe9\x85\x8d\xe3\x81\xae"
                    "\xe5\x80\xa4\xe5\x8b\xbe\xe9\x85\x8d")}) {
    text.resize((text.size() + 3) / 4 * 4, '\n');
    check_refused(text, "is text");
  }
}

TEST_CASE("a pattern has the place of the rank, as Python writes it") {
  using oktopk_bench::path_of_rank;
  using oktopk_bench::patterns_in;
  CHECK(path_of_rank("g.{rank}.npy", 12) == "g.12.npy");
  CHECK(path_of_rank("{rank:02}/g{rank:03d}", 7) == "07/g007");
  for (std::string const form : {"{rank:>03}", "{rank:0>3}", "{rank:0=3d}", "{rank:03d}"}) {
    CHECK(path_of_rank(form, 7) == "007");
    CHECK(path_of_rank(form, 1234) == "1234");
  }
  for (std::string const wrong :
       {"{rank:3}", "{rank:x}", "{rank!r}", "{rank", "{rank:>3}", "{rank:0300}", "{rank}{rank:e}"}) {
    CHECK_THROWS_WITH(path_of_rank(wrong, 7), wrong +
                                                  ": the place of the rank is {rank}, or {rank:02} for two digits with "
                                                  "zeros in front");
  }
  CHECK_THROWS_WITH(path_of_rank("g%02d", 7), "g%02d has no {rank} in it, so all ranks would read one file");
  CHECK(patterns_in("a.{rank},b.{rank:02}") == std::vector<std::string>{"a.{rank}", "b.{rank:02}"});
  CHECK(patterns_in("run,lr=0.1/{rank},b.{rank},x") == std::vector<std::string>{"run,lr=0.1/{rank}", "b.{rank},x"});
  CHECK(patterns_in("a,b") == std::vector<std::string>{"a,b"});
}

TEST_CASE("raw values of another type are refused, where their bits tell it") {
  auto const floats = normal_numbers(1000, 0.1);
  check_refused(bytes_of(std::vector<double>(floats.begin(), floats.end())), "looks like raw float64");
  std::vector<double> doubles(floats.begin(), floats.end());
  for (double& each : doubles) {
    each *= 1.1; // all bits of the mantissa
  }
  check_refused(bytes_of(doubles), "looks like raw float64");
  std::vector<std::uint16_t> halves;
  std::vector<std::uint16_t> brains;
  for (float const each : floats) {
    auto const bits = std::bit_cast<std::uint32_t>(each);
    brains.push_back(static_cast<std::uint16_t>(bits >> 16U));
    auto const exponent = static_cast<int>(bits >> 23U & 0xffU) - 112;
    std::uint32_t const magnitude =
        exponent > 0 ? static_cast<std::uint32_t>(exponent) << 10U | (bits >> 13U & 0x3ffU) : 0;
    halves.push_back(static_cast<std::uint16_t>((bits >> 16U & 0x8000U) | magnitude));
  }
  check_refused(bytes_of(halves), "looks like raw float16 or bfloat16");
  check_refused(bytes_of(brains), "looks like raw float16 or bfloat16");
  std::string turned = bytes_of(floats);
  for (std::size_t i = 0; i < turned.size(); i += 4) {
    std::reverse(turned.begin() + static_cast<std::ptrdiff_t>(i), turned.begin() + static_cast<std::ptrdiff_t>(i) + 4);
  }
  check_refused(turned, "looks like raw big-endian or compressed data");
  std::vector<std::int32_t> indices(1000);
  std::iota(indices.begin(), indices.end(), 5);
  check_refused(bytes_of(indices), "looks like raw whole numbers");
}

TEST_CASE("raw float32 is taken, whatever its values") {
  for (double const scale : {1e-30, 1e-4, 1.0, 1e20}) {
    for (std::size_t const count : {std::size_t(1), std::size_t(10), std::size_t(1000), std::size_t(100000)}) {
      CHECK(said_of(bytes_of(normal_numbers(count, scale))) == "");
    }
  }
  CHECK(said_of(bytes_of(std::vector<float>(1000, 0.25F))) == "");
  CHECK(said_of(bytes_of(std::vector<float>(1000, 0.0F))) == "");
  auto rounded = normal_numbers(1000, 0.1); // to bfloat16, and to float16
  auto shorter = rounded;
  std::vector<float> whole;
  for (std::size_t i = 0; i < rounded.size(); ++i) {
    rounded[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(rounded[i]) & 0xffff0000U);
    shorter[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(shorter[i]) & 0xffffe000U);
    whole.push_back(static_cast<float>(i % 512));
  }
  CHECK(said_of(bytes_of(rounded)) == "");
  CHECK(said_of(bytes_of(shorter)) == "");
  CHECK(said_of(bytes_of(whole)) == "");
}
