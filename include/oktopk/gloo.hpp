// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The Gloo adapter; the only header that includes Gloo's.

#if !__has_include(<gloo/transport/tcp/device.h>)
#error "oktopk: Gloo's headers were not found; link oktopk::gloo, of find_package(oktopk COMPONENTS gloo)"
#endif

#include <oktopk/comm/broken_pipe.hpp>
#include <oktopk/comm/revocation.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>

#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

namespace oktopk {

/// A place where ranks that do not know each other's addresses leave them: two callbacks over a store that all ranks
/// reach, such as one of torch, or a folder (`in_folder`).
///
/// Values are bytes, and keys are letters, digits, '.', '_' and what the program's own key has. What a callback throws is
/// an `error` of the rendezvous.
struct gloo_store {
  std::function<void(std::string const& key, std::string const& bytes)> set;
  std::function<std::string(std::string const& key)> get;  ///< waits until some rank has set the key
  std::function<void(std::string const& key)> forget = {}; ///< a key that nobody needs any more; may be empty

  /// A folder that exists and that all ranks see, by their own paths, over NFS too. A value is a file; when all ranks are
  /// connected, no file is left. An `error` of `set` (bad_file) if there is such a file already, of ranks that came
  /// before, and of `get` (timed_out) if none comes within the limit; zero stands for none.
  static gloo_store in_folder(std::filesystem::path const& folder, std::chrono::nanoseconds limit = usual_time_limit);
};

/// How ranks over Gloo are connected.
struct gloo_options {
  /// Of the rendezvous and, at first, of every wait; zero stands for none. The same on all ranks.
  std::chrono::nanoseconds time_limit = usual_time_limit;

  /// Network interfaces by name, or addresses or host names of this machine, which messages use by turns; as many on all
  /// ranks. If there is none: those that GLOO_SOCKET_IFNAME lists, between commas; else the address of the name of this
  /// host, if it is one of this machine; else 127.0.0.1. So does torch.
  std::vector<std::string> links = {};
};

namespace detail {

/// The text of an exception of Gloo, without the line of Gloo's source in front.
inline std::string gloo_text(std::exception const& caught) {
  std::string const text = caught.what();
  std::size_t const place = text.starts_with('[') ? text.find("] ") : std::string::npos;
  std::size_t const begin = place == std::string::npos ? 0 : place + 2;
  return text.substr(begin, text.find('\n') - begin);
}

/// A device of Gloo for one of `gloo_options::links`.
inline std::shared_ptr<gloo::transport::Device> gloo_device(std::string const& link) {
  gloo::transport::tcp::attr how;
  if (if_nametoindex(link.c_str()) != 0) {
    how.iface = link;
  } else { // Gloo reads a result that is none where the name has no address
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(link.c_str(), nullptr, &hints, &found) != 0) {
      throw error(fault::communication, "'" + link + "' is neither a network interface nor the name of a host");
    }
    freeaddrinfo(found);
    how.hostname = link;
  }
  try {
    return gloo::transport::tcp::CreateDevice(how);
  } catch (std::exception const& caught) {
    throw error(fault::communication, "Gloo cannot use '" + link + "': " + gloo_text(caught));
  }
}

/// Names between commas, as GLOO_SOCKET_IFNAME has them.
inline std::vector<std::string> gloo_links(std::string const& listed) {
  std::vector<std::string> links;
  std::istringstream names(listed);
  for (std::string name; std::getline(names, name, ',');) {
    links.push_back(name);
  }
  return links;
}

inline std::vector<std::shared_ptr<gloo::transport::Device>> gloo_devices(std::vector<std::string> links) {
  char const* const listed = std::getenv("GLOO_SOCKET_IFNAME");
  if (links.empty() && listed != nullptr) {
    links = gloo_links(listed);
  }
  std::vector<std::shared_ptr<gloo::transport::Device>> devices;
  if (links.empty()) {
    std::array<char, 256> host{};
    try {
      gethostname(host.data(), host.size() - 1);
      devices.push_back(gloo_device(host.data()));
    } catch (error const&) {
      devices.push_back(gloo_device("127.0.0.1"));
    }
  }
  std::transform(links.begin(), links.end(), std::back_inserter(devices), gloo_device);
  return devices;
}

/// The connections of this rank, shared by the copies of a `gloo_communicator`.
class gloo_ranks : public shared_state {
public:
  using buffer = gloo::transport::UnboundBuffer;
  using clock = std::chrono::steady_clock;

  gloo_ranks(gloo_store const& store, std::string const& key, int own, int ranks, gloo_options const& how)
      : rank(own), size(ranks) {
    time_limit = checked_time_limit(how.time_limit);
    if (size < 1 || rank < 0 || rank >= size) {
      throw error(fault::option_out_of_range,
                  "there is no rank " + std::to_string(rank) + " of " + std::to_string(size));
    }
    if (size > 1) {
      ignore_broken_pipe();
      connect(store, key + ".", how);
      waker_ = std::thread([this] { wake_again_and_again(); });
    }
  }

  /// Closes the connections: what was sent still arrives.
  ~gloo_ranks() {
    if (waker_.joinable()) {
      {
        std::lock_guard const lock(of_waker_);
        over_ = true;
      }
      to_waker_.notify_one();
      waker_.join();
    }
  }

  gloo_ranks& operator=(gloo_ranks&&) = delete;

  std::unique_ptr<buffer> start(bool receives, std::span<std::byte const> bytes, int peer, phase use) {
    broken.throw_if_happened();
    std::string const aim = (receives ? "receive from rank " : "send to rank ") + std::to_string(peer) + " (" +
                            std::string(name(use)) + ")";
    if (peer < 0 || peer >= size || peer == rank) {
      throw error(fault::communication,
                  "rank " + std::to_string(rank) + " cannot " + aim + ": there is no other such rank");
    }
    auto& so_far = messages_[receives ? 1 : 0][static_cast<std::size_t>(peer * phase_count + static_cast<int>(use))];
    try {
      auto message = contexts_[so_far++ % contexts_.size()]->createUnboundBuffer(const_cast<std::byte*>(bytes.data()),
                                                                                 bytes.size()); // a send only reads
      auto const slot = static_cast<std::uint64_t>(use);
      receives ? message->recv(peer, slot, 0, bytes.size()) : message->send(peer, slot, 0, bytes.size());
      return message;
    } catch (std::exception const& caught) {
      lost(peer, "cannot " + aim, gloo_text(caught));
    }
  }

  /// Waits some milliseconds at most; gives whether the message is complete. Where `receives` is right and the connection
  /// has ended, Gloo throws unless it was in the middle of the message.
  bool wait_a_while(buffer& message, bool receives) {
    struct registered {
      gloo_ranks& ranks;
      registered(gloo_ranks& all, buffer& what, bool in) : ranks(all) { ranks.wake(&what, in); }
      ~registered() { ranks.wake(nullptr, false); }
    } const scope(*this, message, receives);
    return receives ? message.waitRecv(nullptr, no_limit) : message.waitSend(nullptr, no_limit);
  }

  /// The same for a message that is complete or never will be. It takes more than one try: to be woken just before the
  /// wait hides that it is complete.
  bool is_complete(buffer& message, bool receives) {
    for (int attempt = 0; attempt < 4; ++attempt) {
      if (wait_a_while(message, receives)) {
        return true;
      }
    }
    return false;
  }

  /// Throws if another rank has given up. Notes whose connections have ended.
  void look_around() {
    if (is_to_end_) {
      std::unique_lock lock(of_waker_);
      error const why = *end_;
      lock.unlock();
      fail(why);
    }
    for (int step = 1; step < size; ++step) {
      int const peer = (rank + step) % size;
      watch& each = *watches_[static_cast<std::size_t>(peer)];
      if (hears(each)) {
        broken.fail(abandoned_by(peer, during, each.text.data() + 1));
      }
    }
  }

  /// For any thread: the wait that is under way ends, or the next one, with this error on all ranks.
  void end_soon(error const& why) {
    std::lock_guard const lock(of_waker_);
    end_.emplace(why);
    is_to_end_ = true;
  }

  bool any_has_ended() const { return any_has_ended_; }
  bool has_ended(int peer) const { return watches_[static_cast<std::size_t>(peer)]->ended.has_value(); }
  std::string const& end_of(int peer) const { return *watches_[static_cast<std::size_t>(peer)]->ended; }

  /// The error of a message whose connection has ended, unless another rank has told this one why.
  [[noreturn]] void lost(int peer, std::string const& aim, std::string const& why) {
    look_around();
    fail(error(fault::communication, "rank " + std::to_string(rank) + " " + aim + during.where() +
                                         ", and its connection to rank " + std::to_string(peer) +
                                         " has ended: " + why));
  }

  /// Also tells the other ranks: by a message of its own slot, with the reason, whose receive was posted by all in the
  /// beginning. Waits for a tenth of a second at most.
  void abort(error const& why) noexcept {
    broken.note(why);
    if (size == 1 || std::exchange(told_, true)) {
      return;
    }
    try {
      notice_ = "!" + broken.reason(); // the first error, not one that followed from it
      std::size_t const length = std::min(notice_.size(), longest_notice);
      for (int step = 1; step < size; ++step) {
        int const peer = (rank + step) % size;
        try {
          auto notice = contexts_[0]->createUnboundBuffer(notice_.data(), length);
          notice->send(peer, notice_slot, 0, length);
          notices_.push_back(std::move(notice));
        } catch (std::exception const&) { // it has left
        }
      }
      auto const end = clock::now() + std::chrono::milliseconds(100);
      for (auto const& each : notices_) {
        try {
          while (!wait_a_while(*each, false) && clock::now() < end) {
          }
        } catch (std::exception const&) {
        }
      }
    } catch (std::exception const&) { // a rank that hears nothing has a time limit
    }
  }

  [[noreturn]] void fail(error const& why) {
    abort(why);
    throw why;
  }

  /// Leaves a collective by an exception: tells the others, waits until all have answered in the same way or have left,
  /// for a second or a quarter of the time limit at most, and closes the connections. Otherwise Gloo's thread would try
  /// again and again to continue a message whose memory is gone.
  void leave() noexcept {
    abort(order_is_lost(rank));
    if (size == 1 || std::exchange(closed_, true)) {
      return;
    }
    std::chrono::nanoseconds const second = std::chrono::seconds(1);
    auto const end = clock::now() + (has_limit() ? std::min(second, time_limit / 4) : second);
    for (int peer = 0; peer < size; ++peer) {
      watch& each = *watches_[static_cast<std::size_t>(peer)];
      while (peer != rank && !hears(each) && !each.ended && clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    for (auto const& each : contexts_) {
      try { // a wait that exceeds Gloo's own time limit closes all connections of a context, and lets data arrive
        each->createUnboundBuffer(nullptr, 0)->waitRecv(nullptr, std::chrono::milliseconds(1));
      } catch (std::exception const&) {
      }
    }
  }

  int rank;
  int size;
  std::vector<std::byte> partial; ///< what arrives in an allreduce

private:
  static constexpr std::uint64_t notice_slot = phase_count;
  static constexpr std::uint64_t greeting_slot = phase_count + 1;
  static constexpr std::size_t longest_notice = 1024;
  static constexpr std::chrono::milliseconds no_limit = std::chrono::hours(10'000); // Gloo closes all where it is over
  static constexpr std::chrono::milliseconds a_while{5};

  /// What is heard of a peer beside messages: receives that are always posted, one for each link, so that they get to
  /// know of the end of a connection, whatever else is under way.
  struct watch {
    std::array<char, longest_notice + 1> text{};
    std::vector<std::unique_ptr<buffer>> of_links;
    std::optional<std::string> ended; // why
    bool has_spoken = false;
  };

  void listen_to(int peer) {
    watch& mine = *watches_[static_cast<std::size_t>(peer)];
    for (auto const& link : contexts_) { // notices come over the first one
      std::size_t const room = mine.of_links.empty() ? longest_notice : 0;
      mine.of_links.push_back(link->createUnboundBuffer(mine.text.data(), room));
      mine.of_links.back()->recv(peer, notice_slot, 0, room);
    }
  }

  /// Whether a peer has given up, or its connection has ended, which is noted. Gloo cannot be asked whether a receive is
  /// complete: a wait that is aborted before it begins returns at once, and throws if the connection has ended. So what
  /// has come is seen in its room, since a notice does not begin with zero, and then waited for.
  bool hears(watch& peer) noexcept {
    if (peer.has_spoken || peer.ended) {
      return peer.has_spoken;
    }
    try {
      peer.has_spoken = static_cast<char const volatile&>(peer.text[0]) != 0 && is_complete(*peer.of_links[0], true);
      for (std::size_t link = 0; !peer.has_spoken && link < peer.of_links.size(); ++link) {
        peer.of_links[link]->abortWaitRecv();
        peer.of_links[link]->waitRecv(nullptr, no_limit);
      }
    } catch (std::exception const& caught) {
      any_has_ended_ = true;
      peer.ended.emplace();
      try {
        peer.ended = gloo_text(caught);
      } catch (std::exception const&) { // no memory
      }
    }
    return peer.has_spoken;
  }

  void wake(buffer* waited, bool receives) {
    std::lock_guard const lock(of_waker_);
    waited_ = waited;
    waits_to_receive_ = receives;
  }

  /// Ends the wait of the other thread, if there is one, once every few milliseconds: the time limits of Gloo's own waits
  /// close all connections, and its waits hear nothing of other ranks.
  void wake_again_and_again() {
    std::unique_lock lock(of_waker_);
    while (!to_waker_.wait_for(lock, a_while, [this] { return over_; })) {
      if (buffer* const waited = std::exchange(waited_, nullptr)) {
        waits_to_receive_ ? waited->abortWaitRecv() : waited->abortWaitSend();
      }
    }
  }

  /// What a rank leaves in the store: the first line says how many ranks and links it knows, and the bytes of an address,
  /// or that it has failed; addresses follow, one for each peer and link.
  void connect(gloo_store const& store, std::string const& key, gloo_options const& how) {
    std::string mine;
    std::size_t bytes = 0;
    try {
      for (auto const& device : gloo_devices(how.links)) {
        contexts_.push_back(device->createContext(rank, size));
        // While it connects, Gloo waits five times as long.
        contexts_.back()->setTimeout(std::chrono::ceil<std::chrono::milliseconds>(time_limit / 5));
        for (int peer = 0; peer < size; ++peer) {
          if (peer != rank) {
            auto const address = contexts_.back()->createPair(peer)->address().bytes();
            bytes = address.size();
            mine.append(address.begin(), address.end());
          }
        }
      }
      mine = facts(bytes) + "\n" + mine;
    } catch (error const& caught) {
      mine = "! " + caught.sentence() + "\n";
    } catch (std::exception const& caught) {
      mine = "! " + gloo_text(caught) + "\n";
    }
    std::vector<std::string> all(static_cast<std::size_t>(size));
    all[static_cast<std::size_t>(rank)] = mine;
    call_store(rank, [&] { store.set(key + std::to_string(rank), mine); });
    for (int peer = 0; peer < size; ++peer) {
      std::string& theirs = all[static_cast<std::size_t>(peer)];
      if (peer != rank) {
        call_store(peer, [&] { theirs = store.get(key + std::to_string(peer)); });
      }
    }
    std::size_t const addresses = contexts_.size() * static_cast<std::size_t>(size - 1) * bytes;
    auto const first_line = [](std::string const& text) { return text.substr(0, text.find('\n')); };
    for (int peer = 0; peer < size; ++peer) { // all ranks throw the same
      if (std::string const first = first_line(all[static_cast<std::size_t>(peer)]); first.starts_with("! ")) {
        throw error(fault::communication, "rank " + std::to_string(peer) + ": " + first.substr(2));
      }
    }
    for (int peer = 0; peer < size; ++peer) {
      std::string const& theirs = all[static_cast<std::size_t>(peer)];
      std::string const first = first_line(theirs);
      if (first != facts(bytes) || theirs.size() != first.size() + 1 + addresses) {
        throw error(fault::ranks_disagree, "the ranks disagree: rank " + std::to_string(rank) + " has come with " +
                                               facts(bytes) + ", rank " + std::to_string(peer) + " with " + first);
      }
    }
    for (std::size_t link = 0; link < contexts_.size(); ++link) {
      for (int peer = 0; peer < size; ++peer) {
        if (peer == rank) {
          continue;
        }
        std::string const& theirs = all[static_cast<std::size_t>(peer)];
        auto const which =
            link * static_cast<std::size_t>(size - 1) + static_cast<std::size_t>(rank - (rank > peer ? 1 : 0));
        auto const begin = theirs.end() - static_cast<std::ptrdiff_t>(addresses - which * bytes);
        try {
          contexts_[link]->getPair(peer)->connect({begin, begin + static_cast<std::ptrdiff_t>(bytes)});
        } catch (std::exception const& caught) {
          throw cannot_connect(peer, caught);
        }
      }
    }
    greet();
    if (store.forget) {
      call_store(rank, [&] { store.forget(key + std::to_string(rank)); });
    }
  }

  /// A connection may be there before the peer knows of it. Who has greeted all others has read all addresses, and is
  /// connected to all; so a rank may leave, and addresses may be forgotten, without harm to one that still connects.
  void greet() {
    auto const each_peer = [this](auto const& body) {
      for (int peer = 0; peer < size; ++peer) {
        try {
          if (peer != rank) {
            body(peer, static_cast<std::size_t>(peer));
          }
        } catch (std::exception const& caught) {
          throw cannot_connect(peer, caught);
        }
      }
    };
    std::vector<std::unique_ptr<buffer>> heard(static_cast<std::size_t>(size));
    std::vector<std::unique_ptr<buffer>> said(static_cast<std::size_t>(size));
    std::generate_n(std::back_inserter(watches_), size, std::make_unique<watch>);
    each_peer([&](int peer, std::size_t at) {
      listen_to(peer);
      heard[at] = contexts_[0]->createUnboundBuffer(nullptr, 0);
      heard[at]->recv(peer, greeting_slot, 0, 0);
      said[at] = contexts_[0]->createUnboundBuffer(nullptr, 0);
      said[at]->send(peer, greeting_slot, 0, 0);
    });
    auto const limit = has_limit() ? std::chrono::ceil<std::chrono::milliseconds>(time_limit) : no_limit;
    each_peer([&](int, std::size_t at) {
      heard[at]->waitRecv(nullptr, limit);
      said[at]->waitSend(nullptr, limit);
    });
  }

  error cannot_connect(int peer, std::exception const& why) const {
    return {fault::communication,
            "rank " + std::to_string(rank) + " cannot connect to rank " + std::to_string(peer) + ": " + gloo_text(why)};
  }

  std::string facts(std::size_t bytes) const {
    return std::to_string(size) + " ranks, " + std::to_string(contexts_.size()) + " links and addresses of " +
           std::to_string(bytes) + " bytes";
  }

  template <class Call>
  void call_store(int of, Call const& call) const {
    std::string const where =
        "rank " + std::to_string(rank) + ", at the rendezvous with rank " + std::to_string(of) + ": ";
    try {
      call();
    } catch (error const& caught) {
      throw error(caught.code(), where + caught.sentence());
    } catch (std::exception const& caught) {
      throw error(fault::communication, where + caught.what());
    }
  }

  std::vector<std::shared_ptr<gloo::transport::Context>> contexts_; // one for each link
  std::array<std::vector<std::uint32_t>, 2> messages_{
      std::vector<std::uint32_t>(static_cast<std::size_t>(size) * phase_count),
      std::vector<std::uint32_t>(static_cast<std::size_t>(size) * phase_count)}; // sent and received, by peer and phase
  std::vector<std::unique_ptr<watch>> watches_;                                  // by peer
  bool any_has_ended_ = false;
  std::string notice_;
  std::vector<std::unique_ptr<buffer>> notices_;
  bool told_ = false;
  bool closed_ = false;

  std::mutex of_waker_;
  std::condition_variable to_waker_;
  buffer* waited_ = nullptr;
  bool waits_to_receive_ = false;
  bool over_ = false;
  std::optional<error> end_;
  std::atomic<bool> is_to_end_{false};
  std::thread waker_;
};

} // namespace detail

inline gloo_store gloo_store::in_folder(std::filesystem::path const& folder, std::chrono::nanoseconds limit) {
  auto const set = [folder](std::string const& key, std::string const& bytes) {
    auto const path = folder / key;
    if (exists(path)) {
      throw error(fault::bad_file,
                  path.string() + " is there already, of ranks that came before: take another key or folder");
    }
    auto const part = folder / (key + ".part");
    std::ofstream(part, std::ios::binary) << bytes << std::flush;
    if (std::error_code none; file_size(part, none) != bytes.size()) {
      throw error(fault::bad_file, "cannot write " + part.string());
    }
    rename(part, path); // nobody reads half of it
  };
  auto const get = [folder, limit = detail::checked_time_limit(limit)](std::string const& key) {
    auto const begun = std::chrono::steady_clock::now();
    while (!exists(folder / key)) {
      if (limit.count() > 0 && std::chrono::steady_clock::now() - begun > limit) {
        throw error(fault::timed_out, (folder / key).string() + " has not come within " + detail::duration_text(limit) +
                                          ", the time limit");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    std::ifstream file(folder / key, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  return {set, get, [folder](std::string const& key) { std::filesystem::remove(folder / key); }};
}

/// Ranks that are connected by TCP, with Gloo: programs without MPI, torch or Python.
///
/// Each message is one of Gloo's unbound buffers, from and to the caller's memory, which lies on the host. Gloo does not
/// tell how many bytes arrived, so the size of a message is sent ahead if the receiver does not know it
/// (`message_group`), and a message that is longer than its room ends the program. No rank sends to itself. Gloo moves the
/// data in a thread of its own for each link, and a second thread of this object ends waits: both sleep nearly always.
/// Calls may come from any thread, one at a time. Copies share the connections, and the last one closes them.
///
/// The time limit of a wait is `usual_time_limit` unless `gloo_options` has another one; zero stands for none. A rank that
/// ends, also by a signal, ends the waits for it at once, with an `error` (communication) that names it; the rank that
/// hears this first tells all others, as with every error. A machine that vanishes from the network is noticed by the time
/// limit alone.
class gloo_communicator : public detail::limited_communicator<gloo_communicator, detail::gloo_ranks> {
public:
  class request : public detail::reported_request {
  public:
    request() = default;
    bool active() const { return message_ != nullptr; }

  private:
    friend gloo_communicator;
    using reported_request::reported_request;
    std::unique_ptr<gloo::transport::UnboundBuffer> message_;
  };

  using bulk_request = request;

  /// Connects `size` ranks, each of which gives another `rank` and the same key. Collective: each rank waits for all
  /// others. Another communicator over the same store has another key. Every two ranks have a connection for each link.
  ///
  /// An `error` where a rank does not come within the time limit (folder) or `get` throws; where ranks disagree on their
  /// number or that of links; and, on all ranks, where one has a link that it cannot use, which the error names.
  ///
  /// If the program leaves SIGPIPE at its default, this process ignores it from now on: Gloo would let the signal end the
  /// program when it writes to a rank that has left.
  static gloo_communicator rendezvous(gloo_store const& store, std::string const& key, int rank, int size,
                                      gloo_options const& options = {}) {
    return gloo_communicator(std::make_shared<detail::gloo_ranks>(store, key, rank, size, options));
  }

  /// The same in a folder that all ranks see.
  static gloo_communicator rendezvous(std::filesystem::path const& folder, std::string const& key, int rank, int size,
                                      gloo_options const& options = {}) {
    return rendezvous(gloo_store::in_folder(folder, options.time_limit), key, rank, size, options);
  }

  bool takes_other_threads() const { return true; }

  request isend(std::span<std::byte const> out, int peer, phase use) { return start_one(false, out, peer, use); }
  request irecv(std::span<std::byte> in, int peer, phase use) { return start_one(true, in, peer, use); }

  void wait_all(std::span<request> requests) {
    detail::launch_unlock const lent;
    detail::gloo_ranks& ranks = *shared_;
    using clock = std::chrono::steady_clock;
    clock::time_point begun{};
    while (request* const next = first_active(requests)) {
      bool const ended = ranks.has_ended(next->peer_);
      try {
        if (ended ? ranks.is_complete(*next->message_, next->receives_)
                  : ranks.wait_a_while(*next->message_, next->receives_)) {
          next->message_.reset();
          continue;
        }
      } catch (std::exception const& caught) {
        lose(*next, detail::gloo_text(caught));
      }
      if (ended) { // in the middle of the message
        lose(*next, ranks.end_of(next->peer_));
      }
      ranks.look_around();
      auto const now = clock::now();
      begun = begun == clock::time_point() ? now : begun;
      if (ranks.has_limit() && now - begun > ranks.time_limit) {
        ranks.fail(report(requests).timed_out(ranks.rank, ranks.during, ranks.time_limit));
      }
    }
  }

  /// Gives the communicator up: this rank can no longer use it, and the waits of the others end. A wait that fails does
  /// this by itself.
  void abort(error const& why) noexcept { shared_->abort(why); }

  /// The same for any thread, while a wait may be under way: that one ends with this error, or the next one that has to
  /// wait.
  void abort_soon(error const& why) const { shared_->end_soon(why); }

  /// As `communicator` says; the connections are closed. Memory of a message is never read or written afterwards. Waits
  /// until the other ranks have given up as well, for a second at most, or a quarter of the time limit if that is less.
  void cancel(std::span<request> requests) noexcept {
    shared_->leave();
    for (request& each : requests) {
      each.message_.reset();
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
    auto const receive = [&](std::size_t step) {
      if (step < ranks && !mine.empty()) {
        receives[step] = irecv(room(step), static_cast<int>((own + ranks - step) % ranks), use);
      }
    };
    for (std::size_t step = 1; step < ahead; ++step) {
      receive(step);
    }
    for (std::size_t step = 1; step < ranks; ++step) {
      std::size_t const peer = (own + step) % ranks;
      if (auto const theirs = block(peer); !theirs.empty()) {
        sends[step] = isend(std::as_bytes(theirs), static_cast<int>(peer), use);
      }
    }
    for (std::size_t step = 1; step < ranks && !mine.empty(); ++step) {
      receive(step + ahead - 1);
      wait_all(std::span(&receives[step], 1));
      auto const* const theirs = reinterpret_cast<T const*>(room(step).data());
      detail::with_reduction(op, [&](auto operation) {
        for (std::size_t i = 0; i < mine.size(); ++i) {
          mine[i] = operation.of(mine[i], theirs[i]);
        }
      });
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
  explicit gloo_communicator(std::shared_ptr<detail::gloo_ranks> ranks) : limited_communicator(std::move(ranks)) {}

  request start_one(bool receives, std::span<std::byte const> bytes, int peer, phase use) {
    request started(receives, peer, use);
    started.message_ = shared_->start(receives, bytes, peer, use);
    return started;
  }

  /// The message to wait for: one whose connection has ended, if there is one.
  request* first_active(std::span<request> requests) const {
    request* first = nullptr;
    for (request& each : requests) {
      if (each.active() && (first == nullptr || shared_->has_ended(each.peer_))) {
        first = &each;
        if (!shared_->any_has_ended() || shared_->has_ended(each.peer_)) {
          break;
        }
      }
    }
    return first;
  }

  detail::wait_report report(std::span<request> requests) const {
    return detail::wait_report(requests, [this](request const& each) {
      try {
        return !each.active() || shared_->wait_a_while(*each.message_, each.receives_);
      } catch (std::exception const&) {
        return false;
      }
    });
  }

  [[noreturn]] void lose(request& failed, std::string const& why) {
    detail::wait_report const what(std::span(&failed, 1), [](request const&) { return false; });
    failed.message_.reset();
    shared_->lost(failed.peer_, "has waited " + what.open(), why);
  }
};

} // namespace oktopk
