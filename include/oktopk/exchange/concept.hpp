// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/call_context.hpp>
#include <oktopk/core/sparse.hpp>
#include <oktopk/exchange/all_ranks.hpp>
#include <oktopk/format/concept.hpp>
#include <oktopk/select/concept.hpp>

#include <concepts>
#include <cstdint>
#include <span>
#include <string>

namespace oktopk {

/// The result of a gather.
template <sparse_format Format, execution_space E>
struct gathered {
  entries_of<Format, E> entries;
  bool balanced = false; ///< whether parts were balanced before they were gathered
};

template <class G>
concept has_gather_options =
    std::copyable<typename G::options> && std::constructible_from<G, typename G::options> && requires(G const& gather) {
      { gather.describe() } -> std::convertible_to<std::string>;
      { gather.problem() } -> std::convertible_to<std::string>;
    };

template <class G, class E, class Comm, class Format>
concept gathers_for = std::constructible_from<typename G::template step<E, Comm, Format>, G const&, Format const&> &&
                      requires(typename G::template step<E, Comm, Format>& step, call_context<E, Comm>& call,
                               entries_of<Format, E> mine, std::span<std::int64_t const> sizes) {
                        { step.run(call, mine, sizes) } -> std::same_as<gathered<Format, E>>;
                      };

/// How every rank's part of the result reaches all ranks (Algorithm 1, line 13).
///
/// 1. `options` — a plain struct; `describe()` writes it down for the ranks to compare, `problem()` says what is wrong
///    with it (empty when nothing is).
/// 2. `step<E, Comm, Format>` — the gather at work, made from the policy and the format; owns its buffers.
/// 3. `step.run(call, mine, sizes)` — collective; from this rank's entries and the number of entries of each rank,
/// which
///    is the same on all ranks, to all entries in rank order, the same on all ranks. They stay valid until the next
///    run. Indices ascend from rank to rank. Each rank's entries are encoded once, by that rank: of a lossy format
///    every rank, the sender included, has what was decoded. All parts together are meant to have `call.k` entries, or
///    0 for no number in particular; the parts may have fewer or more.
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
