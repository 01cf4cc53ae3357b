// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

namespace nccl_stand_in {

/// A message between host buffers.
struct transfer {
  std::span<std::byte> bytes;
  int peer = 0;
  bool receives = false;
};

/// A socket between each pair of processes on this machine.
class mesh {
public:
  /// Collective; `name` is the same on all ranks and nobody else's.
  mesh(std::string name, int ranks, int rank);
  ~mesh();
  mesh(mesh const&) = delete;
  mesh& operator=(mesh const&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(peers_.size()); }
  std::string const& name() const { return name_; }

  /// Ends when all messages of the group have ended. A send ends when its receive has it: nothing is buffered, so that
  /// groups in orders that do not fit wait for each other, until the limit. A sentence where it fails.
  std::string exchange(std::span<transfer const> group, std::atomic<bool> const& aborted);

private:
  struct connection {
    int socket = -1;
    std::deque<std::uint64_t> asked; // sizes of receives that the peer has begun
    std::vector<std::byte> out;      // headers on their way
    std::deque<std::size_t> sends;   // of the group under way, in order
    std::deque<std::size_t> receives;
    std::vector<std::byte> header; // of what arrives, as far as it has
    std::uint64_t arriving = 0;    // bytes of a message that are still to come
    std::size_t arrived = 0;
    std::size_t sent = 0;
    bool is_sending = false;
  };

  void write_some(connection& peer, std::span<transfer const> group, std::size_t& left);
  void read_some(connection& peer, std::span<transfer const> group, std::size_t& left);

  std::string name_;
  int rank_;
  std::vector<connection> peers_;
};

/// The longest that a group takes before it is called stuck: OKTOPK_NCCL_SECONDS, 60 at first.
std::chrono::seconds group_limit();

} // namespace nccl_stand_in
