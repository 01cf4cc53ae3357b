// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/in_process.hpp>

#include <cstddef>
#include <span>

namespace oktopk_tests {

/// Control and nothing else: what `control_communicator` asks for.
/// Requests can only be moved; no assignment, no default. The messages are those of an in-process world, whose receives
/// of control messages know their sizes.
class control_archetype : public oktopk::communicator_base {
public:
  class request {
  public:
    request() = default;
    request(request&&) = default;
    request& operator=(request&&) = default;

    bool active() const { return inner_.active(); }

  private:
    friend control_archetype;
    using inner_type = oktopk::in_process_communicator::request;
    explicit request(inner_type inner) : inner_(inner) {}

    inner_type inner_;
  };

  explicit control_archetype(oktopk::in_process_communicator inner) : inner_(inner) {}
  control_archetype(control_archetype const&) = default;
  control_archetype& operator=(control_archetype const&) = delete;

  int rank() const { return inner_.rank(); }
  int size() const { return inner_.size(); }

  request isend(std::span<std::byte const> out, int peer, oktopk::phase use) {
    return request(inner_.isend(out, peer, use));
  }
  request irecv(std::span<std::byte> in, int peer, oktopk::phase use) { return request(inner_.irecv(in, peer, use)); }

  void wait_all(std::span<request> requests) {
    for (request& each : requests) {
      inner_.wait_all(std::span(&each.inner_, 1));
    }
  }

  void cancel(std::span<request> requests) noexcept {
    inner_.cancel({});
    for (request& each : requests) {
      inner_.cancel(std::span(&each.inner_, 1));
    }
  }

protected:
  oktopk::in_process_communicator inner_;
};

/// What `communicator` asks for and nothing else, with two functions where others have a template.
class archetype_communicator : public control_archetype {
public:
  using bulk_request = request;

  using control_archetype::control_archetype;

  template <oktopk::execution_space E>
  void start(E const&, std::span<oktopk::bulk_message const> messages, std::span<request> requests) {
    oktopk::start_one_by_one(*this, messages, requests);
  }

  void allreduce(std::span<float> data, oktopk::reduction op, oktopk::phase use) { inner_.allreduce(data, op, use); }
  void allreduce(std::span<double> data, oktopk::reduction op, oktopk::phase use) { inner_.allreduce(data, op, use); }

  template <class MemorySpace>
  bool can_access() const {
    return inner_.can_access<MemorySpace>();
  }
};

} // namespace oktopk_tests
