// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/call_context.hpp>
#include <oktopk/core/options.hpp>
#include <oktopk/format/concept.hpp>
#include <oktopk/partition/regions.hpp>

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace oktopk {

/// The most words of 4 bytes that one rank sends in a step.
struct word_bound {
  double entries = 0; ///< encoded entries, with the rounding of messages
  double control = 0; ///< headers, sizes, counts, histograms and boundaries
  double untold = 0;  ///< messages whose receiver does not know their size

  double total() const { return entries + control; }

  /// Over a communicator that does not tell sizes, each untold one is sent ahead in two words.
  template <class Comm>
  double total(Comm const& comm) const {
    return total() + (comm.tells_sizes() ? 0 : 2 * untold);
  }

  friend word_bound operator+(word_bound const& a, word_bound const& b) {
    return {a.entries + b.entries, a.control + b.control, a.untold + b.untold};
  }
};

namespace detail {

/// The most words that `entries` entries of a region take in `messages` messages, wherever they lie and however they
/// are cut. Includes the rounding of messages to 8 bytes if the format does not fix their sizes.
template <sparse_format Format>
double split_words_at_most(Format const& format, int messages, double entries, region where) {
  if constexpr (Format::exact_size) {
    return entries * (sizeof(typename Format::index_type) + sizeof(typename Format::value_type)) / 4;
  } else {
    auto const whole = static_cast<std::int64_t>(std::ceil(entries));
    auto const bytes = format.max_encoded_bytes(whole, where) + messages * (Format::bytes_per_cut + 8);
    return whole == 0 ? 0 : static_cast<double>(bytes) / 4;
  }
}

/// The size of a call, for bounds on what its steps send. The same on all ranks, but for what unbounded selections brought.
struct call_size {
  int ranks = 1;
  std::int64_t length = 0;
  std::int64_t k = 0;
  std::int64_t brought = 0;               ///< the most entries that this rank brings: k, or as many as it has brought
  std::optional<std::int64_t> selected{}; ///< the most entries that any rank brings; nothing if no number bounds them
  double to_others = 0;                   ///< of `brought`, the most that lie in regions of other ranks
};

/// Which ranks have entries for which others, the same on all ranks: a row of bits for each. Without rows all may have.
struct rank_pairs {
  std::span<std::int64_t const> rows; ///< of `width` numbers
  std::size_t width = 0;

  bool have(int from, int to) const {
    auto const place = static_cast<std::size_t>(to);
    return rows.empty() ||
           ((static_cast<std::uint64_t>(rows[static_cast<std::size_t>(from) * width + place / 64]) >> (place % 64)) &
            1) != 0;
  }
};

/// What a rank brings to a reduction.
template <sparse_format Format, execution_space E>
struct contribution {
  entries_of<Format, E> entries;
  std::optional<std::int64_t> most{}; ///< the most that any rank brings, if that is known; the same on all ranks
  rank_pairs
      pairs{}; ///< if they are there, the ranks have heard of each other's faults, and only these pairs exchange messages
};

/// The sums of this rank's region, and what it lost by sending its entries; valid until the next call of the step.
template <sparse_format Format, execution_space E>
struct reduced {
  entries_of<Format, E> sums;               ///< in the order of regions
  std::optional<std::int64_t> most_brought; ///< the most entries that any rank has brought, if that is known

  /// The losses of this rank in messages: an entry for each entry sent, below this rank's region and above it in the order
  /// of `order`. The lists ascend, one after the other. None if the format loses nothing.
  std::span<entries_of<Format, E> const> losses_below;
  std::span<entries_of<Format, E> const> losses_above;
  regions<E> const* order = nullptr; ///< of the schedule's groups
  int place = 0;                     ///< of this rank in it
};

/// The entries that a rank is to have in the end; see `deliverer`.
template <sparse_format Format, execution_space E>
struct delivered {
  entries_of<Format, E> all;            ///< in the order of regions; the same on all ranks
  entries_of<Format, E> own;            ///< of this rank's region, before they were encoded
  std::span<std::int64_t const> counts; ///< of each rank's entries in `all`, where the format is lossy
};

} // namespace detail

/// The result of a gather.
template <sparse_format Format, execution_space E>
struct gathered {
  entries_of<Format, E> entries;
  bool balanced = false; ///< true if parts were balanced before they were gathered
};

namespace detail {

template <class G>
concept has_gather_options = made_from_options<G> && requires(G const& gather) {
  { gather.describe() } -> std::convertible_to<std::string>;
  { gather.problem() } -> std::convertible_to<std::string>;
};

template <class G, class E, class Comm, class Format>
concept gathers_for = std::constructible_from<typename G::template step<E, Comm, Format>, G const&, Format const&> &&
                      requires(typename G::template step<E, Comm, Format>& step, call_context<E, Comm>& call,
                               entries_of<Format, E> mine, std::span<std::int64_t const> sizes) {
                        { step.run(call, mine, sizes) } -> std::same_as<gathered<Format, E>>;
                        {
                          std::as_const(step).bound_words(1, std::int64_t(), std::int64_t())
                        } -> std::same_as<word_bound>;
                      };

} // namespace detail

/// Brings every rank's part of the result to all ranks (Algorithm 1, line 13).
///
/// 1. `options` — a plain struct; `describe()` returns it as a text that the ranks compare, `problem()` says what is
///    wrong with it (empty when nothing is).
/// 2. `step<E, Comm, Format>` — the gather at work, made from the policy and the format; owns its buffers.
/// 3. `step.run(call, mine, sizes)` — collective; takes this rank's entries and the number of entries of each rank, the
///    same on all ranks, and returns all entries in rank order, the same on all ranks. They stay valid until the next
///    run. Indices ascend from rank to rank. Each rank's entries are encoded once, by that rank: with a lossy format
///    every rank, the sender included, gets the decoded values. All parts together should have `call.k` entries, where
///    0 means any number; the parts may have fewer or more.
/// 4. `step.bound_words(ranks, length, entries)` — the most words that one rank sends for so many entries in all.
template <class G, class E, class Comm, class Format>
concept gather_policy = detail::has_gather_options<G> && detail::gathers_for<G, E, Comm, Format>;

} // namespace oktopk
