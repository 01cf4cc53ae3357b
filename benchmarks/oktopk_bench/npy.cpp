// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "npy.hpp"

#include "input.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

namespace oktopk_bench {
namespace {

[[noreturn]] void fail(std::string const& name, std::string const& what) {
  throw local_fault("the NumPy file " + name + " " + what);
}

std::string taken(std::istream& file, std::size_t count, std::string const& name) {
  std::string bytes(count, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(count));
  return file ? bytes : (fail(name, "is cut short"), bytes);
}

std::uint64_t number_of(std::string_view bytes, bool big_endian) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    number = number << 8 | static_cast<unsigned char>(bytes[big_endian ? i : bytes.size() - 1 - i]);
  }
  return number;
}

void skip_blanks(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
}

/// What stands behind a key of the header: a dictionary of Python with quotes of either kind, blanks or none. Empty where
/// there is none.
std::string_view entry(std::string_view header, std::string_view key) {
  for (char const quote : {'\'', '"'}) {
    auto const at = header.find(quote + std::string(key) + quote);
    if (at != header.npos) {
      header.remove_prefix(at + key.size() + 2);
      skip_blanks(header);
      header.remove_prefix(header.starts_with(':') ? 1 : header.size());
      skip_blanks(header);
      return header;
    }
  }
  return {};
}

/// The text in quotes that an entry begins with; "?" where it is something else.
std::string_view quoted(std::string_view entry) {
  bool const has_quote = entry.starts_with('\'') || entry.starts_with('"');
  auto const end = has_quote ? entry.find(entry.front(), 1) : entry.npos;
  return end == entry.npos ? "?" : entry.substr(1, end - 1);
}

/// The extents of a shape, "(2, 3)" or "(24L,)"; nothing where it is none.
std::optional<std::vector<std::int64_t>> extents_in(std::string_view shape) {
  auto const end = shape.find(')');
  if (!shape.starts_with('(') || end == shape.npos) {
    return std::nullopt;
  }
  shape = shape.substr(1, end - 1);
  std::vector<std::int64_t> extents;
  for (skip_blanks(shape); !shape.empty(); skip_blanks(shape)) {
    std::int64_t extent = 0;
    auto const [last, error] = std::from_chars(shape.data(), shape.data() + shape.size(), extent);
    shape.remove_prefix(static_cast<std::size_t>(last - shape.data()));
    shape.remove_prefix(shape.starts_with('L') ? 1 : 0); // of Python 2
    skip_blanks(shape);
    if (error != std::errc() || extent < 0 || !(shape.empty() || shape.starts_with(','))) {
      return std::nullopt;
    }
    extents.push_back(extent);
    shape.remove_prefix(shape.empty() ? 0 : 1);
  }
  return extents;
}

/// The number of values; none is one value. Negative where there is no shape, or one larger than any file.
std::int64_t product_of(std::optional<std::vector<std::int64_t>> const& extents) {
  double product = extents ? 1 : -1; // exact as far as any file goes
  for (std::int64_t const extent : extents.value_or(std::vector<std::int64_t>())) {
    product *= static_cast<double>(extent);
  }
  return product < 0x1p53 ? static_cast<std::int64_t>(product) : -1;
}

/// Whether the order of dimensions does not matter, as of a vector and of a matrix of one column.
bool is_line(std::optional<std::vector<std::int64_t>> const& extents) {
  return extents && std::count_if(extents->begin(), extents->end(), [](std::int64_t each) { return each > 1; }) <= 1;
}

float from_half(std::uint32_t bits) {
  int const exponent = static_cast<int>(bits >> 10 & 0x1fU);
  auto const fraction = static_cast<float>(bits & 0x3ffU);
  float const magnitude = exponent < 31
                              ? std::ldexp(fraction + (exponent > 0 ? 1024.0F : 0.0F), std::max(exponent, 1) - 25)
                              : (fraction == 0 ? INFINITY : NAN);
  return (bits & 0x8000U) == 0 ? magnitude : -magnitude;
}

} // namespace

npy_layout read_npy_layout(std::istream& file, std::int64_t bytes, std::string const& name) {
  std::string const start = taken(file, 8, name);
  auto const version = static_cast<unsigned char>(start[6]);
  if (!start.starts_with("\x93NUMPY") || version < 1 || version > 3) {
    fail(name, "does not begin as one");
  }
  std::size_t const width = version == 1 ? 2 : 4;
  auto const size = number_of(taken(file, width, name), false);
  std::string const header = taken(file, std::min<std::uint64_t>(size, 65536), name); // longer ones are of other types
  auto const type = quoted(entry(header, "descr"));
  bool const is_number = type.size() == 3 && std::string_view("<>=").find(type[0]) != type.npos && type[1] == 'f' &&
                         std::string_view("248").find(type[2]) != type.npos;
  if (!is_number) {
    bool const is_bfloat16 = type.ends_with("V2"); // bytes without a type, for NumPy
    fail(name, "has no values of float16, float32 or float64" +
                   (type == "?" ? std::string() : " but of '" + std::string(type) + "'") + "; in Python: " +
                   (is_bfloat16 ? "g.view(ml_dtypes.bfloat16).astype('float32') if that is bfloat16"
                                : "g.astype('float32')"));
  }
  auto const extents = extents_in(entry(header, "shape"));
  auto const order = entry(header, "fortran_order");
  if (!order.starts_with("False") && !(order.starts_with("True") && is_line(extents))) {
    fail(name, "is in Fortran order; in Python: numpy.ascontiguousarray(g)");
  }
  bool const is_other_order = type.front() == (std::endian::native == std::endian::big ? '<' : '>');
  bool const big_endian = is_other_order != (std::endian::native == std::endian::big);
  npy_layout const layout{type.back() - '0', big_endian, product_of(extents),
                          static_cast<std::int64_t>(8 + width + size)};
  if (layout.length == 0) {
    fail(name, "has no values");
  }
  if (layout.length < 0 || layout.begin + layout.length * layout.value_bytes != bytes) {
    fail(name, "is damaged: its header does not fit its " + std::to_string(bytes) + " bytes");
  }
  return layout;
}

void read_npy_values(std::istream& file, npy_layout const& layout, std::span<float> values, std::string const& name) {
  file.seekg(layout.begin);
  auto const size = static_cast<std::size_t>(layout.value_bytes);
  for (std::size_t done = 0; done < values.size(); done += 65536) {
    auto const some = values.subspan(done, std::min<std::size_t>(values.size() - done, 65536));
    if (size == sizeof(float) && layout.big_endian == (std::endian::native == std::endian::big)) {
      file.read(reinterpret_cast<char*>(some.data()), static_cast<std::streamsize>(some.size_bytes()));
      if (!file) {
        fail(name, "is cut short");
      }
      continue;
    }
    std::string const bytes = taken(file, some.size() * size, name);
    for (std::size_t i = 0; i < some.size(); ++i) {
      auto const bits = number_of(std::string_view(bytes).substr(i * size, size), layout.big_endian);
      some[i] = size == 2   ? from_half(static_cast<std::uint32_t>(bits))
                : size == 4 ? std::bit_cast<float>(static_cast<std::uint32_t>(bits))
                            : static_cast<float>(std::bit_cast<double>(bits));
    }
  }
}

} // namespace oktopk_bench
