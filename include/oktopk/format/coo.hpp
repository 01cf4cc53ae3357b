// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/range.hpp>
#include <oktopk/format/concept.hpp>
#include <oktopk/format/damage.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace oktopk {

/// Coordinate format: an array of indices and an array of values (paper, section 2), 2 words an entry by default.
///
/// Indices are relative to the region and exact integers whatever the length. The wider of the two arrays comes first,
/// so that both are aligned. An entry whose index is outside the region decodes to one that is not finite.
template <gradient_value Value = float, gradient_index Index = std::int32_t>
struct coo {
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
    Index* const indices = indices_in(out, count);
    Value* const values = values_in(out, count);
    auto const from = entries;
    auto const first = static_cast<Index>(where.begin);
    Kokkos::parallel_for(
        "oktopk::coo::encode", detail::index_range<E>(exec, 0, count), KOKKOS_LAMBDA(std::int64_t i) {
          indices[i] = from.indices(i) - first;
          values[i] = from.values(i);
        });
    return count * entry_bytes;
  }

  template <execution_space E>
  static void decode(E const& exec, std::byte const* in, std::int64_t bytes, std::int64_t count, region where,
                     Index* indices, Value* values) {
    detail::expect_bytes(bytes, count * entry_bytes, count);
    Index const* const from_indices = indices_in(in, count);
    Value const* const from_values = values_in(in, count);
    auto const first = static_cast<Index>(where.begin);
    auto const width = static_cast<std::uint64_t>(where.width());
    Kokkos::parallel_for(
        "oktopk::coo::decode", detail::index_range<E>(exec, 0, count), KOKKOS_LAMBDA(std::int64_t i) {
          Index const index = from_indices[i];
          bool const inside = static_cast<std::uint64_t>(static_cast<std::int64_t>(index)) < width;
          indices[i] = inside ? index + first : first;
          values[i] = inside ? from_values[i] : detail::spoilt_value<Value>();
        });
  }

private:
  static constexpr bool indices_first = sizeof(Index) >= sizeof(Value);

  template <class Byte>
  static auto* indices_in(Byte* bytes, std::int64_t count) {
    using element = std::conditional_t<std::is_const_v<Byte>, Index const, Index>;
    return reinterpret_cast<element*>(bytes + (indices_first ? 0 : count * static_cast<std::int64_t>(sizeof(Value))));
  }

  template <class Byte>
  static auto* values_in(Byte* bytes, std::int64_t count) {
    using element = std::conditional_t<std::is_const_v<Byte>, Value const, Value>;
    return reinterpret_cast<element*>(bytes + (indices_first ? count * static_cast<std::int64_t>(sizeof(Index)) : 0));
  }
};

} // namespace oktopk
