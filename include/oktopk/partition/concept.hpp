// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/collectives.hpp>
#include <oktopk/core/shared_numbers.hpp>
#include <oktopk/core/sparse.hpp>

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace oktopk {

namespace detail {

/// How many entries all ranks have below an index.
struct known_count {
  std::int64_t index = 0;
  std::int64_t below = 0;

  bool operator<(known_count const& other) const { return index < other.index; }
  bool operator==(known_count const& other) const { return index == other.index; }
};

} // namespace detail

/// Room that partitioners keep between calls.
template <execution_space E>
struct partition_workspace {
  shared_numbers<std::int64_t, E> numbers{"oktopk::partition::numbers"};
  std::vector<std::int64_t> counts;
  std::vector<detail::known_count> known;
  collective_workspace collective;
};

template <class P>
concept has_partitioner_options =
    std::copyable<typename P::options> && std::constructible_from<P, typename P::options> &&
    requires(P const& partitioner, std::int64_t iteration) {
      { partitioner.describe() } -> std::convertible_to<std::string>;
      { partitioner.fault() } -> std::convertible_to<std::string>;
      { partitioner.due(iteration) } -> std::same_as<bool>;
      { partitioner.bound_words(1) } -> std::same_as<double>;
    };

template <class P, class E, class Comm>
concept partitions_for = requires(P const& partitioner, E const& exec, Comm& comm,
                                  array_ref<std::int32_t const, typename E::memory_space> selected, std::int64_t length,
                                  std::span<std::int64_t> boundaries, partition_workspace<E>& workspace) {
  { partitioner.partition(exec, comm, selected, length, boundaries, workspace) } -> std::same_as<void>;
};

/// Who owns which region of the index space.
///
/// * `due(iteration)` — whether the regions are to be decided anew; the same on all ranks.
/// * `bound_words(ranks)` — bound on the words of 4 bytes that one rank sends when regions are decided.
/// * `partition(exec, comm, selected, length, boundaries, workspace)` — collective; from this rank's selected indices
///   (ascending) to P+1 ascending boundaries, the first 0, the last `length`, identical on all ranks. Region r is
///   [boundaries[r], boundaries[r+1]) and belongs to rank r.
template <class P, class E, class Comm>
concept partitioner = has_partitioner_options<P> && partitions_for<P, E, Comm>;

} // namespace oktopk
