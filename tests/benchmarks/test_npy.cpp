// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "oktopk_bench/input.hpp"
#include "oktopk_bench/npy.hpp"
#include "support/catch.hpp"

#include <bit>
#include <sstream>

// NumPy files: what is in them is read, whatever is wrong with them is one sentence that names the file and the fault.
using oktopk_bench::npy_layout;
using oktopk_bench::read_npy_layout;
using oktopk_bench::read_npy_values;

namespace {

/// The bytes of a file with this header and these bytes of values.
std::string file_of(std::string const& header, std::string const& values, int version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  for (std::size_t i = 0; i < (version == 1 ? 2U : 4U); ++i) {
    bytes += static_cast<char>(header.size() >> (8 * i) & 0xff);
  }
  return bytes + header + values;
}

std::string header_of(std::string const& type, std::string const& shape, std::string const& fortran = "False") {
  return "{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }   \n";
}

/// The bytes of numbers, which are bits of values.
template <class Bits>
std::string bytes_of(std::vector<Bits> const& numbers, bool big_endian = false) {
  std::string bytes;
  for (Bits const number : numbers) {
    for (std::size_t i = 0; i < sizeof(Bits); ++i) {
      std::size_t const place = big_endian ? sizeof(Bits) - 1 - i : i;
      bytes += static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * place) & 0xff);
    }
  }
  return bytes;
}

std::vector<float> values_of(std::string const& bytes) {
  std::istringstream file(bytes);
  npy_layout const layout = read_npy_layout(file, static_cast<std::int64_t>(bytes.size()), "g.npy");
  std::vector<float> values(static_cast<std::size_t>(layout.length));
  read_npy_values(file, layout, values, "g.npy");
  return values;
}

/// What is said of a file; empty where nothing is wrong.
std::string fault_of(std::string const& bytes) {
  try {
    values_of(bytes);
    return {};
  } catch (oktopk_bench::local_fault const& fault) {
    std::string const said = fault.what();
    std::string const start = "the NumPy file g.npy ";
    CHECK(said.starts_with(start));
    return said.substr(std::min(start.size(), said.size()));
  }
}

} // namespace

TEST_CASE("float32, float64 and float16 of either byte order are read from NumPy files") {
  std::vector<float> const expected{1.5F, -0.25F, 65504.0F, 0.0F, 1.0F / 1024};
  auto const [type, bits] = GENERATE(table<char, std::vector<std::uint64_t>>({
      {'2', {0x3e00, 0xb400, 0x7bff, 0, 0x1400}},
      {'4', {0x3fc00000, 0xbe800000, 0x477fe000, 0, 0x3a800000}},
      {'8', {0x3ff8000000000000, 0xbfd0000000000000, 0x40effc0000000000, 0, 0x3f50000000000000}},
  }));
  for (bool const big_endian : {false, true}) {
    std::string const bytes = type == '2'   ? bytes_of(std::vector<std::uint16_t>(bits.begin(), bits.end()), big_endian)
                              : type == '4' ? bytes_of(std::vector<std::uint32_t>(bits.begin(), bits.end()), big_endian)
                                            : bytes_of(bits, big_endian);
    CHECK(values_of(file_of(header_of((big_endian ? ">f" : "<f") + std::string(1, type), "(5,)"), bytes)) == expected);
  }
}

TEST_CASE("every float16 is the float of that value") {
  std::vector<std::uint16_t> all;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    all.push_back(static_cast<std::uint16_t>(bits));
  }
  auto const values = values_of(file_of(header_of("<f2", "(65536,)"), bytes_of(all)));
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    int const exponent = static_cast<int>(bits >> 10 & 0x1f);
    double const fraction = (bits & 0x3ff) / 1024.0;
    double expected = exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
    expected = exponent == 31 ? std::numeric_limits<double>::infinity() : expected;
    expected = (bits & 0x8000) != 0 ? -expected : expected;
    double const found = static_cast<double>(values[bits]);
    bool const no_number = exponent == 31 && fraction > 0;
    wrong += no_number ? !std::isnan(found) : found != expected || std::signbit(found) != std::signbit(expected);
  }
  CHECK(wrong == 0);
}

TEST_CASE("a NumPy file may have any number of dimensions and any version up to 3.0") {
  std::string const values = bytes_of(std::vector<std::uint32_t>(24, 0x3f800000));
  for (std::string const shape : {"(24,)", "(2, 12)", "(2,3,4)", "(1, 2, 3, 2, 2, 1)"}) {
    for (int version = 1; version <= 3; ++version) {
      CAPTURE(shape, version);
      CHECK(values_of(file_of(header_of("<f4", shape), values, version)) == std::vector<float>(24, 1.0F));
    }
  }
  CHECK(values_of(file_of(header_of("<f4", "()"), values.substr(0, 4))) == std::vector<float>{1.0F});
  // As other programs write headers: numpy.load takes them.
  for (std::string const header : {"{'descr': '<f4', 'fortran_order': True, 'shape': (24,), }",
                                   "{'descr': '<f4', 'fortran_order': True, 'shape': (24, 1)}",
                                   "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1, 24)}",
                                   "{'descr': '<f4', 'fortran_order': False, 'shape': (24L,), }",
                                   "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 12L), }",
                                   "{'descr':'<f4','fortran_order':False,'shape':(24,)}",
                                   "{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (24,)}",
                                   "{'descr' : '<f4', 'fortran_order' : False, 'shape' : ( 4 , 6 )}",
                                   "{'descr': '=f4', 'fortran_order': False, 'shape': (24,), }"}) {
    CAPTURE(header);
    CHECK(fault_of(file_of(header, values)).empty());
    CHECK(values_of(file_of(header, values)) == std::vector<float>(24, 1.0F));
  }
  // Any order of the entries.
  CHECK(fault_of(file_of("{'shape': (24,), 'fortran_order': False, 'descr': '<f4'}", values)).empty());
}

TEST_CASE("files that NumPy would not write, or that are of no use here, are refused with what is wrong") {
  std::string const one = bytes_of(std::vector<std::uint32_t>{0x3f800000});
  auto const refused = [&](std::string const& header, std::string const& expected) {
    CAPTURE(header);
    CHECK(fault_of(file_of(header, one)).find(expected) != std::string::npos);
  };
  refused(header_of("<f4", "(2, 3)", "True"), "is in Fortran order; in Python: numpy.ascontiguousarray(g)");
  refused(header_of("<f4", "(1,)", "Maybe"), "is in Fortran order");
  for (std::string const type : {"<i4", "<c8", "|b1", "|O", "<V2", "f4", "<f16", ""}) {
    refused(header_of(type, "(1,)"), "has no values of float16, float32 or float64");
  }
  refused(header_of("|V2", "(1,)"), "but of '|V2'; in Python: g.view(ml_dtypes.bfloat16).astype('float32') if that is");
  refused(header_of("<i4", "(1,)"), "but of '<i4'; in Python: g.astype('float32')");
  refused(header_of("<f4", "(0,)"), "has no values");
  refused(header_of("<f4", "(3, 0)"), "has no values");
  refused("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "has no values of float16");
  // 2^62 + 1 values of 4 bytes are 4 bytes, where the product is taken without care.
  for (std::string const shape : {"(2,)", "(4294967296, 4294967296)", "(99999999999999999999999,)", "1", "(-1,)",
                                  "(4611686018427387905,)", "(1 1)", "(,)", "(1,,)", "[1]", "(1.0,)"}) {
    refused(header_of("<f4", shape), "is damaged: its header does not fit its ");
  }
  refused(header_of("<f2", "(1,)"), "is damaged");
  refused("{'descr': '<f4', 'fortran_order': False, 'shape: (1,)}", "is damaged");
  CHECK(fault_of(file_of(header_of("<f4", "(1,)"), one, 4)) == "does not begin as one");
  CHECK(fault_of("\x93NUMPX" + file_of(header_of("<f4", "(1,)"), one).substr(6)) == "does not begin as one");
}

TEST_CASE("a value of float64 that float32 cannot hold becomes infinite, and no other") {
  auto const second = [](double value) {
    std::vector<std::uint64_t> const bits{std::bit_cast<std::uint64_t>(0.5), std::bit_cast<std::uint64_t>(value)};
    return values_of(file_of(header_of("<f8", "(2,)"), bytes_of(bits)))[1];
  };
  CHECK(std::isinf(second(1e39)));
  CHECK(std::isinf(second(-1e300)));
  CHECK(second(1e-300) == 0.0F);
  CHECK(second(static_cast<double>(std::numeric_limits<float>::max())) == std::numeric_limits<float>::max());
}

TEST_CASE("a NumPy file that ends anywhere too early is refused, and one with more bytes behind it") {
  for (int version = 1; version <= 3; ++version) {
    std::string const whole =
        file_of(header_of("<f4", "(3, 2)"), bytes_of(std::vector<std::uint32_t>(6, 0x3f800000)), version);
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
      CAPTURE(version, bytes);
      CHECK(!fault_of(whole.substr(0, bytes)).empty());
    }
    CHECK(fault_of(whole + "x").starts_with("is damaged"));
  }
}
