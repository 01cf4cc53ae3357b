// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "inputs.hpp"
#include "rivals_cuda.hpp"

#include <oktopk/select/chunked.hpp>
#include <oktopk/select/exact.hpp>
#include <oktopk/select/gaussian.hpp>
#include <oktopk/select/reused_threshold.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace select_bench {

/// Makes a selection of k from the vectors, with all that it may keep from one repetition to the next.
using selection_factory = selection (*)(space const& exec, vectors const& from, std::int64_t k);

struct selector_entry {
  std::string_view name;
  selection_factory make;
  std::int64_t arrays; ///< of the gradient's length that it goes through: 3 where it accumulates, else 1
};

using workspace = oktopk::detail::selection_workspace<std::int32_t, float, space>;

/// The exact k-th magnitude of the accumulator as it is, by a selection without a guess.
inline std::uint32_t kth_of(space const& exec, vectors const& from, std::int64_t k, workspace& scratch) {
  oktopk::detail::one_rank alone;
  oktopk::detail::search_guess<float> guess;
  oktopk::detail::search_alone<space, std::int32_t, float> search({exec, k, 0, alone, scratch});
  search.run(from.source(0).materialized(), guess);
  return search.threshold();
}

/// The same by histograms of all values, digit by digit.
inline selection make_kth_by_histograms(space const& exec, vectors const& from, std::int64_t k) {
  auto const scratch = std::make_shared<workspace>();
  return [=, &exec, &from](int) {
    auto const found =
        oktopk::detail::kth_magnitude<space, std::int32_t, float>(exec, from.source(0).materialized(), k, *scratch);
    return found.ties > 0 ? k : 0;
  };
}

/// The thresholds of both accumulators, for selections that are given theirs.
inline std::array<std::uint32_t, 2> known_thresholds(space const& exec, vectors const& from, std::int64_t k) {
  std::array<std::uint32_t, 2> thresholds{};
  workspace scratch;
  for (int repetition : {1, 0}) {
    from.source(repetition).materialize(exec);
    thresholds[static_cast<std::size_t>(repetition)] = kth_of(exec, from, k, scratch);
  }
  return thresholds;
}

/// Accumulates, and compacts what reaches a known threshold, in one pass.
inline selection make_fused(space const& exec, vectors const& from, std::int64_t k) {
  auto const scratch = std::make_shared<workspace>();
  auto const thresholds = known_thresholds(exec, from, k);
  return [=, &exec, &from](int repetition) {
    scratch->reserve(exec, 2 * k);
    return oktopk::detail::compact(exec, from.source(repetition), thresholds[static_cast<std::size_t>(repetition % 2)],
                                   *scratch, true);
  };
}

/// Compacts what reaches a known threshold of the accumulator as it is.
inline selection make_compact(space const& exec, vectors const& from, std::int64_t k) {
  auto const scratch = std::make_shared<workspace>();
  auto const thresholds = known_thresholds(exec, from, k);
  return [=, &exec, &from](int repetition) { // the accumulator is that of this repetition, made by the passes before
    scratch->reserve(exec, 2 * k);
    return oktopk::detail::compact(exec, from.source(0).materialized(),
                                   thresholds[static_cast<std::size_t>(repetition % 2)], *scratch, true);
  };
}

/// The exact k-th magnitude of the accumulator, from scratch; writes no selection.
inline selection make_kth(space const& exec, vectors const& from, std::int64_t k) {
  auto const scratch = std::make_shared<workspace>();
  return [=, &exec, &from](int) { return kth_of(exec, from, k, *scratch) > 0 ? k : 0; };
}

/// A whole selector of the library, on the accumulator as it is, or accumulation included.
template <class Selector, bool Accumulates = true>
selection make_whole(space const& exec, vectors const& from, std::int64_t k) {
  struct kept {
    workspace scratch;
    Selector selector{};
    typename Selector::template state<float> state{};
  };
  auto const own = std::make_shared<kept>();
  return [=, &exec, &from](int repetition) {
    oktopk::detail::one_rank alone;
    oktopk::selection_context const context{exec, k, repetition, alone, own->scratch};
    if constexpr (Accumulates) {
      return own->selector.select(context, from.source(repetition), own->state).entries.size();
    } else {
      return own->selector.select(context, from.source(0).materialized(), own->state).entries.size();
    }
  };
}

/// What one would write first: a scan over all values, with a known threshold.
inline std::int64_t scan(space const& exec, vectors const& from, std::uint32_t threshold, workspace const& scratch) {
  float const* const values = from.accumulator.data();
  std::int32_t* const indices = scratch.indices.data();
  float* const kept = scratch.values.data();
  std::int64_t const capacity = scratch.indices.capacity();
  std::int64_t count = 0;
  Kokkos::parallel_scan(
      "select_bench::scan", Kokkos::RangePolicy<space, Kokkos::IndexType<std::int64_t>>(exec, 0, from.size()),
      KOKKOS_LAMBDA(std::int64_t i, std::int64_t & position, bool final) {
        if (oktopk::detail::magnitude_bits(values[i]) >= threshold) {
          if (final && position < capacity) {
            indices[position] = static_cast<std::int32_t>(i);
            kept[position] = values[i];
          }
          position += 1;
        }
      },
      count);
  return count;
}

inline selection make_kokkos_scan(space const& exec, vectors const& from, std::int64_t k) {
  auto const scratch = std::make_shared<workspace>();
  auto const thresholds = known_thresholds(exec, from, k);
  return [=, &exec, &from](int repetition) { // the accumulator is that of this repetition, made by the passes before
    scratch->reserve(exec, 2 * k);
    return scan(exec, from, thresholds[static_cast<std::size_t>(repetition % 2)], *scratch);
  };
}

/// The k-th magnitude by the standard library, which needs a copy to work in. On the host.
inline selection make_nth_element(space const&, vectors const& from, std::int64_t k) {
  auto const magnitudes = std::make_shared<std::vector<float>>(static_cast<std::size_t>(from.size()));
  return [=, &from](int) {
    float const* const values = from.accumulator.data();
    std::transform(values, values + from.size(), magnitudes->begin(), [](float x) { return std::abs(x); });
    std::nth_element(magnitudes->begin(), magnitudes->begin() + (k - 1), magnitudes->end(), std::greater<>());
    return (*magnitudes)[static_cast<std::size_t>(k - 1)] >= 0 ? k : 0;
  };
}

#ifdef KOKKOS_ENABLE_CUDA
/// The magnitudes sorted by Thrust, in a copy; the k-th is in place k then.
inline selection make_thrust_sort(space const& exec, vectors const& from, std::int64_t k) {
  device_vector const magnitudes(Kokkos::view_alloc(Kokkos::WithoutInitializing, "select_bench::magnitudes"),
                                 static_cast<std::size_t>(from.size()));
  return [=, &exec, &from](int) {
    take_magnitudes(exec, from.accumulator, magnitudes);
    sort_descending(exec, magnitudes);
    return k;
  };
}
#else
inline constexpr selection_factory make_thrust_sort = nullptr;
#endif

#ifdef SELECT_BENCH_WITH_CUB_TOPK
/// The k largest magnitudes and their places by CUB, in no order.
inline selection make_cub_top_k(space const& exec, vectors const& from, std::int64_t k) {
  auto const top_k = std::make_shared<cub_top_k>(exec, from.accumulator, k);
  return [=](int) {
    top_k->run();
    return k;
  };
}
#else
inline constexpr selection_factory make_cub_top_k = nullptr;
#endif

inline constexpr selector_entry selectors[] = {
    {"fused", make_fused, 3},
    {"kth", make_kth, 1},
    {"kth_by_histograms", make_kth_by_histograms, 1},
    {"exact", make_whole<oktopk::exact, false>, 1},
    {"refine", make_whole<oktopk::exact>, 3},
    {"reused_threshold", make_whole<oktopk::reused_threshold>, 3},
    {"gaussian_k", make_whole<oktopk::gaussian>, 3},
    {"chunked", make_whole<oktopk::chunked>, 3},
    {"compact", make_compact, 1},
    {"kokkos_scan", make_kokkos_scan, 1},
    {"nth_element", on_device ? nullptr : make_nth_element, 1},
    {"thrust_sort", make_thrust_sort, 1},
    {"cub_top_k", make_cub_top_k, 1},
};

} // namespace select_bench
