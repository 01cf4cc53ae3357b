// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/format/concept.hpp>

namespace oktopk {

// The kernels are functors: nvcc's lambdas for host and device can crash where several translation units call the
// function that they stand in (docs/backends.md).
namespace detail {

/// The arrays of a message, that of the wider type first.
template <class Index, class Value>
struct coo_arrays {
  Index* indices;
  Value* values;

  template <class Byte>
  coo_arrays(Byte* bytes, std::int64_t count, std::int64_t width) {
    constexpr bool indices_first = sizeof(Index) >= sizeof(Value);
    indices = reinterpret_cast<Index*>(bytes + (indices_first ? 0 : count * width * std::int64_t(sizeof(Value))));
    values = reinterpret_cast<Value*>(bytes + (indices_first ? count * std::int64_t(sizeof(Index)) : 0));
  }
};

template <class Entries, class Index, class Value, class Width>
struct coo_encoding {
  Entries from;
  Index first;
  coo_arrays<Index, Value> to;
  Width width;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    to.indices[i] = from.indices(i) - first;
    for (std::int64_t j = i * width; j < (i + 1) * width; ++j) {
      to.values[j] = from.values(j);
    }
  }
};

template <class Index, class Value, class Width>
struct coo_decoding {
  coo_arrays<Index const, Value const> from;
  Index first;
  std::uint64_t places;
  Index* indices;
  Value* values;
  Width width;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    Index const index = from.indices[i];
    bool const inside = static_cast<std::uint64_t>(static_cast<std::int64_t>(index)) < places;
    indices[i] = inside ? index + first : first;
    for (std::int64_t j = i * width; j < (i + 1) * width; ++j) {
      values[j] = inside ? from.values[j] : spoilt_value<Value>();
    }
  }
};

template <gradient_index Index, wire_value Value>
constexpr std::int64_t coo_entry_bytes(std::int64_t width) {
  return std::int64_t(sizeof(Index)) + width * std::int64_t(sizeof(Value));
}

template <execution_space E, gradient_index Index, wire_value Value, class Width>
std::int64_t encode_coo(E const& exec, sparse_ref<Index, Value, typename E::memory_space> const& entries, region where,
                        std::byte* out, Width width) {
  std::int64_t const count = entries.size();
  coo_encoding<sparse_ref<Index, Value, typename E::memory_space>, Index, Value, Width> const kernel{
      entries, static_cast<Index>(where.begin), {out, count, width}, width};
  Kokkos::parallel_for("oktopk::coo::encode", index_range<E>(exec, 0, count), kernel);
  return count * coo_entry_bytes<Index, Value>(width);
}

template <execution_space E, gradient_index Index, wire_value Value, class Width>
void decode_coo(E const& exec, std::byte const* in, std::int64_t bytes, std::int64_t count, region where,
                Index* indices, Value* values, Width width) {
  expect_bytes(bytes, count * coo_entry_bytes<Index, Value>(width), count, where);
  coo_decoding<Index, Value, Width> const kernel{{in, count, width},
                                                 static_cast<Index>(where.begin),
                                                 static_cast<std::uint64_t>(where.width()),
                                                 indices,
                                                 values,
                                                 width};
  Kokkos::parallel_for("oktopk::coo::decode", index_range<E>(exec, 0, count), kernel);
}

} // namespace detail

/// Coordinate format: an array of indices and an array of values (paper, section 2), 2 words an entry by default.
///
/// Indices are relative to the region and exact integers whatever the length. The wider of the two arrays comes first,
/// so that both are aligned. An entry whose index is outside the region decodes to one that is not finite.
template <wire_value Value = float, gradient_index Index = std::int32_t>
struct coo : format_base {
  using index_type = Index;
  using value_type = Value;

  static constexpr bool lossless = true;
  static constexpr bool exact_size = true;
  static constexpr std::int64_t bytes_per_cut = 0;
  static constexpr std::int64_t entry_bytes = detail::coo_entry_bytes<Index, Value>(1);

  static std::string name() {
    return "coo<" + detail::value_name<Value>() + ", int" + std::to_string(8 * sizeof(Index)) + ">";
  }

  static std::int64_t max_encoded_bytes(std::int64_t count, region) { return count * entry_bytes; }

  template <execution_space E>
  static std::int64_t encode(E const& exec, sparse_ref<Index, Value, typename E::memory_space> entries, region where,
                             std::byte* out) {
    return detail::encode_coo(exec, entries, where, out, detail::width_of_one());
  }

  template <execution_space E>
  static void decode(E const& exec, std::byte const* in, std::int64_t bytes, std::int64_t count, region where,
                     Index* indices, Value* values) {
    detail::decode_coo(exec, in, bytes, count, where, indices, values, detail::width_of_one());
  }
};

} // namespace oktopk
