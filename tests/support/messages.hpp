// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>

namespace oktopk_tests {

/// The bytes of one number, to send and to receive into.
template <class T>
std::span<std::byte const> bytes_of(T const& number) {
  return std::as_bytes(std::span<T const>(&number, 1));
}

template <class T>
std::span<std::byte> space_in(T& number) {
  return std::as_writable_bytes(std::span<T>(&number, 1));
}

/// Sends one number and waits until it is gone.
template <oktopk::communicator Comm, class T>
void send_number(Comm& comm, T number, int to, oktopk::phase use) {
  typename Comm::request sent = comm.isend(bytes_of(number), to, use);
  comm.wait_all(std::span<typename Comm::request>(&sent, 1));
}

/// Waits for one number.
template <class T, oktopk::communicator Comm>
T receive_number(Comm& comm, int from, oktopk::phase use) {
  T number{};
  typename Comm::request received = comm.irecv(space_in(number), from, use);
  comm.wait_all(std::span<typename Comm::request>(&received, 1));
  return number;
}

/// Sends a number to the next rank and gives the one that came from the rank before: lets every other rank run.
template <oktopk::communicator Comm>
int pass_around(Comm& comm, int number, oktopk::phase use = oktopk::phase::control) {
  int const ranks = comm.size();
  int arrived = -1;
  typename Comm::request requests[2] = {
      comm.irecv(space_in(arrived), (comm.rank() + ranks - 1) % ranks, use),
      comm.isend(bytes_of(number), (comm.rank() + 1) % ranks, use),
  };
  comm.wait_all(std::span<typename Comm::request>(requests));
  return arrived;
}

} // namespace oktopk_tests
