// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/call_context.hpp>
#include <oktopk/comm/message_group.hpp>
#include <oktopk/comm/revocation.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/format/concept.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace oktopk::detail {

/// One piece of the balancing scheme: positions [first, last) of all entries, in rank order, go from one rank to
/// another.
struct transfer {
  int from = 0;
  int to = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;

  bool operator==(transfer const&) const = default;
};

/// The transfers that make parts of these sizes differ by one at most, in the same order.
///
/// Computed alike on every rank from the gathered sizes (paper, section 3.1.2). Ascending in `first`; pieces that stay
/// where they are have `from == to`. At most 2P-1 pieces; a rank sends no more than it has, and one that has everything
/// sends (P-1)/P of it.
inline void balancing_scheme(std::span<std::int64_t const> sizes, std::vector<transfer>& scheme) {
  auto const ranks = static_cast<std::int64_t>(sizes.size());
  std::int64_t const total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0));
  scheme.clear();
  int to = 0;
  std::int64_t position = 0;
  for (int from = 0; from < static_cast<int>(ranks); ++from) {
    std::int64_t const end = position + sizes[static_cast<std::size_t>(from)];
    while (position < end) {
      std::int64_t const last = std::min(end, even_boundary(total, ranks, to + 1));
      if (position == last) { // the part is full
        to += 1;
      } else {
        scheme.push_back({from, to, position, last});
        position = last;
      }
    }
  }
}

/// The scheme that moves nothing.
inline void unbalanced_scheme(std::span<std::int64_t const> sizes, std::vector<transfer>& scheme) {
  scheme.clear();
  std::int64_t position = 0;
  for (int rank = 0; rank < static_cast<int>(sizes.size()); ++rank) {
    std::int64_t const end = position + sizes[static_cast<std::size_t>(rank)];
    if (end > position) {
      scheme.push_back({rank, rank, position, end});
    }
    position = end;
  }
}

/// The cost of balancing, for the rank that has most to do.
struct balancing_cost {
  std::int64_t entries = 0;  ///< sent or received, whichever is more
  std::int64_t messages = 0; ///< the same
};

/// The cost of a scheme. The pieces of one sender follow each other in it, and so do the pieces of one receiver.
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

/// Encoded entries that are sent on as they are. All ranks know their count; their size stands before them if the
/// format does not fix it (2 words). Pieces are rounded up to 8 bytes, so that they follow each other in a message.
template <execution_space E, sparse_format Format>
class encoded_pieces {
public:
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;

  static constexpr std::int64_t header_bytes = Format::exact_size ? 0 : message_header_bytes;

  /// The most bytes by which the room for a piece grows when the piece is cut in two.
  static constexpr std::int64_t capacity_per_cut = header_bytes + Format::bytes_per_cut + 8;

  explicit encoded_pieces(Format const& format) : format_(format) {}

  Format const& format() const { return format_; }

  /// The most bytes of a piece of so many entries.
  std::int64_t capacity(std::int64_t count, region where) const {
    return count == 0 ? 0 : header_bytes + detail::round_up_to_8(format_.max_encoded_bytes(count, where));
  }

  /// Writes a piece to a place in a buffer: for kernels, and, once `exec` has been waited for, for messages. Returns
  /// its bytes.
  std::int64_t encode(E const& exec, entries_of<Format, E> entries, region where, message_buffer<E> const& to,
                      std::int64_t offset) const {
    if (entries.size() == 0) {
      return 0;
    }
    std::int64_t const bytes = format_.encode(exec, entries, where, to.data() + offset + header_bytes);
    to.push(exec, offset + header_bytes, bytes);
    if constexpr (header_bytes > 0) {
      to.put(exec, offset, static_cast<std::uint64_t>(bytes));
    }
    to.clear(exec, offset + header_bytes + bytes, detail::round_up_to_8(bytes) - bytes);
    return header_bytes + detail::round_up_to_8(bytes);
  }

  /// The bytes of the encoded entries of the piece at a place, as messages see it, of which `available` bytes have
  /// arrived. An `error` if they are more than `count` entries can take, or more than have arrived.
  std::int64_t encoded_bytes(E const& exec, std::int64_t count, region where, message_buffer<E> const& from,
                             std::int64_t offset, std::int64_t available) const {
    std::int64_t const most = format_.max_encoded_bytes(count, where);
    auto bytes = static_cast<std::uint64_t>(most);
    if constexpr (header_bytes > 0) {
      bytes = available < header_bytes ? ~std::uint64_t(0) : from.get(exec, offset);
    }
    if (bytes > static_cast<std::uint64_t>(most) ||
        header_bytes + round_up_to_8(static_cast<std::int64_t>(bytes)) > available) {
      throw error(fault::damaged_message,
                  std::to_string(available) + " bytes arrived for " + std::to_string(count) + " entries, which " +
                      (header_bytes > 0 ? "are not what their header says" : "take " + std::to_string(most)));
    }
    return static_cast<std::int64_t>(bytes);
  }

  /// Enqueues the decoding of a piece.
  void decode(E const& exec, message_buffer<E> const& from, std::int64_t offset, std::int64_t bytes, std::int64_t count,
              region where, index_type* indices, value_type* values) const {
    format_.decode(exec, static_cast<std::byte const*>(from.data() + offset + header_bytes), bytes, count, where,
                   indices, values);
  }

private:
  Format format_;
};

/// Brings every piece of a scheme, encoded, to the rank of its part (paper, section 3.1.2, Fig. 3).
///
/// Entries are encoded once, by the rank that has them, and stay encoded: a lossy format rounds once. Point to point;
/// at most 2k(P-1)/P words sent in COO, by a rank that has everything; less in any other case, and nothing where every
/// piece stays where it is.
template <execution_space E, communicator Comm, sparse_format Format>
class balance {
public:
  using entries_type = entries_of<Format, E>;

  explicit balance(Format const& format = {}) : pieces_(format) {}

  /// Collective. `mine` are this rank's entries, the scheme and `where(rank)`, the region of a rank's entries, are the
  /// same on all ranks. Writes the pieces of this rank's part one after the other to the front of `part`, for messages,
  /// and returns their bytes. If its part has no pieces of other ranks, they are there for kernels, too.
  template <class Where>
  std::int64_t run(call_context<E, Comm>& call, entries_type mine, std::span<detail::transfer const> scheme,
                   Where const& where, detail::message_buffer<E>& part) {
    int const rank = call.comm.rank();
    bool const alone = std::ranges::none_of(
        scheme, [rank](detail::transfer const& piece) { return piece.to == rank && piece.from != rank; });
    reserve_for_pieces(call, scheme, where);
    messages_.reset(scheme.size());
    detail::cancel_on_unwind const guard(call.comm, messages_.requests());
    places_.clear();
    std::int64_t out = 0;
    std::int64_t in = 0;
    std::int64_t taken = 0; // of this rank's entries
    std::int64_t filled = 0;
    for (detail::transfer const& piece : scheme) {
      std::int64_t const count = piece.last - piece.first;
      region const source = where(static_cast<std::size_t>(piece.from));
      if (piece.from == rank) {
        entries_type const share = mine.slice(taken, taken + count);
        taken += count;
        if (piece.to == rank && alone) {
          filled = pieces_.encode(call.exec, share, source, part, 0);
          continue;
        }
        std::int64_t const bytes = pieces_.encode(call.exec, share, source, outgoing_, out);
        if (piece.to == rank) {
          places_.push_back({&outgoing_, out, bytes, no_message});
        } else {
          messages_.send(outgoing_.wire(out, bytes), piece.to, phase::balance, size_of_piece);
        }
        out += pieces_.capacity(count, source);
      } else if (piece.to == rank) {
        std::int64_t const capacity = pieces_.capacity(count, source);
        places_.push_back({&incoming_, in, capacity,
                           messages_.receive(incoming_.wire(in, capacity), piece.from, phase::balance, size_of_piece)});
        in += capacity;
      }
    }
    if (out == 0 && in == 0) {
      return filled;
    }
    detail::profiling_region const profiled("oktopk::balance");
    messages_.start(call.exec, call.comm, "oktopk::balance::encoded");
    messages_.wait_all(call.comm);
    for (place const& each : places_) {
      std::int64_t const bytes = each.message == no_message ? each.bytes : messages_.bytes(each.message);
      part.copy(call.exec, filled, *each.from, each.offset, bytes);
      filled += bytes;
    }
    return filled;
  }

  /// Reserves room for parts of `total` entries together, on whichever rank they are. To be called every time, also
  /// when nothing is to be balanced, so that a call that balances is not the first to allocate.
  void reserve_buffers(call_context<E, Comm>& call, std::int64_t total) {
    std::int64_t const pieces = call.comm.size();
    std::int64_t const most = pieces_.capacity(total, {0, call.length}) + pieces * pieces_.capacity_per_cut;
    outgoing_.reserve(call.exec, call.comm, most);
    incoming_.reserve(call.exec, call.comm, most);
    places_.reserve(static_cast<std::size_t>(2 * pieces));
    messages_.reset(static_cast<std::size_t>(2 * pieces));
  }

private:
  // A piece of this rank's part, before it is put in its place.
  struct place {
    detail::message_buffer<E> const* from;
    std::int64_t offset;
    std::int64_t bytes;
    std::size_t message;
  };

  static constexpr std::size_t no_message = std::numeric_limits<std::size_t>::max();

  // Both sides know the number of entries of a piece, and nothing else.
  static constexpr message_size size_of_piece = Format::exact_size ? message_size::known : message_size::unknown;

  // Reserves more room than `reserve_buffers` if the regions of the parts are not disjoint.
  template <class Where>
  void reserve_for_pieces(call_context<E, Comm>& call, std::span<detail::transfer const> scheme, Where const& where) {
    std::int64_t out = 0;
    std::int64_t in = 0;
    for (detail::transfer const& piece : scheme) {
      std::int64_t const capacity =
          pieces_.capacity(piece.last - piece.first, where(static_cast<std::size_t>(piece.from)));
      out += piece.from == call.comm.rank() ? capacity : 0;
      in += piece.to == call.comm.rank() && piece.from != piece.to ? capacity : 0;
    }
    outgoing_.reserve(call.exec, call.comm, out);
    incoming_.reserve(call.exec, call.comm, in);
  }

  detail::encoded_pieces<E, Format> pieces_;
  detail::message_buffer<E> outgoing_{"oktopk::balance::outgoing"};
  detail::message_buffer<E> incoming_{"oktopk::balance::incoming"};
  std::vector<place> places_;
  detail::message_group<Comm> messages_;
};

} // namespace oktopk::detail
