// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// Ranks that are connected by TCP: the adapter for programs without MPI, over sockets of POSIX.

#include <oktopk/comm/rendezvous.hpp>
#include <oktopk/comm/revocation.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>

#include <sys/ioctl.h>
#include <sys/uio.h>
#if __has_include(<linux/sockios.h>)
#include <linux/sockios.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace oktopk {

/// How ranks are connected by TCP.
struct tcp_options {
  /// Of the rendezvous and, at first, of every wait; zero stands for none. The same on all ranks.
  std::chrono::nanoseconds time_limit = usual_time_limit;

  /// Network interfaces by name, or addresses or host names of this machine, which messages use by turns; as many on all
  /// ranks. If there is none: those that GLOO_SOCKET_IFNAME lists, between commas; else the address of the name of this
  /// host, if it is one of this machine; else 127.0.0.1. So does torch.
  std::vector<std::string> links = {};
};

namespace detail {

struct tcp_connection;

/// A message that is under way. One without a peer is a notice: whoever sends it has given up, for the reason in it.
struct tcp_message {
  bool receives = false;
  int peer = -1;
  phase use = phase::control;
  std::byte* at = nullptr;
  std::size_t size = 0; ///< its bytes, or the room for them
  std::size_t arrived = 0;
  bool is_complete = false;
  tcp_connection* over = nullptr;
  std::unique_ptr<std::byte[]> own; ///< of one that nobody has given room for
};

/// What is written in front of the bytes of a message. All ranks have the same order of bytes.
struct tcp_frame {
  static constexpr std::uint32_t sign = 0x6f6b746b;

  std::uint32_t mark = sign;
  std::int32_t use = 0; ///< the phase, or `notice`
  std::uint64_t bytes = 0;
};

/// One of the connections to a peer. Messages of one phase come over it in their order.
struct tcp_connection {
  owned_file file;
  int peer = -1;
  std::optional<std::string> ended; ///< why

  std::deque<tcp_message*> out;
  std::size_t written = 0; ///< of the first one, its frame included

  std::array<std::byte, sizeof(tcp_frame)> frame{};
  std::size_t frame_bytes = 0;
  std::size_t missing = 0;         ///< bytes of the message that is arriving
  tcp_message* arriving = nullptr; ///< null: they are dropped
  std::array<std::deque<tcp_message*>, phase_count> expected;
  std::array<std::deque<tcp_message*>, phase_count> early; ///< that have come, or begun to, before their receive
};

/// The connections of this rank, shared by the copies of a `tcp_communicator`. Messages go on while this rank starts one
/// or waits for some.
class tcp_ranks : public shared_state {
public:
  tcp_ranks(rendezvous_store const& store, std::string const& key, int own, int ranks, tcp_options const& how)
      : rank(own), size(ranks) {
    time_limit = checked_time_limit(how.time_limit);
    if (size < 1 || rank < 0 || rank >= size) {
      throw error(fault::option_out_of_range,
                  "there is no rank " + std::to_string(rank) + " of " + std::to_string(size));
    }
    if (size > 1) {
      std::array<int, 2> ends{-1, -1};
      if (::pipe(ends.data()) != 0) {
        throw error(fault::communication, "rank " + std::to_string(rank) + " has no pipe: " + system_text(errno));
      }
      is_woken_ = owned_file(ends[0]);
      wakes_ = owned_file(ends[1]);
      rendezvous met(store, key + ".", rank, size, time_limit, how.links);
      links_ = met.links();
      connections_.resize(static_cast<std::size_t>(size - 1) * links_);
      for (int peer = 0; peer < size; ++peer) {
        for (std::size_t link = 0; peer != rank && link < links_; ++link) {
          tcp_connection& each = connection(peer, link);
          each.peer = peer;
          each.file = met.take(peer, link);
        }
      }
    }
  }

  tcp_ranks& operator=(tcp_ranks&&) = delete;

  /// Closes the connections: what was sent still arrives.
  ~tcp_ranks() {
    forget_messages();
    // One that is closed with bytes that nobody has read drops what it sends.
    for (tcp_connection& each : connections_) {
      while (read_some(each)) {
      }
      ::shutdown(each.file.get(), SHUT_WR);
    }
#ifdef SIOCOUTQ
    if (told_) { // and peers may go on sending
      deadline const end(patience());
      for (tcp_connection& each : connections_) {
        int waiting = 0;
        while (!each.ended && !end.is_over() && ::ioctl(each.file.get(), SIOCOUTQ, &waiting) == 0 && waiting > 0) {
          wait_for_events(each.file, POLLIN, deadline(std::chrono::milliseconds(1)));
          read_some(each);
        }
      }
    }
#endif
  }

  tcp_message* start(bool receives, std::span<std::byte const> bytes, int peer, phase use) {
    broken.throw_if_happened();
    if (peer < 0 || peer >= size || peer == rank) {
      throw error(fault::communication, "rank " + std::to_string(rank) + " cannot " +
                                            (receives ? "receive from rank " : "send to rank ") + std::to_string(peer) +
                                            " (" + std::string(name(use)) + "): there is no other such rank");
    }
    auto& so_far = messages_[receives ? 1 : 0][static_cast<std::size_t>(peer * phase_count + static_cast<int>(use))];
    tcp_connection& over = connection(peer, so_far++ % links_);
    tcp_message* const made = new_message();
    made->receives = receives;
    made->peer = peer;
    made->use = use;
    made->at = const_cast<std::byte*>(bytes.data()); // a send only reads
    made->size = bytes.size();
    made->over = &over;
    receives ? expect(*made) : send(*made);
    return made;
  }

  /// For a message that its request no longer needs.
  void release(tcp_message* message) {
    message->own.reset();
    free_.push_back(message);
  }

  /// Waits until something can be read or written, and does it.
  void progress(deadline const& end) {
    polls_.resize(connections_.size() + 1);
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      tcp_connection const& each = connections_[i];
      auto const events = static_cast<short>(POLLIN | (each.out.empty() ? 0 : POLLOUT));
      polls_[i] = {each.ended ? -1 : each.file.get(), events, 0};
    }
    polls_.back() = {is_woken_.get(), POLLIN, 0};
    if (::poll(polls_.data(), static_cast<nfds_t>(polls_.size()), end.milliseconds_left()) <= 0) {
      return; // it is over, or a signal has come
    }
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      if ((polls_[i].revents & ~POLLOUT) != 0) {
        while (read_some(connections_[i])) {
        }
      }
      if ((polls_[i].revents & POLLOUT) != 0) {
        write(connections_[i]);
      }
    }
    if (polls_.back().revents != 0) {
      std::array<char, 64> woken{};
      [[maybe_unused]] auto const bytes = ::read(is_woken_.get(), woken.data(), woken.size());
    }
  }

  /// Throws if this rank is to end its wait, for whatever reason.
  void look_around() {
    if (is_to_end_) {
      std::unique_lock lock(of_end_);
      error const why = *end_;
      lock.unlock();
      fail(why);
    }
    if (wrong_) {
      fail(*wrong_);
    }
    if (heard_) {
      broken.fail(abandoned_by(heard_->first, during, heard_->second));
    }
    if (is_left_) {
      broken.throw_if_happened();
    }
  }

  /// For any thread: the wait that is under way ends, or the next one, with this error on all ranks.
  void end_soon(error const& why) {
    {
      std::lock_guard const lock(of_end_);
      end_.emplace(why);
      is_to_end_ = true;
    }
    [[maybe_unused]] auto const bytes = ::write(wakes_.get(), "!", 1); // a full pipe wakes as well
  }

  /// The error of a message whose connection has ended, unless another rank has told this one why.
  [[noreturn]] void lost(int peer, std::string const& aim, std::string const& why) {
    look_around();
    fail(error(fault::communication, "rank " + std::to_string(rank) + " " + aim + during.where() +
                                         ", and its connection to rank " + std::to_string(peer) +
                                         " has ended: " + why));
  }

  /// Also tells the other ranks, behind what is being sent to them. Waits for a tenth of a second at most.
  void abort(error const& why) noexcept {
    broken.note(why);
    if (size == 1 || std::exchange(told_, true)) {
      return;
    }
    try {
      notice_ = broken.reason().substr(0, longest_notice); // the first error, not one that followed from it
      for (int step = 1; step < size; ++step) {
        tcp_message* const made = new_message();
        made->at = reinterpret_cast<std::byte*>(notice_.data());
        made->size = notice_.size();
        made->over = &connection((rank + step) % size, 0);
        send(*made);
      }
      flush(std::chrono::milliseconds(100));
    } catch (std::exception const&) { // a rank that hears nothing has a time limit
    }
  }

  [[noreturn]] void fail(error const& why) {
    abort(why);
    throw why;
  }

  /// Leaves a collective by an exception: tells the others, behind what is being sent to them, which takes a second or a
  /// quarter of the time limit at most. Afterwards no memory of messages is touched. A peer that has taken a part of a
  /// message by then finds the connection ended.
  void leave() noexcept {
    abort(order_is_lost(rank));
    if (size == 1 || is_left_) {
      return;
    }
    try {
      flush(patience());
    } catch (std::exception const&) { // no memory
    }
    forget_messages();
  }

  int rank;
  int size;
  std::vector<std::byte> partial; ///< what arrives in an allreduce

private:
  static constexpr std::int32_t notice = phase_count; // in the place of a phase
  static constexpr std::size_t longest_notice = 1024;
  static constexpr std::size_t inbox_bytes = std::size_t(1) << 16;

  std::chrono::nanoseconds patience() const {
    std::chrono::nanoseconds const second = std::chrono::seconds(1);
    return has_limit() ? std::min(second, time_limit / 4) : second;
  }

  tcp_connection& connection(int peer, std::size_t link) {
    return connections_[static_cast<std::size_t>(peer - (peer > rank ? 1 : 0)) * links_ + link];
  }

  tcp_message* new_message() {
    if (free_.empty()) {
      return &all_messages_.emplace_back();
    }
    tcp_message* const made = free_.back();
    free_.pop_back();
    *made = tcp_message();
    return made;
  }

  /// Their memory is not touched any more, and what comes is dropped. A peer that has a part of one hears the end.
  void forget_messages() noexcept {
    is_left_ = true;
    for (tcp_connection& each : connections_) {
      if (!each.out.empty()) {
        ::shutdown(each.file.get(), SHUT_WR);
      }
      each.out.clear();
      each.arriving = nullptr;
    }
  }

  void send(tcp_message& message) {
    tcp_connection& over = *message.over;
    over.out.push_back(&message);
    if (over.out.size() == 1) {
      write(over);
    }
  }

  /// Writes what the connection takes now.
  void write(tcp_connection& to) {
    while (!to.out.empty() && !to.ended) {
      tcp_message& first = *to.out.front();
      tcp_frame frame{.use = first.peer < 0 ? notice : static_cast<std::int32_t>(first.use), .bytes = first.size};
      std::array<iovec, 2> parts{};
      std::size_t const of_frame = std::min(to.written, sizeof(frame));
      std::size_t const of_bytes = to.written - of_frame;
      parts[0] = {reinterpret_cast<std::byte*>(&frame) + of_frame, sizeof(frame) - of_frame};
      parts[1] = {first.at + of_bytes, first.size - of_bytes};
      msghdr what{};
      what.msg_iov = parts.data();
      what.msg_iovlen = parts.size();
      auto const went = ::sendmsg(to.file.get(), &what, MSG_NOSIGNAL);
      if (went < 0 && errno == EINTR) {
        continue;
      }
      if (went < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        return;
      }
      if (went < 0) {
        std::string const why = system_text(errno);
        while (read_some(to)) { // what the peer has sent before it left
        }
        end(to, why);
        return;
      }
      to.written += static_cast<std::size_t>(went);
      if (to.written == sizeof(frame) + first.size) {
        first.is_complete = true;
        to.out.pop_front();
        to.written = 0;
      }
    }
  }

  static void end(tcp_connection& which, std::string const& why) {
    if (!which.ended) {
      which.ended = why;
    }
  }

  void expect(tcp_message& message) {
    tcp_connection& over = *message.over;
    auto& early = over.early[static_cast<std::size_t>(message.use)];
    if (early.empty()) {
      over.expected[static_cast<std::size_t>(message.use)].push_back(&message);
      return;
    }
    tcp_message* const come = early.front();
    early.pop_front();
    if (come->size > message.size) {
      wrong_ = exceeds_room(come->size, message.peer, message.size);
    } else {
      bool const is_arriving = over.arriving == come;
      std::size_t const here = come->size - (is_arriving ? over.missing : 0);
      if (here > 0) {
        std::memcpy(message.at, come->at, here);
      }
      message.arrived = come->size;
      message.is_complete = !is_arriving;
      if (is_arriving) {
        over.arriving = &message;
      }
      release(come);
    }
  }

  /// Reads what has come, once; whether there may be more.
  bool read_some(tcp_connection& from) {
    if (from.ended) {
      return false;
    }
    std::size_t const room = from.arriving == nullptr ? 0 : from.missing;
    std::array<iovec, 2> parts{};
    parts[0] = {room > 0 ? place(from) : nullptr, room};
    parts[1] = {inbox_.data(), inbox_.size()};
    auto const came = ::readv(from.file.get(), parts.data(), static_cast<int>(parts.size()));
    if (came < 0) {
      if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK) {
        end(from, system_text(errno));
      }
      return errno == EINTR;
    }
    if (came == 0) {
      end(from, "it was closed");
      return false;
    }
    auto const bytes = static_cast<std::size_t>(came);
    std::size_t const direct = std::min(bytes, room);
    arrive(from, direct);
    take(from, std::span(inbox_).first(bytes - direct));
    return bytes == room + inbox_.size() && !from.ended;
  }

  /// Of the next byte that arrives.
  static std::byte* place(tcp_connection const& from) {
    return from.arriving->at + (from.arriving->arrived - from.missing);
  }

  void take(tcp_connection& from, std::span<std::byte const> bytes) {
    while (!bytes.empty() && !from.ended) {
      if (from.missing > 0) {
        std::size_t const part = std::min(bytes.size(), from.missing);
        if (from.arriving != nullptr) {
          std::memcpy(place(from), bytes.data(), part);
        }
        arrive(from, part);
        bytes = bytes.subspan(part);
        continue;
      }
      std::size_t const part = std::min(bytes.size(), from.frame.size() - from.frame_bytes);
      std::copy_n(bytes.begin(), part, from.frame.begin() + static_cast<std::ptrdiff_t>(from.frame_bytes));
      from.frame_bytes += part;
      bytes = bytes.subspan(part);
      if (from.frame_bytes == from.frame.size()) {
        from.frame_bytes = 0;
        begin_message(from);
      }
    }
  }

  /// The frame of a message is there.
  void begin_message(tcp_connection& from) {
    tcp_frame frame;
    std::memcpy(&frame, from.frame.data(), sizeof(frame));
    if (frame.mark != tcp_frame::sign || frame.use < 0 || frame.use > notice ||
        (frame.use == notice && frame.bytes > longest_notice)) {
      end(from, "what has come is no message of oktopk");
      return;
    }
    from.missing = static_cast<std::size_t>(frame.bytes);
    if (!is_left_ && !wrong_) {
      from.arriving = room_for(from, frame.use);
    }
    arrive(from, 0);
  }

  /// Where a message of `from.missing` bytes goes: to its receive, or to memory of its own, and nowhere if it is too long.
  tcp_message* room_for(tcp_connection& from, std::int32_t use) {
    bool const is_notice = use == notice;
    if (!is_notice && !from.expected[static_cast<std::size_t>(use)].empty()) {
      auto& expected = from.expected[static_cast<std::size_t>(use)];
      tcp_message* const to = expected.front();
      expected.pop_front();
      to->arrived = from.missing;
      if (from.missing > to->size) {
        wrong_ = exceeds_room(from.missing, from.peer, to->size);
        return nullptr;
      }
      return to;
    }
    tcp_message* const to = new_message();
    to->peer = is_notice ? -1 : from.peer;
    to->own = std::make_unique_for_overwrite<std::byte[]>(from.missing);
    to->at = to->own.get();
    to->size = to->arrived = from.missing;
    if (!is_notice) {
      from.early[static_cast<std::size_t>(use)].push_back(to);
    }
    return to;
  }

  /// So many bytes of the message more are there.
  void arrive(tcp_connection& from, std::size_t bytes) {
    from.missing -= bytes;
    if (from.missing > 0 || from.arriving == nullptr) {
      return;
    }
    tcp_message* const whole = std::exchange(from.arriving, nullptr);
    whole->is_complete = true;
    if (whole->peer < 0) {
      if (!heard_) {
        heard_.emplace(from.peer, std::string(reinterpret_cast<char const*>(whole->at), whole->arrived));
      }
      release(whole);
    }
  }

  /// Until nothing is left to be written, but no longer.
  void flush(std::chrono::nanoseconds longest) {
    deadline const end(longest);
    auto const writes = [](tcp_connection const& each) { return !each.out.empty() && !each.ended; };
    while (std::any_of(connections_.begin(), connections_.end(), writes) && !end.is_over()) {
      progress(end);
    }
  }

  std::size_t links_ = 1;
  std::vector<tcp_connection> connections_; // by peer, then by link
  std::array<std::vector<std::uint32_t>, 2> messages_{
      std::vector<std::uint32_t>(static_cast<std::size_t>(size) * phase_count),
      std::vector<std::uint32_t>(static_cast<std::size_t>(size) * phase_count)}; // sent and received, by peer and phase
  std::deque<tcp_message> all_messages_;
  std::vector<tcp_message*> free_;
  std::vector<pollfd> polls_;
  std::vector<std::byte> inbox_ = std::vector<std::byte>(inbox_bytes);
  std::optional<error> wrong_;                       // with a message
  std::optional<std::pair<int, std::string>> heard_; // who has given up, and why
  std::string notice_;
  bool told_ = false;
  bool is_left_ = false;

  std::mutex of_end_;
  std::optional<error> end_;
  std::atomic<bool> is_to_end_{false};
  owned_file is_woken_;
  owned_file wakes_;
};

} // namespace detail

/// Ranks that are connected by TCP: programs without MPI, torch or Python.
///
/// Every two ranks have a connection for each link. A message goes from and to the caller's memory, which lies on the
/// host, with 16 bytes in front that say its phase and size; one that comes before its receive waits in memory of this
/// object. No rank sends to itself. There are no threads: messages go on while this rank starts one or waits, and a wait
/// sleeps until something comes. Calls may come from any thread, one at a time. Copies share the connections, and the
/// last one closes them.
///
/// The time limit of a wait is `usual_time_limit` unless `tcp_options` has another one; zero stands for none. A rank that
/// ends, also by a signal, ends the waits for it at once, with an `error` (communication) that names it; the rank that
/// hears this first tells all others, as with every error. A machine that vanishes from the network is noticed by the time
/// limit alone. Messages are not encrypted: the network is trusted, as with MPI. A process that is not one of the ranks
/// cannot connect, since it does not know what the store has.
class tcp_communicator : public detail::limited_communicator<tcp_communicator, detail::tcp_ranks> {
public:
  using request = detail::held_request<tcp_communicator, detail::tcp_message*>;
  using bulk_request = request;
  static constexpr bool tells_sizes() { return true; }

  /// Connects `size` ranks, each of which gives another `rank` and the same key. Collective: each rank waits for all
  /// others. Another communicator over the same store has another key.
  ///
  /// An `error` where a rank does not come within the time limit (folder) or `get` throws; where ranks disagree on their
  /// number or that of links; and, on all ranks, where one has a link that it cannot use, which the error names.
  static tcp_communicator rendezvous(rendezvous_store const& store, std::string const& key, int rank, int size,
                                     tcp_options const& options = {}) {
    return tcp_communicator(std::make_shared<detail::tcp_ranks>(store, key, rank, size, options));
  }

  /// The same in a folder that all ranks see.
  static tcp_communicator rendezvous(std::filesystem::path const& folder, std::string const& key, int rank, int size,
                                     tcp_options const& options = {}) {
    return rendezvous(rendezvous_store::in_folder(folder, options.time_limit), key, rank, size, options);
  }

  bool takes_other_threads() const { return true; }

  request isend(std::span<std::byte const> out, int peer, phase use) {
    return request(shared_->start(false, out, peer, use));
  }
  request irecv(std::span<std::byte> in, int peer, phase use) { return request(shared_->start(true, in, peer, use)); }

  void wait_all(std::span<request> requests) {
    detail::launch_unlock const lent;
    detail::tcp_ranks& ranks = *shared_;
    std::optional<detail::deadline> end;
    while (request const* const open = first_open(requests)) {
      if (open->message_->over->ended) {
        lose(*open);
      }
      ranks.look_around();
      if (end && end->is_over()) {
        detail::wait_report const report(requests, is_complete);
        ranks.fail(report.timed_out(ranks.rank, ranks.during, ranks.time_limit));
      }
      if (!end) {
        end.emplace(ranks.time_limit);
      }
      ranks.progress(*end);
    }
    for (request& each : requests) {
      if (each.active()) {
        each.bytes_ = each.message_->arrived;
        ranks.release(each.take());
      }
    }
  }

  /// Gives the communicator up: this rank can no longer use it, and the waits of the others end. A wait that fails does
  /// this by itself.
  void abort(error const& why) noexcept { shared_->abort(why); }

  /// The same for any thread, while a wait may be under way: that one ends with this error, or the next one that has to
  /// wait.
  void abort_soon(error const& why) const { shared_->end_soon(why); }

  /// As `communicator` says. Memory of a message is never read or written afterwards. Waits until the notice is on its way
  /// to the other ranks, behind messages that have begun: for a second at most, or a quarter of the time limit if that is
  /// less.
  void cancel(std::span<request> requests) noexcept {
    shared_->leave();
    for (request& each : requests) {
      each.take();
    }
  }

  /// Each rank reduces a block of the vector, of which all others send it their values, and sends them the result: 2(P-1)
  /// messages, 2n(P-1)/P values, four blocks of memory. After an error the values are of no use.
  template <class T>
    requires std::is_same_v<T, float> || std::is_same_v<T, double>
  void allreduce(std::span<T> values, reduction op, phase use) {
    shared_->broken.throw_if_happened();
    auto const ranks = static_cast<std::size_t>(size());
    auto const own = static_cast<std::size_t>(rank());
    constexpr std::size_t ahead = 4;
    auto const block = [&](std::size_t of) {
      std::size_t const begin = values.size() / ranks * of + std::min(of, values.size() % ranks);
      return values.subspan(begin, values.size() / ranks + (of < values.size() % ranks ? 1 : 0));
    };
    std::vector<request> receives(2 * ranks);
    std::vector<request> sends(2 * ranks);
    std::span<T> const mine = block(own);
    shared_->partial.resize(std::max(shared_->partial.size(), ahead * mine.size_bytes()));
    detail::cancel_on_unwind const guard(*this, receives, sends);
    auto const room = [&](std::size_t step) {
      return std::span(shared_->partial).subspan(step % ahead * mine.size_bytes(), mine.size_bytes());
    };
    auto const exchange = [&](std::size_t step) { // a few at a time: what comes too early takes memory
      if (step < ranks && !mine.empty()) {
        receives[step] = irecv(room(step), static_cast<int>((own + ranks - step) % ranks), use);
      }
      if (step < ranks && !block((own + step) % ranks).empty()) {
        sends[step] = isend(std::as_bytes(block((own + step) % ranks)), static_cast<int>((own + step) % ranks), use);
      }
    };
    for (std::size_t step = 1; step < ahead; ++step) {
      exchange(step);
    }
    for (std::size_t step = 1; step < ranks; ++step) {
      exchange(step + ahead - 1);
      if (!mine.empty()) {
        wait_all(std::span(&receives[step], 1));
        auto const* const theirs = reinterpret_cast<T const*>(room(step).data());
        detail::with_reduction(op, [&](auto operation) {
          for (std::size_t i = 0; i < mine.size(); ++i) {
            mine[i] = operation.of(mine[i], theirs[i]);
          }
        });
      }
    }
    wait_all(std::span(sends)); // results are written where they are read
    for (std::size_t step = 1; step < ranks; ++step) {
      std::size_t const from = (own + ranks - step) % ranks;
      if (auto const theirs = block(from); !theirs.empty()) {
        receives[step] = irecv(std::as_writable_bytes(theirs), static_cast<int>(from), use);
      }
      if (!mine.empty()) {
        sends[step] = isend(std::as_bytes(mine), static_cast<int>((own + step) % ranks), use);
      }
    }
    wait_all(std::span(receives));
    wait_all(std::span(sends));
  }

private:
  explicit tcp_communicator(std::shared_ptr<detail::tcp_ranks> ranks) : limited_communicator(std::move(ranks)) {}

  static bool is_complete(request const& each) { return !each.active() || each.message_->is_complete; }

  /// Of the messages that are not complete, one whose connection has ended, if there is one; else the first.
  static request const* first_open(std::span<request const> requests) {
    request const* open = nullptr;
    for (request const& each : requests) {
      if (!is_complete(each) && (open == nullptr || each.message_->over->ended)) {
        open = &each;
      }
    }
    return open;
  }

  [[noreturn]] void lose(request const& failed) {
    detail::wait_report const what(std::span(&failed, 1), [](request const&) { return false; });
    shared_->lost(failed.message_->peer, "has waited " + what.open(), *failed.message_->over->ended);
  }
};

} // namespace oktopk
