// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// Checksums for every message; with what stands in comm/checked/, the only headers that include <xxhash.h>.

#include <oktopk/comm/checked/reduce_in_ring.hpp>
#include <oktopk/comm/checked/seal.hpp>
#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/decorator.hpp>
#include <oktopk/comm/give_up.hpp>
#include <oktopk/comm/lent_requests.hpp>
#include <oktopk/comm/operation.hpp>
#include <oktopk/core/error.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace oktopk {

/// A communicator that seals its messages: a bit that flips on the way, a message that is lost, comes twice or belongs
/// to another call is an `error` (fault::damaged_message), never a wrong sum. Copies share their counts.
///
/// Each message is followed by one of 64 bytes in the same phase: its number, its length, what the ranks were doing,
/// and a digest of its bytes (XXH3 of xxHash, of 64 bits). The rank that finds a difference gives up and tells the
/// others where the inner communicator can (`give_up`); ranks that had all their messages by then hear of it in their
/// next operation. All ranks are `checked`, or none. Data lies in host memory, and is read once more on both sides;
/// data of a device is staged. `allreduce` is made of messages, since the inner one could not be checked.
template <communicator Comm>
class checked : public communicator_decorator<Comm> {
  using decorator = communicator_decorator<Comm>;
  using decorator::inner_;
  static_assert(!Comm::ordered_by_instance,
                "oktopk: checked takes the digests on the host, before a message is sent and after it has arrived");

public:
  /// A message of the inner communicator and its seal.
  template <class Inner>
  class checked_request {
  public:
    bool active() const { return bytes_.active() || seal_.active(); }
    phase message_phase() const { return use_; }

    std::size_t bytes() const
      requires requires(Inner const& inner) { inner.bytes(); }
    {
      return bytes_.bytes();
    }

  private:
    friend checked;
    Inner bytes_{};
    typename Comm::request seal_{};
    detail::message_seal* sealed_ = nullptr; // in the common store, until the message is complete
    std::span<std::byte const> room_;
    std::uint32_t number_ = 0;
    int peer_ = 0;
    phase use_ = phase::control;
    bool receives_ = false;
  };

  using request = checked_request<typename Comm::request>;
  using bulk_request = checked_request<typename Comm::bulk_request>;
  using decorator::rank;
  using decorator::size;
  using decorator::tells_sizes;

  explicit checked(Comm inner) : decorator(std::move(inner)), shared_(std::make_shared<shared>(inner_.size())) {}

  void begin_operation(std::string_view name, std::int64_t number) {
    shared_->during.begin(name, number);
    decorator::begin_operation(name, number);
  }

  request isend(std::span<std::byte const> out, int peer, phase use) {
    return sealed<request>([&] { return inner_.isend(out, peer, use); }, out, peer, use, false);
  }

  request irecv(std::span<std::byte> in, int peer, phase use) {
    return sealed<request>([&] { return inner_.irecv(in, peer, use); }, in, peer, use, true);
  }

  /// One by one, so that each message is followed by its seal whatever group its peer has it in.
  template <execution_space E>
  void start(E const& exec, std::span<bulk_message const> messages, std::span<bulk_request> requests) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      bulk_message const& each = messages[i];
      auto const start_bytes = [&] {
        typename Comm::bulk_request started;
        inner_.start(exec, std::span(&each, 1), std::span(&started, 1));
        return started;
      };
      requests[i] = sealed<bulk_request>(start_bytes, each.bytes, each.peer, each.use, each.receives);
    }
  }

  void wait_all(std::span<request> requests) { wait_for(requests, shared_->control); }

  void wait_all(std::span<bulk_request> requests)
    requires(!std::same_as<request, bulk_request>)
  {
    wait_for(requests, shared_->bulk);
  }

  void cancel(std::span<request> requests) noexcept { cancel_each(requests); }

  void cancel(std::span<bulk_request> requests) noexcept
    requires(!std::same_as<request, bulk_request>)
  {
    cancel_each(requests);
  }

  template <class T>
  void allreduce(std::span<T> data, reduction op, phase use) {
    std::vector<T> room;
    detail::reduce_in_ring(*this, data, op, use, room);
  }

  /// What the host reaches, too.
  template <class MemorySpace>
  bool reaches() const {
    return Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::accessible &&
           decorator::template reaches<MemorySpace>();
  }

private:
  // Seals that are under way have their place here: requests may be moved.
  struct shared {
    explicit shared(int ranks)
        : sent(static_cast<std::size_t>(ranks * phase_count)), received(static_cast<std::size_t>(ranks * phase_count)) {
    }

    detail::message_seal* take() {
      if (spare.empty()) {
        if (spare.capacity() <= seals.size()) {
          spare.reserve(2 * seals.size() + 8); // for all that will be released
        }
        spare.push_back(&seals.emplace_back());
      }
      detail::message_seal* const taken = spare.back();
      spare.pop_back();
      return taken;
    }

    void release(detail::message_seal* seal) noexcept { spare.push_back(seal); }

    operation during;
    std::vector<std::uint32_t> sent;     // messages so far, by peer and phase
    std::vector<std::uint32_t> received; // those started
    std::deque<detail::message_seal> seals;
    std::vector<detail::message_seal*> spare;
    std::vector<typename Comm::request> control;
    std::vector<typename Comm::bulk_request> bulk;
    std::vector<typename Comm::request> of_seals;
  };

  // Starts a message by `start_bytes()`, and its seal. Where the seal fails nobody has the request of the message yet.
  template <class Request, class Start>
  Request sealed(Start const& start_bytes, std::span<std::byte const> bytes, int peer, phase use, bool receives) {
    Request message;
    message.sealed_ = shared_->take();
    message.room_ = bytes;
    message.peer_ = peer;
    message.use_ = use;
    message.receives_ = receives;
    message.bytes_ = start_bytes();
    auto const line = static_cast<std::size_t>(peer * phase_count + static_cast<int>(use));
    message.number_ = receives ? shared_->received[line]++ : shared_->sent[line]++;
    try {
      if (receives) {
        message.seal_ = inner_.irecv(std::as_writable_bytes(std::span(message.sealed_, 1)), peer, use);
      } else {
        *message.sealed_ = detail::message_seal::of(bytes, message.number_, use, shared_->during);
        message.seal_ = inner_.isend(std::as_bytes(std::span(message.sealed_, 1)), peer, use);
      }
    } catch (...) {
      inner_.cancel(std::span(&message.bytes_, 1));
      throw;
    }
    return message;
  }

  // Lends the inner requests to one wait, for the inner communicator to see them together.
  template <class Request, class Inner>
  void wait_for(std::span<Request> requests, std::vector<Inner>& lent) {
    lent.clear();
    shared_->of_seals.clear();
    {
      auto& seals = room_of_seals(lent);
      detail::lent_requests<Request, Inner> const bytes_of(requests, &Request::bytes_, lent);
      detail::lent_requests<Request, typename Comm::request> const seals_of(requests, &Request::seal_, seals);
      inner_.wait_all(std::span(lent));
      inner_.wait_all(std::span(shared_->of_seals)); // none where they are among the others
    }
    for (Request& each : requests) {
      if (each.sealed_ != nullptr) {
        if (each.receives_) {
          verify(each);
        }
        shared_->release(std::exchange(each.sealed_, nullptr));
      }
    }
  }

  // Seals join the messages in one wait, with one time limit, where requests of both are of one type.
  auto& room_of_seals(std::vector<typename Comm::request>& of_messages) { return of_messages; }

  template <class Inner>
  auto& room_of_seals(std::vector<Inner>&) {
    return shared_->of_seals;
  }

  template <class Request>
  void verify(Request const& message) {
    std::span<std::byte const> arrived = message.room_;
    if constexpr (tells_sizes) {
      arrived = arrived.first(message.bytes_.bytes());
    }
    auto const expected = detail::message_seal::of(arrived, message.number_, message.use_, shared_->during);
    if (std::string const wrong = message.sealed_->difference(expected); !wrong.empty()) {
      oktopk::give_up(inner_, error(fault::damaged_message, "rank " + std::to_string(rank()) + ", message from rank " +
                                                                std::to_string(message.peer_) + " (" +
                                                                std::string(name(message.use_)) + "): " + wrong));
    }
  }

  template <class Request>
  void cancel_each(std::span<Request> requests) noexcept {
    inner_.cancel(std::span<typename Comm::request>()); // also where none is under way
    for (Request& each : requests) {
      inner_.cancel(std::span(&each.bytes_, 1));
      inner_.cancel(std::span(&each.seal_, 1));
      each.sealed_ = nullptr; // a peer may still read it
    }
  }

  std::shared_ptr<shared> shared_;
};

} // namespace oktopk
