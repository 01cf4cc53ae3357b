// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/in_process.hpp>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace oktopk_tests {

/// What `communicator` asks for and nothing else: requests that can only be moved, no assignment, no default, two
/// functions where others have a template. The messages are those of an in-process world.
class archetype_communicator {
public:
  class request {
  public:
    request() = default;
    request(request&&) = default;
    request& operator=(request&&) = default;

    bool active() const { return inner_.active(); }
    bool receives() const { return inner_.receives(); }
    oktopk::phase message_phase() const { return inner_.message_phase(); }
    std::size_t bytes() const { return inner_.bytes(); }

  private:
    friend archetype_communicator;
    using inner_type = oktopk::in_process_communicator::request;
    explicit request(inner_type inner) : inner_(inner) {}

    inner_type inner_;
  };

  explicit archetype_communicator(oktopk::in_process_communicator inner) : inner_(inner) {}
  archetype_communicator(archetype_communicator const&) = default;
  archetype_communicator& operator=(archetype_communicator const&) = delete;

  int rank() const { return inner_.rank(); }
  int size() const { return inner_.size(); }

  request isend(std::span<std::byte const> out, int peer, oktopk::phase use) {
    return request(inner_.isend(out, peer, use));
  }
  request irecv(std::span<std::byte> in, int peer, oktopk::phase use) { return request(inner_.irecv(in, peer, use)); }

  std::size_t wait_any(std::span<request> requests) {
    std::vector<request::inner_type> inner;
    for (request const& each : requests) {
      inner.push_back(each.inner_);
    }
    std::size_t const which = inner_.wait_any(inner);
    for (std::size_t i = 0; i < inner.size(); ++i) {
      requests[i].inner_ = inner[i];
    }
    return which;
  }

  void wait_all(std::span<request> requests) {
    while (wait_any(requests) < requests.size()) {
    }
  }

  void cancel(std::span<request> requests) noexcept {
    inner_.cancel({});
    for (request& each : requests) {
      inner_.cancel(std::span(&each.inner_, 1));
    }
  }

  void allreduce(std::span<float> data, oktopk::reduction op, oktopk::phase use) { inner_.allreduce(data, op, use); }
  void allreduce(std::span<double> data, oktopk::reduction op, oktopk::phase use) { inner_.allreduce(data, op, use); }

  template <class MemorySpace>
  bool reaches() const {
    return inner_.reaches<MemorySpace>();
  }

private:
  oktopk::in_process_communicator inner_;
};

} // namespace oktopk_tests
