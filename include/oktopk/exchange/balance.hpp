// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/call_context.hpp>
#include <oktopk/comm/cancel_on_unwind.hpp>
#include <oktopk/comm/message_group.hpp>
#include <oktopk/comm/staging.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/core/kokkos_ext/profiling_region.hpp>
#include <oktopk/core/kokkos_ext/range.hpp>
#include <oktopk/format/concept.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace oktopk {

/// One piece of the balancing scheme: positions [first, last) of all entries, in rank order, go from one rank to
/// another.
struct transfer {
  int from = 0;
  int to = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;

  bool operator==(transfer const&) const = default;
};

/// Who sends what to whom so that parts of these sizes become parts that differ by one at most, in the same order.
///
/// Computed alike on every rank from the gathered sizes (paper, section 3.1.2). Ascending in `first`; pieces that stay
/// where they are have `from == to`. At most 2P-1 pieces; a rank sends no more than it has, and one that has everything
/// sends (P-1)/P of it.
inline void balancing_scheme(std::span<std::int64_t const> sizes, std::vector<transfer>& scheme) {
  auto const ranks = static_cast<std::int64_t>(sizes.size());
  std::int64_t total = 0;
  for (std::int64_t const size : sizes) {
    total += size;
  }
  scheme.clear();
  int to = 0;
  std::int64_t position = 0;
  for (int from = 0; from < static_cast<int>(ranks); ++from) {
    std::int64_t const end = position + sizes[static_cast<std::size_t>(from)];
    while (position < end) {
      std::int64_t const target_end = detail::even_boundary(total, ranks, to + 1);
      if (position == target_end) {
        to += 1;
        continue;
      }
      std::int64_t const last = std::min(end, target_end);
      scheme.push_back({from, to, position, last});
      position = last;
    }
  }
}

/// The cost of balancing, for the rank that has most to do.
struct balancing_cost {
  std::int64_t entries = 0;  ///< sent or received, whichever is more
  std::int64_t messages = 0; ///< the same
};

/// The cost of a scheme, which names each rank's pieces one after the other, as sender and as receiver.
inline balancing_cost cost_of(std::span<transfer const> scheme) {
  balancing_cost most;
  balancing_cost out;
  balancing_cost in;
  for (std::size_t i = 0; i < scheme.size(); ++i) {
    transfer const& piece = scheme[i];
    out = i > 0 && scheme[i - 1].from == piece.from ? out : balancing_cost();
    in = i > 0 && scheme[i - 1].to == piece.to ? in : balancing_cost();
    if (piece.from != piece.to) {
      for (balancing_cost* each : {&out, &in}) {
        each->entries += piece.last - piece.first;
        each->messages += 1;
        most.entries = std::max(most.entries, each->entries);
        most.messages = std::max(most.messages, each->messages);
      }
    }
  }
  return most;
}

/// Moves entries between ranks so that all have about the same number (paper, section 3.1.2, Fig. 3).
///
/// Point to point; at most 2k(P-1)/P words sent, by a rank that has everything; less in any other case.
template <execution_space E, communicator Comm, sparse_format Format>
class balance {
public:
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;
  using entries_type = sparse_ref<index_type, value_type, typename E::memory_space>;

  /// Collective. `sizes` are the entries of each rank, identical on all ranks, and become those after balancing. The
  /// result is valid until the next call.
  entries_type run(call_context<E, Comm>& call, entries_type mine, std::span<std::int64_t> sizes) {
    detail::profiling_region const profiled("oktopk::balance");
    E const& exec = call.exec;
    int const rank = call.comm.rank();
    auto const ranks = static_cast<std::int64_t>(sizes.size());
    region const everything{0, call.length};
    balancing_scheme(sizes, scheme_);
    std::int64_t const mine_begin = std::accumulate(sizes.begin(), sizes.begin() + rank, std::int64_t(0));
    std::int64_t const total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0));
    std::int64_t const kept_begin = detail::even_boundary(total, ranks, rank);
    std::int64_t const kept = detail::even_boundary(total, ranks, rank + 1) - kept_begin;
    make_room(call, total);
    make_room_for_pieces(call);

    std::int64_t out = 0;
    std::int64_t in = 0;
    messages_.reset(scheme_.size());
    cancel_on_unwind const guard(call.comm, messages_.requests());
    arrivals_.clear();
    for (transfer const& piece : scheme_) {
      std::int64_t const room = piece_bytes(piece, call.length);
      std::int64_t const place = place_bytes(piece, call.length);
      if (piece.to == rank && piece.from != rank) {
        arrivals_.push_back(
            {in, messages_.receive(incoming_.wire(in, room), piece.from, phase::balance, size_of_piece), piece});
        in += place;
      } else if (piece.from == rank && piece.to != rank) {
        std::int64_t const bytes = Format::encode(exec, mine.slice(piece.first - mine_begin, piece.last - mine_begin),
                                                  everything, outgoing_.data() + out);
        outgoing_.push(exec, out, bytes);
        messages_.send(outgoing_.wire(out, bytes), piece.to, phase::balance, size_of_piece);
        out += place;
      } else if (piece.from == rank) {
        keep_piece(exec, mine.slice(piece.first - mine_begin, piece.last - mine_begin), piece.first - kept_begin);
      }
    }
    messages_.start(exec, call.comm, "oktopk::balance::encoded");
    messages_.wait_all(call.comm);
    for (arrival const& each : arrivals_) {
      std::int64_t const bytes = messages_.bytes(each.message);
      std::int64_t const position = each.piece.first - kept_begin;
      incoming_.pull(exec, each.offset, bytes);
      Format::decode(exec, static_cast<std::byte const*>(incoming_.data() + each.offset), bytes,
                     each.piece.last - each.piece.first, everything, indices_.data() + position,
                     values_.data() + position);
    }
    for (std::int64_t r = 0; r < ranks; ++r) {
      sizes[static_cast<std::size_t>(r)] =
          detail::even_boundary(total, ranks, r + 1) - detail::even_boundary(total, ranks, r);
    }
    return {indices_.data(), values_.data(), kept};
  }

  /// Room for parts of so many entries together, whoever has them. To be called every time, also when nothing is to be
  /// balanced, so that a call that balances is not the first to allocate. It may still allocate for a format whose
  /// pieces can take more bytes than the whole.
  void make_room(call_context<E, Comm>& call, std::int64_t total) {
    std::int64_t const pieces = call.comm.size();
    std::int64_t const most = detail::round_up_to_8(Format::max_encoded_bytes(total, {0, call.length})) + 8 * pieces;
    outgoing_.reserve(call.exec, call.comm, most);
    incoming_.reserve(call.exec, call.comm, most);
    indices_.reserve(call.exec, total / pieces + 1);
    values_.reserve(call.exec, total / pieces + 1);
    scheme_.reserve(static_cast<std::size_t>(2 * pieces));
    arrivals_.reserve(static_cast<std::size_t>(2 * pieces));
    messages_.reset(static_cast<std::size_t>(2 * pieces));
  }

  /// Copies the entries that stay; public because nvcc wants the function around a kernel to be.
  void keep_piece(E const& exec, entries_type piece, std::int64_t position) const {
    index_type* const indices = indices_.data() + position;
    value_type* const values = values_.data() + position;
    Kokkos::parallel_for(
        "oktopk::balance::keep", detail::index_range<E>(exec, 0, piece.size()), KOKKOS_LAMBDA(std::int64_t i) {
          indices[i] = piece.indices(i);
          values[i] = piece.values(i);
        });
  }

private:
  struct arrival {
    std::int64_t offset;
    std::size_t message;
    transfer piece;
  };

  // Both sides know how many entries a piece has, and no more than that.
  static constexpr message_size size_of_piece = Format::exact_size ? message_size::known : message_size::unknown;

  static std::int64_t piece_bytes(transfer const& piece, std::int64_t length) {
    return Format::max_encoded_bytes(piece.last - piece.first, {0, length});
  }

  static std::int64_t place_bytes(transfer const& piece, std::int64_t length) {
    return detail::round_up_to_8(piece_bytes(piece, length));
  }

  // What this rank's pieces of the scheme take, which only a format with a superadditive bound says of the whole.
  void make_room_for_pieces(call_context<E, Comm>& call) {
    std::int64_t out = 0;
    std::int64_t in = 0;
    for (transfer const& piece : scheme_) {
      if (piece.from != piece.to) {
        out += piece.from == call.comm.rank() ? place_bytes(piece, call.length) : 0;
        in += piece.to == call.comm.rank() ? place_bytes(piece, call.length) : 0;
      }
    }
    outgoing_.reserve(call.exec, call.comm, out);
    incoming_.reserve(call.exec, call.comm, in);
  }

  message_buffer<E> outgoing_{"oktopk::balance::outgoing"};
  message_buffer<E> incoming_{"oktopk::balance::incoming"};
  buffer<index_type, typename E::memory_space> indices_{"oktopk::balance::indices"};
  buffer<value_type, typename E::memory_space> values_{"oktopk::balance::values"};
  std::vector<transfer> scheme_;
  std::vector<arrival> arrivals_;
  message_group<Comm> messages_;
};

} // namespace oktopk
