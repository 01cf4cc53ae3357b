// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/core/write_in_order.hpp>
#include <oktopk/format/concept.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

namespace oktopk {

namespace detail {

/// Blocks of indices: the first index of each and the end of its bytes, and then, for each other index of the block, the
/// places that were left out before it, in groups of 7 bits, the lowest first; the highest bit says that another byte
/// follows.
struct gap8_layout {
  static constexpr std::int64_t entries_of_block = 256;
  static constexpr std::int64_t header_bytes = 16;

  std::int64_t count;

  KOKKOS_INLINE_FUNCTION std::int64_t blocks() const { return (count + entries_of_block - 1) / entries_of_block; }
  KOKKOS_INLINE_FUNCTION std::int64_t begin(std::int64_t block) const { return block * entries_of_block; }
  KOKKOS_INLINE_FUNCTION std::int64_t end(std::int64_t block) const {
    return begin(block + 1) < count ? begin(block + 1) : count;
  }
};

template <gradient_index Index>
struct gap8_writing {
  static constexpr bool single = false;

  gap8_layout layout;
  Index const* indices;
  std::int64_t first;
  std::byte* headers;
  std::byte* gaps;

  KOKKOS_INLINE_FUNCTION std::int64_t gap_at(std::int64_t i) const {
    return static_cast<std::int64_t>(indices[i]) - static_cast<std::int64_t>(indices[i - 1]) - 1;
  }

  KOKKOS_INLINE_FUNCTION std::int64_t count(std::int64_t block) const {
    std::int64_t bytes = 0;
    for (std::int64_t i = layout.begin(block) + 1; i < layout.end(block); ++i) {
      for (std::int64_t left = gap_at(i); left >= 0; left = left < 128 ? -1 : left >> 7) {
        bytes += 1;
      }
    }
    return bytes;
  }

  KOKKOS_INLINE_FUNCTION std::int64_t write(std::int64_t block, std::int64_t position) const {
    std::int64_t end = position;
    for (std::int64_t i = layout.begin(block) + 1; i < layout.end(block); ++i) {
      std::int64_t left = gap_at(i);
      for (; left >= 128; left >>= 7) {
        gaps[end++] = static_cast<std::byte>(left | 128);
      }
      gaps[end++] = static_cast<std::byte>(left);
    }
    std::int64_t const header[2] = {static_cast<std::int64_t>(indices[layout.begin(block)]) - first, end};
    __builtin_memcpy(headers + block * gap8_layout::header_bytes, header, sizeof header);
    return end - position;
  }
};

template <gradient_index Index, wire_value Value>
struct gap8_reading {
  gap8_layout layout;
  std::byte const* headers;
  std::byte const* gaps;
  std::int64_t available; ///< bytes of gaps
  std::int64_t first;
  std::int64_t places;
  std::int64_t width;
  Index* indices;
  Value* values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t block) const {
    std::int64_t header[2];
    std::int64_t before[2] = {0, 0};
    __builtin_memcpy(header, headers + block * gap8_layout::header_bytes, sizeof header);
    if (block > 0) {
      __builtin_memcpy(before, headers + (block - 1) * gap8_layout::header_bytes, sizeof before);
    }
    // A damaged header must not lead out of the message.
    std::int64_t at = before[1] >= 0 && before[1] <= available ? before[1] : available;
    std::int64_t const end = header[1] >= at && header[1] <= available ? header[1] : at;
    auto place = static_cast<std::uint64_t>(header[0]);
    for (std::int64_t i = layout.begin(block); i < layout.end(block); ++i) {
      bool whole = i == layout.begin(block);
      std::uint64_t gap = 0;
      for (int shift = 0; !whole && at < end && shift < 42; shift += 7) {
        auto const next = static_cast<std::uint64_t>(gaps[at++]);
        gap |= (next & 127U) << shift;
        whole = next < 128;
      }
      place += i == layout.begin(block) ? 0 : gap + 1;
      bool const inside = whole && place < static_cast<std::uint64_t>(places);
      indices[i] = inside ? static_cast<Index>(first + static_cast<std::int64_t>(place)) : static_cast<Index>(first);
      for (std::int64_t j = 0; !inside && j < width; ++j) {
        values[i * width + j] = spoilt_value<Value>();
      }
    }
  }
};

template <execution_space E, gradient_index Index>
struct bitmap_encoding {
  Index const* indices;
  std::int64_t first;
  std::uint64_t* words;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    std::int64_t const place = static_cast<std::int64_t>(indices[i]) - first;
    set_bits<E>(&words[place / 64], std::uint64_t(1) << (place % 64));
  }
};

/// A scan over the words of a bitmap, which writes the indices of its bits.
template <gradient_index Index, wire_value Value>
struct bitmap_decoding {
  std::uint64_t const* words;
  std::int64_t first;
  std::int64_t places;
  std::int64_t count;
  std::int64_t width;
  Index* indices;
  Value* values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t word, std::int64_t& position, bool final) const {
    std::uint64_t bits = words[word];
    std::int64_t const inside = places - word * 64;
    bits &= inside >= 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << inside) - 1; // all of them, unless it is damaged
    if (final) {
      std::int64_t at = position;
      if (bits == ~std::uint64_t(0) && at + 64 <= count) {
        for (std::int64_t i = 0; i < 64; ++i) {
          indices[at + i] = static_cast<Index>(first + word * 64 + i);
        }
      } else {
        for (std::uint64_t left = bits; left != 0 && at < count; left &= left - 1, ++at) { // no more than are told
          indices[at] = static_cast<Index>(first + word * 64 + lowest_bit(left));
        }
      }
    }
    position += popcount(bits);
    if (final && word == (places - 1) / 64) {
      for (std::int64_t left = position; left < count; ++left) { // nor fewer
        indices[left] = static_cast<Index>(first);
        for (std::int64_t j = 0; j < width; ++j) {
          values[left * width + j] = spoilt_value<Value>();
        }
      }
    }
  }
};

template <gradient_index Index>
struct counting_up {
  std::int64_t first;
  Index* indices;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const { indices[i] = static_cast<Index>(first + i); }
};

} // namespace detail

/// Entries of any number of values each: the values as they are, and of the indices the gaps in bytes, a bitmap of the region, or
/// nothing where every place of the region has an entry.
///
/// A gap of up to 127 places takes a byte, one of up to 16,383 two, and so on (LEB128); each 256 entries have 16 bytes more,
/// by which threads find their part. A bitmap takes a bit a place. The count and the region decide which of the three it
/// is, by the most that gaps may take, so a message does not tell it: a bitmap where about 1/8 of the places have entries. So
/// an entry of a float takes 5 bytes in most vectors, where `coo` takes 8, and a full region takes what an array takes.
/// An index that lies outside or is cut off decodes to values that are not finite, of integers to the largest.
template <wire_value Value = float, gradient_index Index = std::int32_t>
class gap8 : public format_base {
public:
  using index_type = Index;
  using value_type = Value;

  static constexpr bool lossless = true;
  static constexpr bool exact_size = false;
  static constexpr std::int64_t bytes_per_cut = detail::gap8_layout::header_bytes;
  static constexpr bool sends_full_as_values = true;

  gap8() = default;
  /// For rows of so many values, at least 1.
  explicit gap8(std::int64_t values_of_each) : width_(values_of_each) {}

  std::int64_t width() const { return width_; }

  std::string name() const {
    return "gap8<" + std::to_string(width_) + " x " + detail::value_name<Value>() + ", int" +
           std::to_string(8 * sizeof(Index)) + ">";
  }

  /// Gaps of n bytes are no more than the region has stretches of 128^(n-1) places.
  std::int64_t max_encoded_bytes(std::int64_t count, region where) const {
    return std::min(most_gap_bytes(count, where.width()), bitmap_bytes(where)) + value_bytes(count);
  }

  /// Gaps of random places are exponential.
  double expected_bytes(double count, double width, double bound) const {
    double bytes = count;
    for (double reach = 128; reach < width; reach *= 128) {
      bytes += count * std::exp(-reach * count / width);
    }
    double const headers = count * detail::gap8_layout::header_bytes / detail::gap8_layout::entries_of_block;
    double const values = count * static_cast<double>(value_bytes(1));
    return count >= width ? values : std::min(bound, bytes + headers + values);
  }

  template <execution_space E>
  std::int64_t encode(E const& exec, sparse_ref<Index, Value, typename E::memory_space> entries, region where,
                      std::byte* out) const {
    std::int64_t const count = entries.size();
    std::int64_t before = 0;
    if (is_bitmap(count, where)) {
      before = bitmap_bytes(where);
      auto* const words = reinterpret_cast<std::uint64_t*>(out);
      detail::fill_array("oktopk::gap8::clear", exec, words, before / 8, std::uint64_t(0));
      Kokkos::parallel_for("oktopk::gap8::encode", detail::index_range<E>(exec, 0, count),
                           detail::bitmap_encoding<E, Index>{entries.indices.data(), where.begin, words});
    }
    detail::copy_array("oktopk::gap8::encode", exec, entries.values.data(), count * width_,
                       reinterpret_cast<Value*>(out + before));
    if (before > 0 || count == where.width()) {
      return before + value_bytes(count);
    }
    detail::gap8_layout const layout{count};
    std::byte* const headers = out + value_bytes(count);
    std::byte* const gaps = headers + layout.blocks() * detail::gap8_layout::header_bytes;
    return gaps - out +
           detail::write_in_order(
               "oktopk::gap8::encode", exec, layout.blocks(),
               detail::gap8_writing<Index>{layout, entries.indices.data(), where.begin, headers, gaps});
  }

  template <execution_space E>
  void decode(E const& exec, std::byte const* in, std::int64_t bytes, std::int64_t count, region where, Index* indices,
              Value* values) const {
    detail::gap8_layout const layout{count};
    bool const is_full = count == where.width();
    std::int64_t const before = is_bitmap(count, where) ? bitmap_bytes(where) : 0;
    std::int64_t const headers = is_full || before > 0 ? 0 : layout.blocks() * detail::gap8_layout::header_bytes;
    detail::expect_bytes(bytes, before + value_bytes(count) + headers, count, where);
    detail::copy_array("oktopk::gap8::decode", exec, reinterpret_cast<Value const*>(in + before), count * width_,
                       values);
    if (is_full) {
      Kokkos::parallel_for("oktopk::gap8::decode", detail::index_range<E>(exec, 0, count),
                           detail::counting_up<Index>{where.begin, indices});
    } else if (before > 0) {
      detail::bitmap_decoding<Index, Value> const kernel{
          reinterpret_cast<std::uint64_t const*>(in), where.begin, where.width(), count, width_, indices, values};
      Kokkos::parallel_scan("oktopk::gap8::decode", detail::index_range<E>(exec, 0, before / 8), kernel);
    } else {
      std::byte const* const begin = in + value_bytes(count);
      detail::gap8_reading<Index, Value> const kernel{
          layout, begin,   begin + headers, bytes - value_bytes(count) - headers, where.begin, where.width(),
          width_, indices, values};
      Kokkos::parallel_for("oktopk::gap8::decode", detail::index_range<E>(exec, 0, layout.blocks()), kernel);
    }
  }

private:
  static std::int64_t most_gap_bytes(std::int64_t count, std::int64_t places) {
    std::int64_t bytes = count + detail::gap8_layout{count}.blocks() * detail::gap8_layout::header_bytes;
    for (std::int64_t stretches = places >> 7; stretches > 0; stretches >>= 7) {
      bytes += std::min(count, stretches);
    }
    return bytes;
  }

  static std::int64_t bitmap_bytes(region where) { return (where.width() + 63) / 64 * 8; }

  std::int64_t value_bytes(std::int64_t count) const { return count * width_ * std::int64_t(sizeof(Value)); }

  static bool is_bitmap(std::int64_t count, region where) {
    return count < where.width() && bitmap_bytes(where) < most_gap_bytes(count, where.width());
  }

  std::int64_t width_ = 1;
};

} // namespace oktopk
