// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

namespace oktopk_fuzz {

/// The in-process communicator, which may say that it reaches no memory: then all that travels is staged.
///
/// It says so at run time, so that one instantiation of each algorithm serves both.
class near_or_far {
public:
  using request = oktopk::in_process_communicator::request;

  near_or_far(oktopk::in_process_communicator inner, bool far) : inner_(inner), far_(far) {}

  int rank() const { return inner_.rank(); }
  int size() const { return inner_.size(); }

  request isend(std::span<std::byte const> out, int peer, oktopk::phase use) { return inner_.isend(out, peer, use); }
  request irecv(std::span<std::byte> in, int peer, oktopk::phase use) { return inner_.irecv(in, peer, use); }
  std::size_t wait_any(std::span<request> requests) { return inner_.wait_any(requests); }
  void wait_all(std::span<request> requests) { inner_.wait_all(requests); }
  void cancel(std::span<request> requests) noexcept { inner_.cancel(requests); }

  template <class T>
  void allreduce(std::span<T> data, oktopk::reduction op, oktopk::phase use) {
    inner_.allreduce(data, op, use);
  }

  template <class MemorySpace>
  bool reaches() const {
    return !far_ && inner_.template reaches<MemorySpace>();
  }

private:
  oktopk::in_process_communicator inner_;
  bool far_;
};

using communicator = oktopk::counted<near_or_far>;

} // namespace oktopk_fuzz
