// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/call_context.hpp>
#include <oktopk/comm/collectives.hpp>
#include <oktopk/comm/message_group.hpp>
#include <oktopk/comm/staging.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/core/kokkos_ext/profiling_region.hpp>
#include <oktopk/format/concept.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

namespace oktopk {

/// Entries that a rank sends in an allgatherv of parts with these sizes: Bruck's algorithm forwards the parts that
/// follow its own, so a large part is sent up to ceil(log2 P) times.
inline std::int64_t allgatherv_entries_sent(std::span<std::int64_t const> sizes, std::size_t rank) {
  std::int64_t sent = 0;
  std::int64_t window = 0;
  std::size_t counted = 0;
  for (std::size_t have = 1; have < sizes.size(); have *= 2) {
    std::size_t const moved = std::min(have, sizes.size() - have);
    for (; counted < moved; ++counted) {
      window += sizes[(rank + counted) % sizes.size()];
    }
    if (moved < counted) { // the last step moves fewer parts than it has
      window = 0;
      for (std::size_t part = 0; part < moved; ++part) {
        window += sizes[(rank + part) % sizes.size()];
      }
    }
    sent += window;
  }
  return sent;
}

namespace detail {

/// Entries one after the other that an allgatherv of parts with these sizes takes: the largest message of each step.
inline std::int64_t allgatherv_critical_entries(std::span<std::int64_t const> sizes) {
  std::int64_t critical = 0;
  for (std::size_t have = 1; have < sizes.size(); have *= 2) {
    std::size_t const moved = std::min(have, sizes.size() - have);
    std::int64_t window = 0;
    for (std::size_t part = 0; part < moved; ++part) {
      window += sizes[part];
    }
    std::int64_t largest = window;
    for (std::size_t rank = 1; rank < sizes.size(); ++rank) {
      window += sizes[(rank + moved - 1) % sizes.size()] - sizes[rank - 1];
      largest = std::max(largest, window);
    }
    critical += largest;
  }
  return critical;
}

} // namespace detail

/// Words that a rank sends in an allgatherv where each of the other parts has at most so many entries of a region: the
/// parts, rounded up to 8 bytes, and their sizes where the format leaves them open.
template <sparse_format Format>
double allgatherv_words_at_most(int ranks, std::int64_t entries_of_part, region where) {
  auto const part = static_cast<double>(detail::round_up_to_8(Format::max_encoded_bytes(entries_of_part, where)));
  return (ranks - 1) * (part / 4 + (Format::exact_size ? 0 : 2));
}

/// Every rank's entries to every rank, in rank order (paper, section 3.1.2: allgatherv by recursive doubling, which for
/// any P is Bruck's algorithm).
///
/// ceil(log2 P) messages; 2k(P-1)/P words where the parts are of one size, `allgatherv_entries_sent` in general.
/// Entries are encoded once, by who has them, and forwarded as they are.
template <execution_space E, communicator Comm, sparse_format Format>
class allgatherv {
public:
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;
  using entries_type = sparse_ref<index_type, value_type, typename E::memory_space>;

  /// Collective. `sizes` are the entries of each rank, identical on all ranks. The result is valid until the next call.
  entries_type run(call_context<E, Comm>& call, entries_type mine, std::span<std::int64_t const> sizes) {
    region const everything{0, call.length};
    return run(call, mine, sizes, [everything](std::size_t) { return everything; });
  }

  /// The same for parts that lie in narrower regions, `where(rank)`, the same on all ranks; formats can make use of it.
  template <class Where>
    requires std::invocable<Where, std::size_t>
  entries_type run(call_context<E, Comm>& call, entries_type mine, std::span<std::int64_t const> sizes,
                   Where const& where) {
    detail::profiling_region const profiled("oktopk::allgatherv");
    E const& exec = call.exec;
    auto const ranks = sizes.size();
    auto const rank = static_cast<std::size_t>(call.comm.rank());
    std::int64_t const total = make_room(call, sizes, where);
    cancel_on_unwind const guard(call.comm, messages_.requests()); // also between its messages
    std::int64_t const own_bytes = Format::encode(exec, mine, where(rank), parts_.data());
    parts_.push(exec, 0, own_bytes);
    learn_sizes(call.comm, own_bytes);
    detail::fence(exec, "oktopk::allgatherv::encoded");

    // Parts lie rotated, this rank's first, so that what is forwarded is always the front.
    for (std::size_t step = 0; step < ranks; ++step) {
      offsets_[step + 1] = offsets_[step] + detail::round_up_to_8(bytes_[(rank + step) % ranks]);
    }
    for (std::size_t have = 1; have < ranks; have *= 2) {
      std::size_t const moved = std::min(have, ranks - have);
      auto const to = static_cast<int>((rank + ranks - have) % ranks);
      auto const from = static_cast<int>((rank + have) % ranks);
      swap_parts(call, parts_.wire(0, offsets_[moved]), to,
                 parts_.wire(offsets_[have], offsets_[have + moved] - offsets_[have]), from);
    }
    std::int64_t const others = offsets_[std::min<std::size_t>(1, ranks)];
    parts_.pull(exec, others, offsets_[ranks] - others);
    std::int64_t position = 0;
    for (std::size_t part = 0; part < ranks; ++part) {
      std::size_t const step = (part + ranks - rank) % ranks;
      Format::decode(exec, static_cast<std::byte const*>(parts_.data() + offsets_[step]), bytes_[part], sizes[part],
                     where(part), indices_.data() + position, values_.data() + position);
      position += sizes[part];
    }
    return {indices_.data(), values_.data(), total};
  }

private:
  // Gives the number of all entries.
  template <class Where>
  std::int64_t make_room(call_context<E, Comm>& call, std::span<std::int64_t const> sizes, Where const& where) {
    std::int64_t total = 0;
    std::int64_t most = 0;
    bytes_.resize(sizes.size());
    for (std::size_t part = 0; part < sizes.size(); ++part) {
      total += sizes[part];
      bytes_[part] = Format::max_encoded_bytes(sizes[part], where(part));
      most += detail::round_up_to_8(bytes_[part]);
    }
    indices_.reserve(call.exec, total);
    values_.reserve(call.exec, total);
    parts_.reserve(call.exec, call.comm, most);
    offsets_.assign(sizes.size() + 1, 0);
    messages_.reset(2);
    return total;
  }

  // Only a format that may take less than its bound makes the ranks tell each other.
  void learn_sizes(Comm& comm, [[maybe_unused]] std::int64_t own_bytes) {
    if constexpr (!Format::exact_size) {
      allgather(comm, std::span<std::int64_t const>(&own_bytes, 1), std::span<std::int64_t>(bytes_), phase::control,
                collective_);
    }
  }

  // Everybody knows all sizes, so an empty message is none.
  void swap_parts(call_context<E, Comm>& call, std::span<std::byte> out, int to, std::span<std::byte> in, int from) {
    messages_.reset(2);
    if (!in.empty()) {
      messages_.receive(in, from, phase::gather, message_size::known);
    }
    if (!out.empty()) {
      messages_.send(out, to, phase::gather, message_size::known);
    }
    messages_.start(call.exec, call.comm);
    messages_.wait_all(call.comm);
  }

  message_group<Comm> messages_;
  message_buffer<E> parts_{"oktopk::allgatherv::parts"};
  buffer<index_type, typename E::memory_space> indices_{"oktopk::allgatherv::indices"};
  buffer<value_type, typename E::memory_space> values_{"oktopk::allgatherv::values"};
  std::vector<std::int64_t> bytes_;
  std::vector<std::int64_t> offsets_;
  collective_workspace collective_;
};

} // namespace oktopk
