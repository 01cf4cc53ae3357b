// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "npy.hpp"

#include "input.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace oktopk_bench {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::int64_t longest_header = 65535; // of version 1.0; only types with many fields need more

[[noreturn]] void fail(std::string const& name, std::string const& what) {
  throw local_fault("the NumPy file " + name + " " + what);
}

std::int64_t bytes_of(npy_type type) {
  return type == npy_type::float16 ? 2 : type == npy_type::float32 ? 4 : 8;
}

/// The text of a header, a dictionary as Python writes it, read from left to right.
class header_reader {
public:
  header_reader(std::string_view text, std::string const& name) : left_(text), name_(name) {}

  void read(npy_layout& layout) {
    need('{');
    while (!take('}')) {
      read_entry(layout);
      if (!take(',')) {
        need('}');
        break;
      }
    }
    skip();
    if (!left_.empty() || !has_type_ || !has_order_ || !has_shape_) {
      damaged();
    }
  }

private:
  [[noreturn]] void damaged() const { fail(name_, "has a damaged header"); }

  void skip() { left_.remove_prefix(std::min(left_.find_first_not_of(" \t\r\n"), left_.size())); }

  bool take(char wanted) {
    skip();
    bool const found = left_.starts_with(wanted);
    left_.remove_prefix(found ? 1 : 0);
    return found;
  }

  void need(char wanted) {
    if (!take(wanted)) {
      damaged();
    }
  }

  std::string_view take_until(std::size_t end) {
    if (end == std::string_view::npos) {
      damaged();
    }
    auto const taken = left_.substr(0, end);
    left_.remove_prefix(end);
    return taken;
  }

  // Between quotes of either kind; no text in a header of ours has an escape.
  std::string_view text() {
    skip();
    char const quote = left_.empty() ? '\0' : left_.front();
    if (quote != '\'' && quote != '"') {
      damaged();
    }
    left_.remove_prefix(1);
    auto const found = take_until(left_.find(quote));
    left_.remove_prefix(1);
    return found;
  }

  void read_entry(npy_layout& layout) {
    std::string_view const key = text();
    need(':');
    bool* const seen = key == "descr"           ? &has_type_
                       : key == "fortran_order" ? &has_order_
                       : key == "shape"         ? &has_shape_
                                                : nullptr;
    if (seen == nullptr || *seen) {
      damaged();
    }
    *seen = true;
    if (seen == &has_type_) {
      read_type(layout);
    } else if (seen == &has_order_) {
      read_order();
    } else {
      layout.length = read_shape();
    }
  }

  void read_type(npy_layout& layout) {
    std::string const advice = ", not of float16, float32 or float64; in Python: g.astype('float32')";
    if (take('[')) {
      fail(name_, "has values of several fields" + advice);
    }
    std::string const type(text());
    layout.big_endian = type.starts_with('>');
    if (type == "<f2" || type == ">f2") {
      layout.type = npy_type::float16;
    } else if (type == "<f4" || type == ">f4") {
      layout.type = npy_type::float32;
    } else if (type == "<f8" || type == ">f8") {
      layout.type = npy_type::float64;
    } else {
      bool const printable =
          std::all_of(type.begin(), type.end(), [](unsigned char c) { return c >= 0x20 && c < 0x7f; });
      fail(name_, "has values of the type \"" + (printable ? type.substr(0, 20) : "?") + "\"" + advice);
    }
  }

  void read_order() {
    skip();
    auto const word = take_until(left_.find_first_of(" \t\r\n,}"));
    if (word == "True") {
      fail(name_, "is in Fortran order; in Python: numpy.ascontiguousarray(g)");
    }
    if (word != "False") {
      damaged();
    }
  }

  // A tuple: one dimension alone is followed by a comma, as in (5,), and no dimension at all is one value.
  std::int64_t read_shape() {
    std::int64_t product = 1;
    bool overflow = false;
    int dimensions = 0;
    bool comma = true;
    need('(');
    while (!take(')')) {
      if (!comma) {
        damaged();
      }
      std::int64_t const extent = read_extent(overflow);
      overflow = overflow || (extent > 0 && product > std::numeric_limits<std::int64_t>::max() / extent);
      product = overflow ? 1 : product * extent;
      ++dimensions;
      comma = take(',');
    }
    if (dimensions == 1 && !comma) {
      damaged();
    }
    if (overflow) {
      fail(name_, "has a shape of more values than can be counted");
    }
    return product;
  }

  std::int64_t read_extent(bool& overflow) {
    skip();
    auto const digits = take_until(left_.find_first_not_of("0123456789"));
    if (digits.empty()) {
      damaged();
    }
    std::int64_t number = 0;
    for (char const digit : digits) {
      if (number > (std::numeric_limits<std::int64_t>::max() - 9) / 10) {
        overflow = true;
        return 1;
      }
      number = 10 * number + (digit - '0');
    }
    return number;
  }

  std::string_view left_;
  std::string const& name_;
  bool has_type_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

/// An unsigned number of any of the byte orders.
template <class Bits>
Bits number_at(std::byte const* bytes, bool big_endian) {
  Bits number = 0;
  for (std::size_t i = 0; i < sizeof(Bits); ++i) {
    std::size_t const place = big_endian ? i : sizeof(Bits) - 1 - i;
    number = static_cast<Bits>(static_cast<std::uint64_t>(number) << 8 | std::to_integer<std::uint64_t>(bytes[place]));
  }
  return number;
}

float from_half(std::uint16_t bits) {
  std::uint32_t const sign = (bits & 0x8000U) << 16;
  std::uint32_t const exponent = bits >> 10 & 0x1fU;
  std::uint32_t const fraction = bits & 0x3ffU;
  if (exponent == 0) {
    return std::copysign(std::ldexp(static_cast<float>(fraction), -24), sign == 0 ? 1.0F : -1.0F);
  }
  std::uint32_t const widened = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | widened << 23 | fraction << 13);
}

// Empty where float32 has no such value.
std::optional<float> from_double(double value) {
  auto const rounded = static_cast<float>(value);
  return std::isinf(rounded) && std::isfinite(value) ? std::nullopt : std::optional(rounded);
}

std::optional<float> value_at(std::byte const* bytes, npy_layout const& layout) {
  switch (layout.type) {
  case npy_type::float16: return from_half(number_at<std::uint16_t>(bytes, layout.big_endian));
  case npy_type::float64: return from_double(std::bit_cast<double>(number_at<std::uint64_t>(bytes, layout.big_endian)));
  case npy_type::float32: break;
  }
  return std::bit_cast<float>(number_at<std::uint32_t>(bytes, layout.big_endian));
}

} // namespace

bool begins_as_npy(std::span<unsigned char const> head) {
  return head.size() >= magic.size() && std::memcmp(head.data(), magic.data(), magic.size()) == 0;
}

npy_layout read_npy_layout(std::istream& file, std::int64_t bytes, std::string const& name) {
  std::array<std::byte, 12> start{};
  // Magic, version and the length of the rest: two bytes in version 1.0, four since.
  auto const read = [&](std::size_t from, std::size_t count) {
    file.read(reinterpret_cast<char*>(start.data() + from), static_cast<std::streamsize>(count));
    if (file.gcount() != static_cast<std::streamsize>(count)) {
      fail(name, "ends in its header");
    }
  };
  read(0, 10);
  if (std::memcmp(start.data(), magic.data(), magic.size()) != 0) {
    fail(name, "does not begin as one");
  }
  auto const major = std::to_integer<int>(start[6]);
  auto const minor = std::to_integer<int>(start[7]);
  if (major < 1 || major > 3 || minor != 0) {
    fail(name, "is of the version " + std::to_string(major) + "." + std::to_string(minor) +
                   " of the format; known are 1.0, 2.0 and 3.0");
  }
  if (major > 1) {
    read(10, 2);
  }
  std::int64_t const prefix = major == 1 ? 10 : 12;
  auto const header = major == 1 ? static_cast<std::int64_t>(number_at<std::uint16_t>(start.data() + 8, false))
                                 : static_cast<std::int64_t>(number_at<std::uint32_t>(start.data() + 8, false));
  if (header > bytes - prefix) {
    fail(name, "ends in its header");
  }
  if (header > longest_header) {
    fail(name, "has a damaged header");
  }
  std::string text(static_cast<std::size_t>(header), '\0');
  file.read(text.data(), header);
  if (file.gcount() != header) {
    fail(name, "ends in its header");
  }
  npy_layout layout;
  layout.begin = prefix + header;
  header_reader(text, name).read(layout);
  std::int64_t const there = bytes - layout.begin;
  std::int64_t const size = bytes_of(layout.type);
  if (layout.length == 0) {
    fail(name, "has no values");
  }
  if (layout.length > there / size) {
    fail(name, "is cut short: its shape has " + std::to_string(layout.length) + " values of " + std::to_string(size) +
                   " bytes, but there are " + std::to_string(there) + " bytes");
  }
  if (layout.length * size != there) {
    fail(name, "has " + std::to_string(there - layout.length * size) + " bytes behind its values");
  }
  return layout;
}

void read_npy_values(std::istream& file, npy_layout const& layout, std::span<float> values, std::string const& name) {
  auto const size = static_cast<std::size_t>(bytes_of(layout.type));
  std::vector<std::byte> some(std::min<std::size_t>(values.size(), 65536) * size);
  file.seekg(layout.begin);
  for (std::size_t done = 0; done < values.size();) {
    std::size_t const count = std::min(values.size() - done, some.size() / size);
    file.read(reinterpret_cast<char*>(some.data()), static_cast<std::streamsize>(count * size));
    if (file.gcount() != static_cast<std::streamsize>(count * size)) {
      fail(name, "is cut short: it ended after fewer than its " + std::to_string(values.size()) + " values");
    }
    for (std::size_t i = 0; i < count; ++i) {
      auto const value = value_at(some.data() + i * size, layout);
      if (!value) {
        fail(name, "has a value at index " + std::to_string(done + i) + " that is too large for float32");
      }
      values[done + i] = *value;
    }
    done += count;
  }
}

std::string name_of(npy_type type) {
  return type == npy_type::float16 ? "float16" : type == npy_type::float32 ? "float32" : "float64";
}

} // namespace oktopk_bench
