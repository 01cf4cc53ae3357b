// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/call_context.hpp>
#include <oktopk/comm/message_group.hpp>
#include <oktopk/core/cost.hpp>
#include <oktopk/exchange/balance.hpp>
#include <oktopk/exchange/concept.hpp>
#include <oktopk/format/concept.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

namespace oktopk {

/// A gather in a ring: every rank passes on what it gets, in pieces of a part of mean size, so that one large part keeps
/// no rank waiting.
///
/// Whatever the parts are, a rank sends and receives every entry at most once: 2k(P-1)/P words in COO where parts are
/// even, 2k at worst, and it is never balanced. `balanced_allgatherv` sends up to 4k(P-1)/P. That takes P-1 messages, and
/// up to P more where parts are uneven, one after the other: it pays on few ranks with uneven parts.
struct ring_allgatherv {
  struct options {};

  ring_allgatherv() : ring_allgatherv(options{}) {}
  explicit ring_allgatherv(options) {}

  static std::string describe() { return "ring_allgatherv"; }
  static std::string problem() { return {}; }

  template <execution_space E, communicator Comm, sparse_format Format>
  class step;
};

/// The gather at work; see `gather_policy`.
template <execution_space E, communicator Comm, sparse_format Format>
class ring_allgatherv::step {
public:
  using entries_type = entries_of<Format, E>;

  explicit step(ring_allgatherv const&, Format const& format = {}) : pieces_(format) {}

  gathered<Format, E> run(call_context<E, Comm>& call, entries_type mine, std::span<std::int64_t const> sizes) {
    detail::profiling_region const profiled("oktopk::ring_allgatherv");
    std::int64_t const total = plan(call, sizes);
    region const everything{0, call.length};
    detail::cancel_on_unwind const guard(call.comm, messages_.requests());
    std::size_t own = 0; // pieces
    std::int64_t taken = 0;
    for (; own < order_.size() && order_[own].from == call.comm.rank(); ++own) {
      piece& each = order_[own];
      each.bytes = pieces_.encode(call.exec, mine.slice(taken, taken + each.count), everything, bytes_, each.offset);
      taken += each.count;
    }
    detail::fence(call.exec, "oktopk::ring_allgatherv::encoded");
    exchange(call, own);
    for (std::size_t i = own; i < order_.size(); ++i) {
      bytes_.pull(call.exec, order_[i].offset, order_[i].bytes);
    }
    for (piece const& each : order_) {
      std::int64_t const bytes =
          pieces_.encoded_bytes(call.exec, each.count, everything, bytes_, each.offset, each.bytes);
      pieces_.decode(call.exec, bytes_, each.offset, bytes, each.count, everything, indices_.data() + each.first,
                     values_.data() + each.first);
    }
    return {{indices_.data(), values_.data(), total}, false};
  }

  word_bound bound_words(int ranks, std::int64_t length, std::int64_t entries) const {
    if (ranks == 1) {
      return {};
    }
    int const pieces = 2 * ranks; // each part has a last one that may be smaller than the mean
    constexpr bool whole_words = (sizeof(typename Format::index_type) + sizeof(typename Format::value_type)) % 8 == 0;
    return {detail::split_words_at_most(pieces_.format(), pieces, static_cast<double>(entries), {0, length}) +
                (whole_words ? 0.0 : pieces),
            Format::exact_size ? 0 : 2.0 * pieces, Format::exact_size ? 0.0 : pieces};
  }

  /// Parts of entries/P.
  static detail::call_cost expected_cost(ring_allgatherv const&, Format const& format, int ranks, double length,
                                         double entries) {
    double const part = entries / ranks;
    return {.messages = ranks - 1.0,
            .bytes = (ranks - 1) * detail::expected_bytes(format, part, length / ranks),
            .encoded = detail::expected_places(format, part, length / ranks),
            .decoded = detail::expected_places(format, part, length / ranks) * ranks,
            .passes = 1.0 + ranks};
  }

private:
  // Consecutive entries of a rank, encoded together.
  struct piece {
    int from = 0;
    std::int64_t first = 0; ///< of all entries, in rank order
    std::int64_t count = 0;
    std::int64_t offset = 0; ///< of its bytes
    std::int64_t bytes = 0;  ///< room for them, and how many there are as soon as they are here
  };

  // All pieces in the order in which this rank has them: its own, then those of the rank before it, and so on. Returns
  // the number of all entries.
  std::int64_t plan(call_context<E, Comm>& call, std::span<std::int64_t const> sizes) {
    std::size_t const ranks = sizes.size();
    std::int64_t const total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0));
    auto const parts = static_cast<std::int64_t>(ranks);
    std::int64_t const most = total / parts + (total % parts > 0 ? 1 : 0); // entries of a piece
    std::int64_t offset = 0;
    order_.clear();
    for (std::size_t back = 0; back < ranks; ++back) {
      std::size_t const from = (static_cast<std::size_t>(call.comm.rank()) + ranks - back) % ranks;
      std::int64_t first =
          std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(from), std::int64_t(0));
      for (std::int64_t left = sizes[from]; left > 0;) {
        std::int64_t const count = std::min(left, most);
        std::int64_t const room = pieces_.capacity(count, {0, call.length});
        order_.push_back({static_cast<int>(from), first, count, offset, room});
        offset += room;
        first += count;
        left -= count;
      }
    }
    indices_.reserve(call.exec, total);
    values_.reserve(call.exec, total);
    bytes_.reserve(call.exec, call.comm, offset);
    messages_.reset(2);
    return total;
  }

  // Each round receives a piece and sends one, until all are here and sent on.
  void exchange(call_context<E, Comm>& call, std::size_t own) {
    int const ranks = call.comm.size();
    int const next = (call.comm.rank() + 1) % ranks;
    int const before = (call.comm.rank() + ranks - 1) % ranks;
    auto const has_it = std::ranges::find(order_, next, &piece::from); // what comes from the next rank is last
    auto const to_send = ranks == 1 ? 0 : static_cast<std::size_t>(has_it - order_.begin());
    std::size_t sent = 0;
    std::size_t here = own;
    while (sent < to_send || here < order_.size()) {
      bool const receives = here < order_.size();
      bool const sends = sent < std::min(to_send, here);
      messages_.reset(2);
      if (receives) {
        piece const& each = order_[here];
        messages_.receive(bytes_.wire(each.offset, each.bytes), before, phase::gather, size_of_piece);
      }
      if (sends) {
        piece const& each = order_[sent];
        messages_.send(bytes_.wire(each.offset, each.bytes), next, phase::gather, size_of_piece);
      }
      messages_.start(call.exec, call.comm);
      messages_.wait_all(call.comm);
      if (receives) {
        order_[here].bytes = messages_.bytes(0);
      }
      here += receives ? 1 : 0;
      sent += sends ? 1 : 0;
    }
  }

  // Both sides know the number of entries of a piece, and nothing else.
  static constexpr auto size_of_piece =
      Format::exact_size ? detail::message_size::known : detail::message_size::unknown;

  detail::encoded_pieces<E, Format> pieces_;
  detail::message_group<Comm> messages_;
  detail::message_buffer<E> bytes_{"oktopk::ring_allgatherv::bytes"};
  detail::buffer<typename Format::index_type, typename E::memory_space> indices_{"oktopk::ring_allgatherv::indices"};
  detail::buffer<typename Format::value_type, typename E::memory_space> values_{"oktopk::ring_allgatherv::values"};
  std::vector<piece> order_;
};

} // namespace oktopk
