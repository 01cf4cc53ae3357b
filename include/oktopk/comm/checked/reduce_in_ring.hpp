// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/collectives.hpp>
#include <oktopk/comm/concept.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace oktopk::detail {

/// An allreduce by messages of `comm`, for data of the host: 2n(P-1)/P elements each way in 2(P-1) messages.
///
/// Each of P parts goes round the ring of ranks twice: first it is reduced, then it is told to all (Patarasuk and Yuan,
/// 2009), so all ranks get the same bits. `room` grows to n/P elements.
template <class Comm, class T>
void reduce_in_ring(Comm& comm, std::span<T> data, reduction op, phase use, std::vector<T>& room) {
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
  room.resize(data.size() / static_cast<std::size_t>(ranks) + 1);
  for (int step = 0; step < ranks - 1; ++step) {
    std::span<T> const mine = part(rank - step - 1);
    std::span<T> const theirs = std::span<T>(room).first(mine.size());
    exchange(comm, std::as_bytes(part(rank - step)), above, std::as_writable_bytes(theirs), below, use);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      switch (op) {
      case reduction::sum: mine[i] += theirs[i]; break;
      case reduction::min: mine[i] = std::min(mine[i], theirs[i]); break;
      case reduction::max: mine[i] = std::max(mine[i], theirs[i]); break;
      }
    }
  }
  for (int step = 0; step < ranks - 1; ++step) {
    exchange(comm, std::as_bytes(part(rank - step + 1)), above, std::as_writable_bytes(part(rank - step)), below, use);
  }
}

} // namespace oktopk::detail
