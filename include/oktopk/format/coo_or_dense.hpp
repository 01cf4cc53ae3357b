// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/format/coo.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace oktopk {

namespace detail {

template <class Entries, class Value>
struct coo_or_dense_encoding {
  Entries from;
  std::int64_t first;
  Value* values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    values[static_cast<std::int64_t>(from.indices(i)) - first] = from.values(i);
  }
};

template <class Index, class Value>
struct coo_or_dense_decoding {
  Value const* from;
  bits_of<Value> nothing;
  std::int64_t first;
  std::int64_t width;
  std::int64_t count;
  Index* indices;
  Value* values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, std::int64_t& position, bool final) const {
    Value const value = from[i];
    if (__builtin_bit_cast(bits_of<Value>, value) != nothing) {
      if (final && position < count) { // a damaged array may have more: they are cut off
        indices[position] = static_cast<Index>(first + i);
        values[position] = value;
      }
      position += 1;
    }
    if (final && i == width - 1) { // or fewer
      for (std::int64_t left = position; left < count; ++left) {
        indices[left] = static_cast<Index>(first);
        values[left] = spoilt_value<Value>();
      }
    }
  }
};

} // namespace detail

/// COO, or the region's values as a dense array where that is smaller (SparCML, Renggli et al. 2019): with 4-byte
/// values and indices, once more than half of a region is filled.
///
/// The count and the region decide which of the two forms is used, so the message does not tell it. In the dense array
/// a place without an entry holds a NaN of its own pattern, `empty`, which no entry has: entries are finite. So every
/// entry is decoded to the same bits, zeros of either sign included.
template <wire_value Value = float, gradient_index Index = std::int32_t>
struct coo_or_dense : coo<Value, Index> {
  using sparse = coo<Value, Index>;

  /// The pattern of a place without an entry: all bits set.
  static constexpr auto empty = static_cast<detail::bits_of<Value>>(~detail::bits_of<Value>(0));

  static std::string name() { return sparse::name() + " or dense"; }

  static bool is_dense(std::int64_t count, region where) {
    return where.width() * static_cast<std::int64_t>(sizeof(Value)) < count * sparse::entry_bytes;
  }

  static std::int64_t max_encoded_bytes(std::int64_t count, region where) {
    return is_dense(count, where) ? where.width() * static_cast<std::int64_t>(sizeof(Value))
                                  : sparse::max_encoded_bytes(count, where);
  }

  template <execution_space E>
  static std::int64_t encode(E const& exec, sparse_ref<Index, Value, typename E::memory_space> entries, region where,
                             std::byte* out) {
    if (!is_dense(entries.size(), where)) {
      return sparse::encode(exec, entries, where, out);
    }
    auto* const values = reinterpret_cast<Value*>(out);
    Value const nothing = __builtin_bit_cast(Value, empty);
    detail::fill_array("oktopk::coo_or_dense::clear", exec, values, where.width(), nothing);
    Kokkos::parallel_for("oktopk::coo_or_dense::encode", detail::index_range<E>(exec, 0, entries.size()),
                         detail::coo_or_dense_encoding<decltype(entries), Value>{entries, where.begin, values});
    return max_encoded_bytes(entries.size(), where);
  }

  template <execution_space E>
  static void decode(E const& exec, std::byte const* in, std::int64_t bytes, std::int64_t count, region where,
                     Index* indices, Value* values) {
    if (!is_dense(count, where)) {
      sparse::decode(exec, in, bytes, count, where, indices, values);
      return;
    }
    detail::expect_bytes(bytes, max_encoded_bytes(count, where), count, where);
    detail::coo_or_dense_decoding<Index, Value> const kernel{
        reinterpret_cast<Value const*>(in), empty, where.begin, where.width(), count, indices, values};
    Kokkos::parallel_scan("oktopk::coo_or_dense::decode", detail::index_range<E>(exec, 0, where.width()), kernel);
  }
};

} // namespace oktopk
