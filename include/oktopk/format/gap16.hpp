// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/format/concept.hpp>
#include <oktopk/format/values/numbers.hpp>

#include <algorithm>

namespace oktopk {

namespace detail {

/// A message of `gap16`: the values, the gap of each entry in 16 bits, and the long gaps in order.
template <class Byte, class Index, class Value>
struct gap16_layout {
  static constexpr std::int64_t entry_bytes = sizeof(Value) + sizeof(std::uint16_t);
  static constexpr std::uint16_t escape = 65535; ///< in place of a long gap

  Byte* bytes;
  std::int64_t count;

  KOKKOS_INLINE_FUNCTION Byte* value(std::int64_t i) const {
    return bytes + i * static_cast<std::int64_t>(sizeof(Value));
  }
  KOKKOS_INLINE_FUNCTION Byte* gap(std::int64_t i) const { return value(count) + i * 2; }
  KOKKOS_INLINE_FUNCTION Byte* long_gap(std::int64_t i) const {
    return gap(count) + i * static_cast<std::int64_t>(sizeof(Index));
  }
};

/// A scan that counts the long gaps.
template <class Entries, class Index, class Value>
struct gap16_encoding {
  using layout = gap16_layout<std::byte, Index, Value>;

  Entries from;
  Index first;
  layout to;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, std::int64_t& long_gaps, bool final) const {
    Index const index = from.indices(i);
    Index const gap = i == 0 ? index - first : index - from.indices(i - 1) - 1;
    bool const is_long = gap >= layout::escape;
    if (final) {
      store_to(to.value(i), from.values(i));
      store_to(to.gap(i), is_long ? layout::escape : static_cast<std::uint16_t>(gap));
      if (is_long) {
        store_to(to.long_gap(long_gaps), gap);
      }
    }
    long_gaps += is_long ? 1 : 0;
  }
};

/// A scan that counts the long gaps and writes every gap in the place of its index. An impossible gap is written as
/// `width`.
template <class Index, class Value>
struct gap16_reading {
  using layout = gap16_layout<std::byte const, Index, Value>;

  layout from;
  std::int64_t available; ///< long gaps in the message
  Index width;
  Index* gaps;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, std::int64_t& long_gaps, bool final) const {
    auto const short_gap = load_from<std::uint16_t>(from.gap(i));
    bool const is_long = short_gap == layout::escape;
    if (final) {
      Index const gap = !is_long                ? static_cast<Index>(short_gap)
                        : long_gaps < available ? load_from<Index>(from.long_gap(long_gaps))
                                                : width;
      gaps[i] = gap >= 0 && gap < width ? gap : width;
    }
    long_gaps += is_long ? 1 : 0;
  }
};

/// A scan that sums the gaps, and puts each index in the place of its gap.
template <class Index, class Value>
struct gap16_decoding {
  gap16_layout<std::byte const, Index, Value> from;
  Index first;
  std::uint64_t width;
  Index* indices;
  Value* values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, std::uint64_t& end, bool final) const {
    std::uint64_t const place = end + static_cast<std::uint64_t>(indices[i]);
    if (final) {
      bool const inside = place < width;
      indices[i] = inside ? static_cast<Index>(place) + first : first;
      values[i] = inside ? load_from<Value>(from.value(i)) : spoilt_value<Value>();
    }
    end = place + 1;
  }
};

} // namespace detail

/// Gaps between indices in 16 bits, values as they are: 48 bits an entry of 32-bit values, where `coo` takes 64.
///
/// A gap is the number of places that were left out since the entry before, or since the beginning of the region. A gap
/// of 65535 or more takes one index in addition. Encoding reads the entries twice at most, decoding the gaps four times,
/// in scans that any device runs. An entry whose place is outside the region decodes to one that is not finite.
template <wire_value Value = float, gradient_index Index = std::int32_t>
struct gap16 : format_base {
  using index_type = Index;
  using value_type = Value;

  static constexpr bool lossless = true;
  static constexpr bool exact_size = false;
  static constexpr std::int64_t bytes_per_cut = 0;

  static std::string name() {
    return "gap16<float" + std::to_string(8 * sizeof(Value)) + ", int" + std::to_string(8 * sizeof(Index)) + ">";
  }

  /// A long gap and its entry cover 65536 places of the region, so there are not many.
  static std::int64_t max_encoded_bytes(std::int64_t count, region where) {
    std::int64_t const long_gaps = std::min(count, where.width() / 65536);
    return count * entry_bytes + long_gaps * static_cast<std::int64_t>(sizeof(Index));
  }

  template <execution_space E>
  static std::int64_t encode(E const& exec, sparse_ref<Index, Value, typename E::memory_space> entries, region where,
                             std::byte* out) {
    std::int64_t const count = entries.size();
    detail::gap16_encoding<decltype(entries), Index, Value> const kernel{
        entries, static_cast<Index>(where.begin), {out, count}};
    std::int64_t const long_gaps = detail::scan_with_total("oktopk::gap16::encode", exec, count, kernel);
    return count * entry_bytes + long_gaps * static_cast<std::int64_t>(sizeof(Index));
  }

  template <execution_space E>
  static void decode(E const& exec, std::byte const* in, std::int64_t bytes, std::int64_t count, region where,
                     Index* indices, Value* values) {
    detail::expect_bytes(bytes, count * entry_bytes, count, where);
    std::int64_t const available = (bytes - count * entry_bytes) / static_cast<std::int64_t>(sizeof(Index));
    detail::gap16_reading<Index, Value> const reading{
        {in, count}, available, static_cast<Index>(where.width()), indices};
    Kokkos::parallel_scan("oktopk::gap16::read", detail::index_range<E>(exec, 0, count), reading);
    detail::gap16_decoding<Index, Value> const kernel{reading.from, static_cast<Index>(where.begin),
                                                      static_cast<std::uint64_t>(where.width()), indices, values};
    Kokkos::parallel_scan("oktopk::gap16::decode", detail::index_range<E>(exec, 0, count), kernel);
  }

private:
  static constexpr std::int64_t entry_bytes = detail::gap16_layout<std::byte, Index, Value>::entry_bytes;
};

} // namespace oktopk
