// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// Checksums for every message; the only header that includes <xxhash.h>.

#include <oktopk/comm/collectives.hpp>
#include <oktopk/comm/decorator.hpp>
#include <oktopk/core/workspace.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <utility>

namespace oktopk {

namespace detail {

/// The trailer that follows each message of a `checked` communicator: its origin, and the digest of its bytes (XXH3 of
/// xxHash).
struct checksum_trailer {
  static constexpr std::uint32_t version = 0x6f6b5401; // "okT", 1

  std::uint32_t mark = version;
  std::uint32_t number = 0; ///< of the message, from that rank in that phase
  std::uint64_t bytes = 0;
  std::uint64_t digest = 0; ///< of the bytes
  std::int64_t call = 0;
  std::array<char, 20> during{}; ///< the beginning of the operation's name
  std::int32_t use = 0;
  std::uint64_t own_digest = 0; ///< of all above

  static checksum_trailer of(std::span<std::byte const> bytes, std::uint32_t number, phase use,
                             operation const& during) {
    checksum_trailer trailer;
    trailer.number = number;
    trailer.bytes = bytes.size();
    trailer.digest = XXH3_64bits(bytes.data(), bytes.size());
    trailer.call = during.number;
    std::copy_n(during.name.begin(), std::min(during.name.size(), trailer.during.size()), trailer.during.begin());
    trailer.use = static_cast<std::int32_t>(use);
    trailer.own_digest = trailer.expected_own_digest();
    return trailer;
  }

  /// The fault of a message that came with this trailer; empty if it has none. `expected` is the trailer for the bytes
  /// that arrived, with the number of the message that is due.
  std::string difference(checksum_trailer const& expected) const {
    if (own_digest != expected_own_digest()) {
      return "its checksum trailer is missing or damaged";
    }
    if (mark != expected.mark) {
      return "its checksum trailer is of another version of oktopk";
    }
    if (during != expected.during || call != expected.call) {
      return "it was sent in " + where() + " and is received in " + expected.where() +
             ", so the ranks do not make the same calls in the same order";
    }
    if (use != expected.use || number != expected.number) {
      return "it has number " + std::to_string(number) + " where number " + std::to_string(expected.number) +
             " is due, so one was lost or came twice";
    }
    if (bytes != expected.bytes) {
      return std::to_string(expected.bytes) + " bytes arrived of " + std::to_string(bytes);
    }
    return digest == expected.digest ? std::string() : "its bytes are not those that were sent";
  }

private:
  std::uint64_t expected_own_digest() const { return XXH3_64bits(this, offsetof(checksum_trailer, own_digest)); }

  std::string where() const {
    std::string const name(during.begin(), std::find(during.begin(), during.end(), '\0'));
    return name.empty() ? "no operation" : operation{name, call}.text();
  }
};

static_assert(std::has_unique_object_representations_v<checksum_trailer>, "the padding of a trailer would be sent");

} // namespace detail

/// A communicator that adds a checksum trailer to its messages. A flipped bit, or a message that is lost, comes twice
/// or belongs to another call, is an `error` (fault::damaged_message), never a wrong sum. Copies share their counts.
///
/// Each message is followed by one of 64 bytes in the same phase: its number, its length, the operation of the ranks,
/// and a digest of its bytes (XXH3 of xxHash, of 64 bits). The rank that finds a difference gives up and tells the
/// others if the inner communicator can (`abort`). Ranks that already have all their messages get the error in their
/// next operation. All ranks are `checked`, or none. Data lies in host memory, and is read once more on both sides;
/// data of a device is staged. `allreduce` is made of messages, since the inner one could not be checked.
template <communicator Comm>
class checked : public communicator_decorator<Comm> {
  using decorator = communicator_decorator<Comm>;
  static_assert(!detail::always_ordered_by_instance<Comm>,
                "oktopk: checked takes the digests on the host, before a message is sent and after it has arrived");

public:
  using decorator::inner;

  /// A message of the inner communicator and its trailer.
  template <class Inner>
  class checked_request {
  public:
    bool active() const { return bytes_.active() || trailer_.active(); }
    phase message_phase() const { return use_; }

    std::size_t bytes() const { return bytes_.bytes(); }

  private:
    friend checked;
    Inner bytes_{};
    typename Comm::request trailer_{};
    detail::checksum_trailer* stored_trailer_ = nullptr; // in the common store, until the message is complete
    std::span<std::byte const> target_;
    std::uint32_t number_ = 0;
    int peer_ = 0;
    phase use_ = phase::control;
    bool receives_ = false;
  };

  using request = checked_request<typename Comm::request>;
  using bulk_request = checked_request<typename Comm::bulk_request>;
  using decorator::rank;

  explicit checked(Comm comm) : decorator(std::move(comm)), shared_(std::make_shared<shared>(decorator::size())) {
    if (inner().ordered_by_instance()) {
      throw error(fault::communication, "checked takes no communicator that orders messages by the instance");
    }
  }

  /// The messages of the survivors are checked, too.
  auto survivors()
    requires requires(Comm& comm) { comm.survivors(); }
  {
    return checked(inner().survivors());
  }

  void begin_operation(std::string_view name, std::int64_t number) {
    shared_->during.begin(name, number);
    inner().begin_operation(name, number);
  }

  request isend(std::span<std::byte const> out, int peer, phase use) {
    return sealed<request>([&] { return inner().isend(out, peer, use); }, out, peer, use, false);
  }

  request irecv(std::span<std::byte> in, int peer, phase use) {
    return sealed<request>([&] { return inner().irecv(in, peer, use); }, in, peer, use, true);
  }

  /// Starts messages one by one, so that each is followed by its trailer even if its peer has it in another group.
  template <execution_space E>
  void start(E const& exec, std::span<bulk_message const> messages, std::span<bulk_request> requests) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      bulk_message const& each = messages[i];
      auto const start_bytes = [&] {
        typename Comm::bulk_request started;
        inner().start(exec, std::span(&each, 1), std::span(&started, 1));
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
    std::vector<T> scratch;
    reduce_in_ring(*this, data, op, use, scratch);
  }

  /// True for memory that the host and the inner communicator reach.
  template <class MemorySpace>
  bool can_access() const {
    return Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::accessible &&
           decorator::template can_access<MemorySpace>();
  }

private:
  struct shared {
    explicit shared(int ranks)
        : sent(static_cast<std::size_t>(ranks * phase_count)), received(static_cast<std::size_t>(ranks * phase_count)) {
    }

    detail::operation during;
    std::vector<std::uint32_t> sent;                        // messages started so far, by peer and phase
    std::vector<std::uint32_t> received;                    // receives started so far
    detail::object_pool<detail::checksum_trailer> trailers; // those under way; stored here, since requests may be moved
    std::vector<typename Comm::request> control;
    std::vector<typename Comm::bulk_request> bulk;
    std::vector<typename Comm::request> of_trailers;
  };

  // Starts a message by `start_bytes()`, and its trailer. If the trailer fails, the message is cancelled here, since no
  // caller has its request yet.
  template <class Request, class Start>
  Request sealed(Start const& start_bytes, std::span<std::byte const> bytes, int peer, phase use, bool receives) {
    Request message;
    message.stored_trailer_ = shared_->trailers.take({});
    message.target_ = bytes;
    message.peer_ = peer;
    message.use_ = use;
    message.receives_ = receives;
    message.bytes_ = start_bytes();
    auto const line = static_cast<std::size_t>(peer * phase_count + static_cast<int>(use));
    message.number_ = receives ? shared_->received[line]++ : shared_->sent[line]++;
    try {
      if (receives) {
        message.trailer_ = inner().irecv(std::as_writable_bytes(std::span(message.stored_trailer_, 1)), peer, use);
      } else {
        *message.stored_trailer_ = detail::checksum_trailer::of(bytes, message.number_, use, shared_->during);
        message.trailer_ = inner().isend(std::as_bytes(std::span(message.stored_trailer_, 1)), peer, use);
      }
    } catch (...) {
      inner().cancel(std::span(&message.bytes_, 1));
      throw;
    }
    return message;
  }

  // Lends the inner requests to one wait, so that the inner communicator sees them together.
  template <class Request, class Inner>
  void wait_for(std::span<Request> requests, std::vector<Inner>& lent) {
    lent.clear();
    shared_->of_trailers.clear();
    {
      // Trailers join the messages in one wait, with one time limit, where requests of both are of one type.
      auto& trailers = [&]() -> auto& {
        if constexpr (std::is_same_v<Inner, typename Comm::request>) {
          return lent;
        } else {
          return shared_->of_trailers;
        }
      }();
      detail::lent_requests<Request, Inner> const bytes_of(requests, &Request::bytes_, lent);
      detail::lent_requests<Request, typename Comm::request> const trailers_of(requests, &Request::trailer_, trailers);
      inner().wait_all(std::span(lent));
      inner().wait_all(std::span(shared_->of_trailers)); // empty if they are among the others
    }
    for (Request& each : requests) {
      if (each.stored_trailer_ != nullptr) {
        if (each.receives_) {
          verify(each);
        }
        shared_->trailers.release(std::exchange(each.stored_trailer_, nullptr));
      }
    }
  }

  template <class Request>
  void verify(Request const& message) {
    std::span<std::byte const> arrived = message.target_;
    if constexpr (oktopk::detail::may_tell_sizes<Comm>) {
      arrived = arrived.first(message.bytes_.bytes());
    }
    auto const expected = detail::checksum_trailer::of(arrived, message.number_, message.use_, shared_->during);
    if (std::string const wrong = message.stored_trailer_->difference(expected); !wrong.empty()) {
      oktopk::detail::abort(inner(),
                            error(fault::damaged_message, "rank " + std::to_string(rank()) + ", message from rank " +
                                                              std::to_string(message.peer_) + " (" +
                                                              std::string(name(message.use_)) + "): " + wrong));
    }
  }

  template <class Request>
  void cancel_each(std::span<Request> requests) noexcept {
    inner().cancel(std::span<typename Comm::request>()); // also where none is under way
    for (Request& each : requests) {
      inner().cancel(std::span(&each.bytes_, 1));
      inner().cancel(std::span(&each.trailer_, 1));
      each.stored_trailer_ = nullptr; // a peer may still read it
    }
  }

  std::shared_ptr<shared> shared_;
};

} // namespace oktopk
