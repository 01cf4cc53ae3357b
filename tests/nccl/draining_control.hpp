// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <span>
#include <utility>

namespace oktopk_tests {

/// Control messages that wait for the device first. A GPU works while its host waits for a message; an emulator that
/// holds kernels back until somebody waits for them does not, and then ranks would wait for each other for ever.
template <oktopk::control_communicator Control>
class draining_control {
public:
  using request = typename Control::request;

  explicit draining_control(Control inner) : inner_(std::move(inner)) {}

  int rank() const { return inner_.rank(); }
  int size() const { return inner_.size(); }

  request isend(std::span<std::byte const> out, int peer, oktopk::phase use) { return inner_.isend(out, peer, use); }
  request irecv(std::span<std::byte> in, int peer, oktopk::phase use) { return inner_.irecv(in, peer, use); }

  void wait_all(std::span<request> requests) {
    Kokkos::fence();
    inner_.wait_all(requests);
  }

  void cancel(std::span<request> requests) noexcept { inner_.cancel(requests); }

private:
  Control inner_;
};

} // namespace oktopk_tests
