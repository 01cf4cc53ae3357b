// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/range.hpp>
#include <oktopk/select/search/kth.hpp>
#include <oktopk/select/source.hpp>
#include <oktopk/select/workspace.hpp>

#include <cstdint>

namespace oktopk::detail {

/// Writes the patterns of this rank's candidates in the bracket to the host's numbers, in the order of their indices;
/// never more of them than `bracket.inside`. Waits for `exec`.
template <execution_space E, gradient_index Index, gradient_value Value>
void list_inside(E const& exec, candidates<Index, Value, typename E::memory_space> from, kth_bracket<Value> bracket,
                 selection_workspace<Index, Value, E>& workspace) {
  std::int64_t const room = bracket.inside;
  workspace.numbers.reserve(exec, room); // allocates nothing where the bracket was made for the room that there is
  std::int64_t* const out = workspace.numbers.device().data();
  Kokkos::parallel_scan(
      "oktopk::select::list_inside", index_range<E>(exec, 0, from.size()),
      KOKKOS_LAMBDA(std::int64_t i, std::int64_t & position, bool final) {
        auto const magnitude = magnitude_bits(from.values.data()[i]);
        if (bracket.holds(magnitude)) {
          if (final && position < room) {
            out[position] = static_cast<std::int64_t>(magnitude);
          }
          position += 1;
        }
      });
  workspace.numbers.to_host(exec, room, "oktopk::select::list_inside");
}

} // namespace oktopk::detail
