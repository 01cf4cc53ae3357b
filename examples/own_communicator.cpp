// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A communicator of your own: two processes exchange messages through sockets, one for each phase.
//
// This class keeps both contracts of `oktopk/comm/concept.hpp`, control messages and bulk data. `tests/comm/suite.hpp`
// tests them; `oktopk::paired` joins two classes that keep one each. Algorithms by name run over it as they are in the
// library oktopk::catalogue. The program fails when a rank gets a wrong sum.

#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/collectives.hpp>
#include <oktopk/comm/concept.hpp>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <memory>
#include <span>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

class socket_communicator : public oktopk::communicator_base {
  struct line { // a socket keeps the order of its messages; -1 after `cancel`
    int socket = -1;
    std::deque<std::span<std::byte>> spaces{}; // of receives under way, oldest first
    std::size_t arrived = 0;                   // messages so far
  };
  int rank_;
  std::shared_ptr<line[]> lines_{new line[oktopk::phase_count]}; // shared by all copies of the communicator

  static void check(bool works) {
    if (!works) {
      throw oktopk::error(oktopk::fault::communication, "the sockets cannot be used any more: closed, full or cut off");
    }
  }

public:
  /// The number of a receive under way. A send copies its bytes, so its request is complete from the start.
  struct request {
    line* of = nullptr;
    std::size_t number = 0;
    bool active() const { return of != nullptr; }
  };
  using bulk_request = request;

  socket_communicator(int rank, int const (&pairs)[oktopk::phase_count][2]) : rank_(rank) {
    for (int use = 0; use < oktopk::phase_count; ++use) {
      lines_[use].socket = pairs[use][rank];
      close(pairs[use][1 - rank]); // so that the end of the other process is noticed
    }
  }
  int rank() const { return rank_; }
  int size() const { return 2; }
  // A message that is longer than the socket's buffer (some 200 KB; SO_SNDBUF) is refused: one that must wait for room
  // would have to be sent in parts, from wait_all.
  request isend(std::span<std::byte const> out, int, oktopk::phase use) {
    check(send(lines_[static_cast<int>(use)].socket, out.data(), out.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0);
    return {};
  }

  request irecv(std::span<std::byte> in, int, oktopk::phase use) {
    line& its = lines_[static_cast<int>(use)];
    check(its.socket >= 0);
    its.spaces.push_back(in);
    return {&its, its.arrived + its.spaces.size()};
  }

  template <oktopk::execution_space E>
  void start(E const&, std::span<oktopk::bulk_message const> messages, std::span<request> requests) {
    oktopk::start_one_by_one(*this, messages, requests);
  }

  void wait_all(std::span<request> requests) {
    for (request& each : requests) {
      while (each.active() && each.of->arrived < each.number) { // a message fills the oldest room
        auto const space = each.of->spaces.front();
        each.of->spaces.pop_front();
        check(recv(each.of->socket, space.data(), space.size(), MSG_TRUNC) == static_cast<ssize_t>(space.size()));
        each.of->arrived += 1;
      }
      each = {};
    }
  }

  void cancel(std::span<request> requests) noexcept {
    for (int use = 0; use < oktopk::phase_count; ++use) {
      close(std::exchange(lines_[use].socket, -1));
    }
    std::fill(requests.begin(), requests.end(), request());
  }

  /// Sockets have no allreduce of their own, so this takes one of the library's.
  template <class T>
  void allreduce(std::span<T> values, oktopk::reduction op, oktopk::phase use) {
    std::vector<T> scratch;
    oktopk::reduce_in_ring(*this, values, op, use, scratch);
  }

  template <class MemorySpace>
  bool can_access() const {
    return Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::accessible;
  }
};

// In front of the first use, so that the compiler names the part that is missing and not what follows from it.
static_assert(oktopk::communicator<socket_communicator>);

int main(int argc, char** argv) {
  int pairs[oktopk::phase_count][2] = {};
  for (auto& pair : pairs) {
    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
  }
  pid_t const child = fork(); // before Kokkos starts threads
  socket_communicator const comm(child == 0 ? 1 : 0, pairs);
  Kokkos::ScopeGuard const kokkos(argc, argv);
  Kokkos::View<float*> const gradient("gradient", 10000);
  Kokkos::deep_copy(gradient, static_cast<float>(comm.rank() + 1)); // 1 and 2
  bool right = true;
  for (char const* const text : {"ok_topk", "topk_a(format=packed)", "ring_chunked"}) {
    auto allreduce = oktopk::make_allreduce(Kokkos::DefaultExecutionSpace(), comm, text, {.length = 10000, .k = 100});
    auto const sums = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), allreduce(gradient).values());
    right = right && sums.extent(0) >= 100 && sums(0) == 3 && sums(99) == 3;
  }
  int status = 0;
  bool const both = child == 0 || (waitpid(child, &status, 0) == child && status == 0);
  return right && both ? EXIT_SUCCESS : EXIT_FAILURE;
}
