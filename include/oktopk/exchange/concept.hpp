// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/core/sparse.hpp>
#include <oktopk/exchange/all_ranks.hpp>
#include <oktopk/format/concept.hpp>
#include <oktopk/select/concept.hpp>

#include <concepts>
#include <cstdint>
#include <span>
#include <string>

namespace oktopk {

/// What all ranks tell a gather alike.
struct gather_terms {
  std::int64_t length = 0;   ///< of the gradient
  std::int64_t expected = 0; ///< entries that all parts together are meant to have; 0 for no number in particular
};

/// The result of a gather.
template <sparse_format Format, execution_space E>
struct gathered {
  sparse_ref<typename Format::index_type, typename Format::value_type, typename E::memory_space> entries;
  bool balanced = false; ///< whether parts were balanced before they were gathered
};

template <class G>
concept has_gather_options =
    std::copyable<typename G::options> && std::constructible_from<G, typename G::options> && requires(G const& gather) {
      { gather.describe() } -> std::convertible_to<std::string>;
      { gather.fault() } -> std::convertible_to<std::string>;
    };

template <class G, class E, class Comm, class Format>
concept gathers_for =
    requires(G const& gather, E const& exec, Comm& comm,
             sparse_ref<typename Format::index_type, typename Format::value_type, typename E::memory_space> mine,
             std::span<std::int64_t const> sizes, gather_terms terms,
             typename G::template workspace<E, Comm, Format>& workspace) {
      {
        gather.template gather<E, Comm, Format>(exec, comm, mine, sizes, terms, workspace)
      } -> std::same_as<gathered<Format, E>>;
    };

/// How every rank's part of the result reaches all ranks (Algorithm 1, line 13).
///
/// 1. `options` — a plain struct; `describe()` writes it down for the ranks to compare, `fault()` says what is wrong
///    with it (empty when nothing is).
/// 2. `workspace<E, Comm, Format>` — the buffers of one algorithm; made without arguments.
/// 3. `gather(exec, comm, mine, sizes, terms, workspace)` — collective; from this rank's entries and the number of
///    entries of each rank, which is the same on all ranks, to all entries in rank order, the same on all ranks. They
///    lie in the workspace until the next call. Indices ascend from rank to rank.
template <class G, class E, class Comm, class Format>
concept gather_policy = has_gather_options<G> && gathers_for<G, E, Comm, Format>;

template <class S, class E, class Comm, class Format>
concept selects_among_ranks =
    selects_from<S, E, typename Format::index_type, typename Format::value_type, all_ranks<E, Comm, Format>,
                 candidates<typename Format::index_type, typename Format::value_type, typename E::memory_space>>;

/// A selector for the sums of all ranks' regions together (Algorithm 1, lines 9 to 12).
///
/// As `selector`, in the group `all_ranks`: collective, with a state that is the same on all ranks. It need not serve a
/// rank that selects alone.
template <class S, class E, class Comm, class Format>
concept global_selector = std::copy_constructible<S> && has_selector_options<S> && carries_state<S> &&
                          selects_among_ranks<S, E, Comm, Format>;

} // namespace oktopk
