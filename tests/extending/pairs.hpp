// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/format/concept.hpp>

/// Each entry as its index and its value side by side.
template <oktopk::gradient_value Value = float, oktopk::gradient_index Index = std::int32_t>
struct pairs {
  using index_type = Index;
  using value_type = Value;
  struct entry {
    Index index;
    Value value;
  };

  static constexpr bool lossless = true;
  static constexpr bool exact_size = true;
  static constexpr std::int64_t bytes_per_cut = 0;

  static std::string name() {
    return "pairs<float" + std::to_string(8 * sizeof(Value)) + ", int" + std::to_string(8 * sizeof(Index)) + ">";
  }

  static std::int64_t max_encoded_bytes(std::int64_t count, oktopk::region) {
    return count * static_cast<std::int64_t>(sizeof(entry));
  }

  template <oktopk::execution_space E>
  static std::int64_t encode(E const& exec, oktopk::sparse_ref<Index, Value, typename E::memory_space> entries,
                             oktopk::region where, std::byte* out) {
    auto* const to = reinterpret_cast<entry*>(out);
    auto const from = entries;
    auto const first = static_cast<Index>(where.begin);
    Kokkos::parallel_for(
        "pairs::encode", Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>(exec, 0, from.size()),
        KOKKOS_LAMBDA(std::int64_t i) {
          to[i] = {from.indices(i) - first, from.values(i)};
        });
    return max_encoded_bytes(entries.size(), where);
  }

  template <oktopk::execution_space E>
  static void decode(E const& exec, std::byte const* in, std::int64_t, std::int64_t count, oktopk::region where,
                     Index* indices, Value* values) {
    auto const* const from = reinterpret_cast<entry const*>(in);
    auto const first = static_cast<Index>(where.begin);
    Kokkos::parallel_for(
        "pairs::decode", Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>(exec, 0, count),
        KOKKOS_LAMBDA(std::int64_t i) {
          indices[i] = from[i].index + first;
          values[i] = from[i].value;
        });
  }
};
