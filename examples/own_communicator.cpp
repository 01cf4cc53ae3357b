// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A communicator of your own: two processes exchange messages through sockets, one for each phase.
//
// `oktopk/comm/concept.hpp` holds the two contracts, control messages and bulk data; `tests/comm/suite.hpp` tests them.
// This class keeps both. A transport that keeps one of them is joined with another by `oktopk::paired`. The program
// fails when a rank gets a wrong sum.

#include <oktopk/allreduce.hpp>
#include <oktopk/comm/start_one_by_one.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <span>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

class socket_communicator {
  struct line { // a socket keeps the order of its messages
    int socket = 0;
    std::deque<std::span<std::byte>> rooms{}; // of receives under way, oldest first
    std::size_t started = 0;                  // receives so far
    std::size_t arrived = 0;                  // messages so far
  };
  struct shared { // by all copies of the communicator on a rank
    int rank = 0;
    line lines[oktopk::phase_count];
    bool cancelled = false;
  };
  std::shared_ptr<shared> shared_ = std::make_shared<shared>();

  void check(bool works) const {
    if (!works || shared_->cancelled) {
      throw oktopk::error(oktopk::fault::communication, "a socket is closed or full, or a message has another size");
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
  static constexpr bool tells_sizes = false;         // a receive has room for exactly its message
  static constexpr bool ordered_by_instance = false; // the caller waits for kernels before it sends

  socket_communicator(int rank, int const (&pairs)[oktopk::phase_count][2]) {
    shared_->rank = rank;
    for (int use = 0; use < oktopk::phase_count; ++use) {
      shared_->lines[use].socket = pairs[use][rank];
      close(pairs[use][1 - rank]); // so that the end of the other process is noticed
    }
  }

  int rank() const { return shared_->rank; }
  int size() const { return 2; }

  request isend(std::span<std::byte const> out, int, oktopk::phase use) {
    int const socket = shared_->lines[static_cast<int>(use)].socket;
    check(!shared_->cancelled && send(socket, out.data(), out.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0);
    return {};
  }

  request irecv(std::span<std::byte> in, int, oktopk::phase use) {
    check(!shared_->cancelled);
    line& its = shared_->lines[static_cast<int>(use)];
    its.rooms.push_back(in);
    return {&its, ++its.started};
  }

  template <oktopk::execution_space E>
  void start(E const&, std::span<oktopk::bulk_message const> messages, std::span<request> requests) {
    oktopk::start_one_by_one(*this, messages, requests);
  }

  void wait_all(std::span<request> requests) {
    for (request& each : requests) {
      while (each.active() && each.of->arrived < each.number) { // a message fills the oldest room
        auto const room = each.of->rooms.front();
        each.of->rooms.pop_front();
        check(recv(each.of->socket, room.data(), room.size(), MSG_TRUNC) == static_cast<ssize_t>(room.size()));
        each.of->arrived += 1;
      }
      each = {};
    }
  }

  void cancel(std::span<request> requests) noexcept {
    shared_->cancelled = true;
    std::fill(requests.begin(), requests.end(), request());
  }

  /// Sockets have no allreduce of their own, so this takes one of the library's.
  template <class T>
  void allreduce(std::span<T> values, oktopk::reduction op, oktopk::phase) {
    oktopk::recursive_doubling<Kokkos::DefaultHostExecutionSpace, socket_communicator, T> own;
    own.run({}, *this, values.data(), nullptr, static_cast<std::int64_t>(values.size()), op);
  }

  template <class MemorySpace>
  bool reaches() const {
    return Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::accessible;
  }
};

int main(int argc, char** argv) {
  int pairs[oktopk::phase_count][2] = {};
  for (auto& pair : pairs) {
    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
  }
  pid_t const child = fork(); // before Kokkos starts threads
  socket_communicator const comm(child == 0 ? 1 : 0, pairs);
  Kokkos::ScopeGuard const kokkos(argc, argv);
  using space = Kokkos::DefaultExecutionSpace;
  oktopk::ok_topk allreduce(space(), comm, {.length = 10000, .k = 100});
  Kokkos::View<float*, space> const gradient("gradient", 10000);
  Kokkos::deep_copy(gradient, static_cast<float>(comm.rank() + 1)); // 1 and 2
  auto const sums = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), allreduce(gradient).values());
  std::printf("rank %d: %zu sums of %g\n", comm.rank(), sums.extent(0), static_cast<double>(sums(0)));
  bool const right = sums.extent(0) == 100 && sums(0) == 3 && sums(99) == 3;
  int status = 0;
  bool const both = child == 0 || (waitpid(child, &status, 0) == child && status == 0);
  return right && both ? EXIT_SUCCESS : EXIT_FAILURE;
}
