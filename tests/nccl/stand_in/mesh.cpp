// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "nccl/stand_in/mesh.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace nccl_stand_in {

namespace {

using namespace std::chrono_literals;

// A word of what it is, and the number of bytes.
constexpr std::size_t header_bytes = 16;
constexpr std::uint64_t ask_word = 0x6b73616b6f74706bULL;
constexpr std::uint64_t data_word = 0x617461646f74706bULL;

[[noreturn]] void fail(std::string const& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

// Names without a file: they end with the process.
sockaddr_un address_of(std::string const& name, int rank, socklen_t& length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string const text = "oktopk-nccl-" + name + "-" + std::to_string(rank);
  std::memcpy(address.sun_path + 1, text.data(), text.size());
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return address;
}

int make_socket() {
  int const made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) {
    fail("socket");
  }
  return made;
}

int listen_as(std::string const& name, int rank) {
  int const made = make_socket();
  socklen_t length = 0;
  sockaddr_un const address = address_of(name, rank, length);
  if (bind(made, reinterpret_cast<sockaddr const*>(&address), length) != 0 || listen(made, 64) != 0) {
    fail("bind");
  }
  return made;
}

int connect_to(std::string const& name, int rank) {
  socklen_t length = 0;
  sockaddr_un const address = address_of(name, rank, length);
  auto const until = std::chrono::steady_clock::now() + group_limit();
  int const made = make_socket();
  while (connect(made, reinterpret_cast<sockaddr const*>(&address), length) != 0) {
    if (std::chrono::steady_clock::now() > until) {
      fail("connect to rank " + std::to_string(rank));
    }
    std::this_thread::sleep_for(1ms); // it does not listen yet
  }
  return made;
}

void append_header(std::vector<std::byte>& out, std::uint64_t word, std::uint64_t bytes) {
  std::array<std::uint64_t, 2> const header{word, bytes};
  auto const raw = std::as_bytes(std::span(header));
  out.insert(out.end(), raw.begin(), raw.end());
}

} // namespace

std::chrono::seconds group_limit() {
  char const* const text = std::getenv("OKTOPK_NCCL_SECONDS");
  return std::chrono::seconds(text == nullptr ? 60 : std::atoi(text));
}

mesh::mesh(std::string name, int ranks, int rank)
    : name_(std::move(name)), rank_(rank), peers_(static_cast<std::size_t>(ranks)) {
  int const listening = listen_as(name_, rank);
  for (int peer = 0; peer < rank; ++peer) {
    int const made = connect_to(name_, peer);
    std::int32_t const own = rank;
    if (send(made, &own, sizeof own, MSG_NOSIGNAL) != sizeof own) {
      fail("send");
    }
    peers_[static_cast<std::size_t>(peer)].socket = made;
  }
  for (int more = rank + 1; more < ranks; ++more) {
    int const made = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    std::int32_t peer = 0;
    if (made < 0 || recv(made, &peer, sizeof peer, MSG_WAITALL) != sizeof peer) {
      fail("accept");
    }
    peers_.at(static_cast<std::size_t>(peer)).socket = made;
  }
  close(listening);
}

mesh::~mesh() {
  for (connection const& peer : peers_) {
    if (peer.socket >= 0) {
      close(peer.socket);
    }
  }
}

std::string mesh::exchange(std::span<transfer const> group, std::atomic<bool> const& aborted) {
  for (std::size_t i = 0; i < group.size(); ++i) {
    connection& peer = peers_[static_cast<std::size_t>(group[i].peer)];
    if (group[i].receives) {
      peer.receives.push_back(i);
      append_header(peer.out, ask_word, group[i].bytes.size());
    } else {
      peer.sends.push_back(i);
    }
  }
  std::size_t left = group.size();
  auto const until = std::chrono::steady_clock::now() + group_limit();
  std::vector<pollfd> polled(peers_.size());
  try {
    while (left > 0 || std::any_of(peers_.begin(), peers_.end(), [](auto const& each) { return !each.out.empty(); })) {
      if (aborted) {
        return "aborted";
      }
      if (std::chrono::steady_clock::now() > until) {
        return "a group of " + std::to_string(group.size()) + " messages has not ended for " +
               std::to_string(group_limit().count()) + " s";
      }
      for (std::size_t i = 0; i < peers_.size(); ++i) {
        connection& peer = peers_[i];
        bool const writes = !peer.out.empty() || peer.is_sending || (!peer.sends.empty() && !peer.asked.empty());
        bool const reads = !peer.sends.empty() || !peer.receives.empty();
        polled[i] = {reads || writes ? peer.socket : -1,
                     static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)), 0};
      }
      if (poll(polled.data(), polled.size(), 20) < 0 && errno != EINTR) {
        fail("poll");
      }
      for (std::size_t i = 0; i < peers_.size(); ++i) {
        if ((polled[i].revents & POLLOUT) != 0) {
          write_some(peers_[i], group, left);
        }
        if ((polled[i].revents & (POLLIN | POLLHUP)) != 0) {
          read_some(peers_[i], group, left);
        }
      }
    }
  } catch (std::exception const& thrown) {
    return thrown.what();
  }
  return {};
}

void mesh::write_some(connection& peer, std::span<transfer const> group, std::size_t& left) {
  if (!peer.is_sending && peer.out.empty() && !peer.sends.empty() && !peer.asked.empty()) {
    std::uint64_t const space = peer.asked.front();
    std::uint64_t const bytes = group[peer.sends.front()].bytes.size();
    if (space != bytes) {
      throw std::runtime_error("a send of " + std::to_string(bytes) + " bytes meets a receive of " +
                               std::to_string(space));
    }
    peer.asked.pop_front();
    append_header(peer.out, data_word, bytes);
    peer.is_sending = true;
    peer.sent = 0;
  }
  std::span<std::byte const> const next =
      !peer.out.empty() ? std::span<std::byte const>(peer.out) : group[peer.sends.front()].bytes.subspan(peer.sent);
  ssize_t const written = send(peer.socket, next.data(), next.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (written < 0) {
    if (errno == EAGAIN || errno == EINTR) {
      return;
    }
    fail("send");
  }
  if (!peer.out.empty()) {
    peer.out.erase(peer.out.begin(), peer.out.begin() + written);
  } else {
    peer.sent += static_cast<std::size_t>(written);
  }
  if (peer.is_sending && peer.out.empty() && peer.sent == group[peer.sends.front()].bytes.size()) {
    peer.is_sending = false;
    peer.sends.pop_front();
    --left;
  }
}

void mesh::read_some(connection& peer, std::span<transfer const> group, std::size_t& left) {
  std::array<std::byte, header_bytes> header;
  std::span<std::byte> const space = peer.arriving > 0 ? group[peer.receives.front()].bytes.subspan(peer.arrived)
                                                       : std::span(header).first(header_bytes - peer.header.size());
  ssize_t const got = recv(peer.socket, space.data(), space.size(), MSG_DONTWAIT);
  if (got == 0) {
    throw std::runtime_error("a rank has gone");
  }
  if (got < 0) {
    if (errno == EAGAIN || errno == EINTR) {
      return;
    }
    fail("recv");
  }
  if (peer.arriving > 0) {
    peer.arriving -= static_cast<std::uint64_t>(got);
    peer.arrived += static_cast<std::size_t>(got);
  } else {
    peer.header.insert(peer.header.end(), space.begin(), space.begin() + got);
    if (peer.header.size() < header_bytes) {
      return;
    }
    std::array<std::uint64_t, 2> words{};
    std::memcpy(words.data(), peer.header.data(), header_bytes);
    peer.header.clear();
    if (words[0] == ask_word) {
      peer.asked.push_back(words[1]);
      return;
    }
    if (words[0] != data_word || peer.receives.empty() || words[1] != group[peer.receives.front()].bytes.size()) {
      throw std::runtime_error("what arrives is no message of this group");
    }
    peer.arriving = words[1];
    peer.arrived = 0;
  }
  if (peer.arriving == 0) {
    peer.receives.pop_front();
    --left;
  }
}

} // namespace nccl_stand_in
