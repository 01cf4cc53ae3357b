// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/format/concept.hpp>

namespace oktopk {

// The kernels are functors: nvcc's lambdas for host and device can crash where several translation units call the
// function that they stand in (docs/backends.md).
namespace detail {

/// The arrays of a message, the wider one first.
template <class Index, class Value>
struct coo_arrays {
  Index* indices;
  Value* values;

  template <class Byte>
  coo_arrays(Byte* bytes, std::int64_t count) {
    constexpr bool indices_first = sizeof(Index) >= sizeof(Value);
    indices = reinterpret_cast<Index*>(bytes + (indices_first ? 0 : count * std::int64_t(sizeof(Value))));
    values = reinterpret_cast<Value*>(bytes + (indices_first ? count * std::int64_t(sizeof(Index)) : 0));
  }
};

template <class Entries, class Index, class Value>
struct coo_encoding {
  Entries from;
  Index first;
  coo_arrays<Index, Value> to;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    to.indices[i] = from.indices(i) - first;
    to.values[i] = from.values(i);
  }
};

template <class Index, class Value>
struct coo_decoding {
  coo_arrays<Index const, Value const> from;
  Index first;
  std::uint64_t width;
  Index* indices;
  Value* values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    Index const index = from.indices[i];
    bool const inside = static_cast<std::uint64_t>(static_cast<std::int64_t>(index)) < width;
    indices[i] = inside ? index + first : first;
    values[i] = inside ? from.values[i] : spoilt_value<Value>();
  }
};

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
  static constexpr std::int64_t entry_bytes = sizeof(Index) + sizeof(Value);

  static std::string name() {
    return "coo<float" + std::to_string(8 * sizeof(Value)) + ", int" + std::to_string(8 * sizeof(Index)) + ">";
  }

  static std::int64_t max_encoded_bytes(std::int64_t count, region) { return count * entry_bytes; }

  template <execution_space E>
  static std::int64_t encode(E const& exec, sparse_ref<Index, Value, typename E::memory_space> entries, region where,
                             std::byte* out) {
    std::int64_t const count = entries.size();
    detail::coo_encoding<decltype(entries), Index, Value> const kernel{
        entries, static_cast<Index>(where.begin), {out, count}};
    Kokkos::parallel_for("oktopk::coo::encode", detail::index_range<E>(exec, 0, count), kernel);
    return count * entry_bytes;
  }

  template <execution_space E>
  static void decode(E const& exec, std::byte const* in, std::int64_t bytes, std::int64_t count, region where,
                     Index* indices, Value* values) {
    detail::expect_bytes(bytes, count * entry_bytes, count, where);
    detail::coo_decoding<Index, Value> const kernel{
        {in, count}, static_cast<Index>(where.begin), static_cast<std::uint64_t>(where.width()), indices, values};
    Kokkos::parallel_for("oktopk::coo::decode", detail::index_range<E>(exec, 0, count), kernel);
  }
};

} // namespace oktopk
