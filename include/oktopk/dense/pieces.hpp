// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace oktopk::detail {

/// A stretch of a vector, and its number among the stretches that the vector was cut into.
struct piece {
  std::int64_t index = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

/// A vector cut into so many pieces, as even as whole grains allow: the same on all ranks.
class cut_vector {
public:
  cut_vector() = default;
  cut_vector(std::int64_t count, std::int64_t pieces, std::int64_t grain = 1)
      : count_(count), pieces_(pieces), grain_(grain) {}

  std::int64_t pieces() const { return pieces_; }
  std::int64_t longest() const { return std::min(count_, grains() / pieces_ * grain_ + grain_); }

  piece operator[](std::int64_t index) const {
    std::int64_t const begin = boundary(index);
    return {index, begin, boundary(index + 1) - begin};
  }

private:
  std::int64_t grains() const { return (count_ + grain_ - 1) / grain_; }

  std::int64_t boundary(std::int64_t index) const {
    std::int64_t const each = grains() / pieces_;
    std::int64_t const left = grains() % pieces_;
    return std::min(count_, (each * index + left * index / pieces_) * grain_);
  }

  std::int64_t count_ = 0;
  std::int64_t pieces_ = 1;
  std::int64_t grain_ = 1;
};

/// Waits for one message, if it is under way.
template <communicator Comm>
void wait_for(Comm& comm, typename Comm::request& one) {
  if (one.active()) {
    comm.wait_all(std::span<typename Comm::request>(&one, 1));
  }
}

/// Starts a message; none where there is nothing to send.
template <communicator Comm>
typename Comm::request start_send(Comm& comm, std::span<std::byte const> out, int peer, phase use) {
  return out.empty() ? typename Comm::request() : comm.isend(out, peer, use);
}

template <communicator Comm>
typename Comm::request start_receive(Comm& comm, std::span<std::byte> in, int peer, phase use) {
  return in.empty() ? typename Comm::request() : comm.irecv(in, peer, use);
}

} // namespace oktopk::detail
