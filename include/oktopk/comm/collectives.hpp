// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/revocation.hpp>
#include <oktopk/core/integers.hpp>

#include <algorithm>
#include <array>
#include <vector>

// Collectives for control data: a few numbers per rank, in host memory, built from messages so that each byte is
// counted.
namespace oktopk {

/// Memory that the collectives keep between calls.
class collective_workspace {
public:
  /// `count` elements, uninitialised; the same memory every time.
  template <class T>
  std::span<T> space(std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= alignof(unit));
    std::size_t const units = (count * sizeof(T) + sizeof(unit) - 1) / sizeof(unit);
    if (units_.size() < units) {
      units_.resize(units);
    }
    return {reinterpret_cast<T*>(units_.data()), count};
  }

private:
  // Not std::max_align_t: nvcc 13.0 breaks on a vector of it ("find_allocated_name_reference").
  struct alignas(16) unit {
    std::byte bytes[16];
  };

  std::vector<unit> units_;
};

namespace detail {

template <communicator Comm>
void send_alone(Comm& comm, std::span<std::byte const> out, int to, phase use) {
  typename Comm::request one;
  cancel_on_unwind const guard(comm, one);
  one = comm.isend(out, to, use);
  comm.wait_all(std::span(&one, 1));
}

template <communicator Comm>
void receive_alone(Comm& comm, std::span<std::byte> in, int from, phase use) {
  typename Comm::request one;
  cancel_on_unwind const guard(comm, one);
  one = comm.irecv(in, from, use);
  comm.wait_all(std::span(&one, 1));
}

/// Maps any number of ranks to a core of the largest power of two. The first ranks fold in pairs, each of which has one
/// place in the core (Thakur et al. 2005, section 4.5).
struct folded_ranks {
  int core = 1;           ///< places: 2^m <= P
  int folded = 0;         ///< pairs: P - 2^m
  int place = 0;          ///< of this rank, or of the pair's even rank
  bool in_pair = false;   ///< true if this rank shares a place
  bool is_folded = false; ///< true if it is the odd one of a pair, which is not in the core

  folded_ranks(int rank, int ranks) {
    while (core * 2 <= ranks) {
      core *= 2;
    }
    folded = ranks - core;
    in_pair = rank < 2 * folded;
    is_folded = in_pair && rank % 2 == 1;
    place = in_pair ? rank / 2 : rank - folded;
  }

  int rank_at(int p) const { return p < folded ? 2 * p : p + folded; }
};

/// The most words that a rank sends in `allreduce_integers` of so many 64-bit integers.
inline double allreduce_words_at_most(int ranks, std::int64_t integers) {
  return 2.0 * static_cast<double>(integers) * ceil_log2(ranks);
}

/// Sends one byte to every other rank, if `send`, and receives one from each, if `receive`.
template <communicator Comm>
void notify_all(Comm& comm, bool send, bool receive, phase use) {
  std::byte const mine{1};
  auto const ranks = static_cast<std::size_t>(comm.size());
  std::vector<std::byte> theirs(ranks);
  std::vector<typename Comm::request> requests;
  requests.reserve(2 * ranks);
  cancel_on_unwind const guard(comm, requests);
  // Each rank begins with its next neighbour, so that not all send to the same rank at once.
  for (int step = 1; step < comm.size(); ++step) {
    int const below = (comm.rank() + comm.size() - step) % comm.size();
    int const above = (comm.rank() + step) % comm.size();
    if (receive) {
      requests.push_back(comm.irecv(std::span(&theirs[static_cast<std::size_t>(below)], 1), below, use));
    }
    if (send) {
      requests.push_back(comm.isend(std::span(&mine, 1), above, use));
    }
  }
  comm.wait_all(std::span<typename Comm::request>(requests));
}

/// Barrier: every rank sends to every other one. One step, P-1 messages of one byte each way. Collective.
template <communicator Comm>
void barrier_all_to_all(Comm& comm, phase use = phase::control) {
  notify_all(comm, true, true, use);
}

/// Barrier: every rank sends to `root`, the same on all ranks, which then sends to every rank. Two steps, one message
/// of one byte each way, P-1 at the root. Collective.
template <communicator Comm>
void barrier_all_to_one(Comm& comm, int root = 0, phase use = phase::control) {
  if (comm.rank() == root) {
    cancel_on_unwind const guard(comm); // between the steps, too
    notify_all(comm, false, true, use);
    notify_all(comm, true, false, use);
    return;
  }
  std::byte here{1};
  send_alone(comm, std::span<std::byte const>(&here, 1), root, use);
  receive_alone(comm, std::span(&here, 1), root, use);
}

/// Sends to one peer and receives from another at once; both messages have the same phase.
template <communicator Comm>
void exchange(Comm& comm, std::span<std::byte const> out, int to, std::span<std::byte> in, int from, phase use) {
  std::array<typename Comm::request, 2> requests{};
  detail::cancel_on_unwind const guard(comm, requests);
  requests[0] = comm.irecv(in, from, use);
  requests[1] = comm.isend(out, to, use);
  comm.wait_all(std::span<typename Comm::request>(requests));
}

} // namespace detail

/// An allreduce by messages of `comm`, for data of the host: 2n(P-1)/P elements each way in 2(P-1) messages.
///
/// Each of P parts travels round the ring of ranks twice: first it is reduced, then it is sent to all ranks (Patarasuk
/// and Yuan, 2009), so all ranks get the same bits. `scratch` grows to n/P elements. For transports without an
/// allreduce of their own. Collective.
template <class Comm, class T>
void reduce_in_ring(Comm& comm, std::span<T> data, reduction op, phase use, std::vector<T>& scratch) {
  int const ranks = comm.size();
  int const rank = comm.rank();
  auto const part = [&](int which) {
    auto const of = static_cast<std::size_t>((which % ranks + ranks) % ranks);
    auto const all = static_cast<std::size_t>(ranks);
    std::size_t const width = data.size() / all;
    std::size_t const longer = data.size() % all; // so many parts have one element more
    return data.subspan(of * width + std::min(of, longer), width + (of < longer ? 1 : 0));
  };
  int const above = (rank + 1) % ranks;
  int const below = (rank + ranks - 1) % ranks;
  scratch.resize(data.size() / static_cast<std::size_t>(ranks) + 1);
  for (int step = 0; step < ranks - 1; ++step) {
    std::span<T> const mine = part(rank - step - 1);
    std::span<T> const theirs = std::span<T>(scratch).first(mine.size());
    detail::exchange(comm, std::as_bytes(part(rank - step)), above, std::as_writable_bytes(theirs), below, use);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      mine[i] = detail::reduce_two(op, mine[i], theirs[i]);
    }
  }
  for (int step = 0; step < ranks - 1; ++step) {
    detail::exchange(comm, std::as_bytes(part(rank - step + 1)), above, std::as_writable_bytes(part(rank - step)),
                     below, use);
  }
}

/// Sends every rank's `mine` to every rank, in rank order; `all` holds P times as many elements.
///
/// Bruck's algorithm (Bruck et al. 1997): ceil(log2 P) messages, P-1 times `mine` sent, for any P.
template <communicator Comm, class T>
void allgather(Comm& comm, std::span<T const> mine, std::span<T> all, phase use, collective_workspace& workspace) {
  auto const ranks = static_cast<std::size_t>(comm.size());
  auto const rank = static_cast<std::size_t>(comm.rank());
  std::size_t const width = mine.size();
  std::span<T> const rotated = workspace.space<T>(width * ranks); // this rank's first, then the next rank's, ...
  std::copy(mine.begin(), mine.end(), rotated.begin());
  for (std::size_t have = 1; have < ranks; have *= 2) {
    std::size_t const moved = std::min(have, ranks - have);
    detail::exchange(comm, std::as_bytes(rotated.first(moved * width)), static_cast<int>((rank + ranks - have) % ranks),
                     std::as_writable_bytes(rotated.subspan(have * width, moved * width)),
                     static_cast<int>((rank + have) % ranks), use);
  }
  for (std::size_t step = 0; step < ranks; ++step) {
    auto const block = rotated.subspan(step * width, width);
    std::copy(block.begin(), block.end(), all.begin() + static_cast<std::ptrdiff_t>((rank + step) % ranks * width));
  }
}

/// Element-wise reduction of integers, in place, the same on every rank.
///
/// Recursive doubling (Thakur et al. 2005): with 2^m <= P < 2^(m+1), m messages of the whole span. If P is no power of
/// two, one more for the first 2(P - 2^m) ranks, which fold in pairs before and unfold after.
template <communicator Comm, std::integral T>
void allreduce_integers(Comm& comm, std::span<T> data, reduction op, phase use, collective_workspace& workspace) {
  int const rank = comm.rank();
  detail::folded_ranks const at(rank, comm.size());
  std::span<T> const theirs = workspace.space<T>(data.size());
  auto const combine = [&] {
    for (std::size_t i = 0; i < data.size(); ++i) {
      data[i] = detail::reduce_two(op, data[i], theirs[i]);
    }
  };
  if (at.is_folded) {
    detail::send_alone(comm, std::as_bytes(data), rank - 1, use);
    detail::receive_alone(comm, std::as_writable_bytes(data), rank - 1, use);
    return;
  }
  if (at.in_pair) {
    detail::receive_alone(comm, std::as_writable_bytes(theirs), rank + 1, use);
    combine();
  }
  for (int distance = 1; distance < at.core; distance *= 2) {
    int const partner = at.rank_at(at.place ^ distance);
    detail::exchange(comm, std::as_bytes(data), partner, std::as_writable_bytes(theirs), partner, use);
    combine();
  }
  if (at.in_pair) {
    detail::send_alone(comm, std::as_bytes(data), rank + 1, use);
  }
}

} // namespace oktopk
