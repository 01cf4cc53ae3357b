// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Processes of one node as ranks, over POSIX shared memory. For Linux only: its futexes let ranks of several processes
// sleep, and its file locks end with the process that holds them.
//
// Its base class, its requests and the texts of its errors are those of the library's own communicators. They are in
// oktopk::detail and may change from release to release; own_communicator.cpp does without them.

#include <oktopk/comm/collectives.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <utility>

namespace shared_memory {

using oktopk::error, oktopk::fault, oktopk::phase, oktopk::phase_count, oktopk::reduction;
using namespace oktopk::detail;

/// A message of this rank. In the ring its size comes first, then its bytes.
struct shared_message {
  bool receives;
  int peer;
  phase use;
  std::byte* data;
  std::uint64_t capacity; ///< bytes to send, or room for the bytes that arrive
  std::uint64_t size;     ///< size in the ring
  std::uint64_t moved = 0;

  bool done() const { return moved >= sizeof(size) && moved == sizeof(size) + std::min(size, capacity); }
};

/// The bytes of one phase on their way from one rank to another. It lies in shared memory that begins as zeros.
struct shared_ring {
  static constexpr std::uint64_t capacity = 8192;
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> taken;
  alignas(64) std::byte bytes[capacity];

  /// Moves as many bytes of a message as the ring allows now; returns their number.
  std::uint64_t move(shared_message& m) {
    std::uint64_t const before = m.moved;
    if (m.moved < sizeof(m.size)) {
      m.moved += copy(m.receives, reinterpret_cast<std::byte*>(&m.size) + m.moved, sizeof(m.size) - m.moved);
    }
    if (m.moved >= sizeof(m.size)) {
      std::uint64_t const place = m.moved - sizeof(m.size);
      m.moved += copy(m.receives, m.data + place, std::min(m.size, m.capacity) - place);
    }
    return m.moved - before;
  }

private:
  std::uint64_t copy(bool out, std::byte* mine, std::uint64_t most) {
    std::uint64_t const filled = written.load() - taken.load();
    std::uint64_t const size = std::min(most, out ? filled : capacity - filled);
    std::atomic<std::uint64_t>& end = out ? taken : written;
    for (std::uint64_t done = 0; done < size;) {
      std::uint64_t const at = (end.load() + done) % capacity;
      std::uint64_t const part = std::min(size - done, capacity - at);
      out ? std::memcpy(mine + done, bytes + at, part) : std::memcpy(bytes + at, mine + done, part);
      done += part;
    }
    end.fetch_add(size);
    return size;
  }
};

/// The state that a rank shows to the other ranks. It lies in shared memory that begins as zeros.
struct alignas(64) shared_seat {
  std::atomic<std::uint32_t> bell; ///< counts events for this rank, which sleeps while the count stays the same
  std::atomic<std::uint32_t> here;
  std::atomic<std::uint32_t> gave_up;
  char reason[1000];

  void ring() {
    bell.fetch_add(1);
    syscall(SYS_futex, &bell, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
};

/// This rank's side of all messages; shared by the copies of a communicator.
class shared_ranks : public shared_state {
public:
  shared_ranks(std::string const& name, int own, int all, std::chrono::nanoseconds limit) : rank(own), size(all) {
    time_limit = checked_time_limit(limit);
    if (all < 1 || own < 0 || own >= all) {
      throw error(fault::option_out_of_range, "there is no rank " + std::to_string(own) + " of " + std::to_string(all));
    }
    during.begin("the start of " + name, -1);
    map(name);
    tell_all();
    auto const has_come = [this](int each) { return seat(each).here.load() != 0; };
    auto const differs = [&](int each) {
      return has_come(each) && seat(each).here.load() != static_cast<std::uint32_t>(size);
    };
    auto const is_over = [&] {
      if (int const other = first_of(differs, true); other < size) {
        throw error(fault::ranks_disagree, "rank " + std::to_string(other) + " has come to " + name +
                                               " with another number of ranks than rank " + std::to_string(rank));
      }
      return first_of(has_come, false) == size;
    };
    try {
      sleep_until(is_over, has_come, [] { return wait_report("for everybody to come"); });
    } catch (error const&) {
      remove_name(name);
      unmap();
      throw;
    }
    if (rank == 0) {
      remove_name(name); // the memory itself goes with the last rank
    }
    during.begin({}, -1);
  }

  ~shared_ranks() { unmap(); }
  shared_ranks& operator=(shared_ranks&&) = delete;

  std::shared_ptr<shared_message> post(shared_message const& what) {
    broken.throw_if_happened();
    if (what.peer < 0 || what.peer >= size || what.peer == rank) {
      throw error(fault::communication, "rank " + std::to_string(rank) + " has no peer " + std::to_string(what.peer));
    }
    auto made = std::make_shared<shared_message>(what);
    lane(what.receives, what.peer, static_cast<int>(what.use)).push_back(made);
    move_all();
    return made;
  }

  /// Sleeps until `is_over()`. An `error`, of which all ranks are told, if that takes too long, a rank has given up, or
  /// a rank for which `needs(rank)` is true has ended. `report()` describes the wait.
  template <class Over, class Needs, class Report>
  void sleep_until(Over const& is_over, Needs const& needs, Report const& report) {
    auto const begun = std::chrono::steady_clock::now();
    for (bool idle = false;;) {
      std::uint32_t const seen = seat(rank).bell.load();
      auto const has_ended = [&](int each) { return each != rank && needs(each) && lock(F_OFD_GETLK, each); };
      int const ended = idle ? first_of(has_ended, true) : size; // before the last look at its messages
      move_all();
      if (is_over()) {
        return;
      }
      broken.throw_if_happened();
      auto const gave_up = [&](int each) { return each != rank && seat(each).gave_up.load() != 0; };
      if (int const aborted_by = first_of(gave_up, true); aborted_by < size) {
        broken.fail(abandoned_by(aborted_by, during, reason_of(aborted_by)));
      }
      auto const left = time_limit - (std::chrono::steady_clock::now() - begun);
      bool const is_late = has_limit() && left.count() <= 0;
      if (is_late || ended < size) {
        error const why = is_late ? report().timed_out(rank, during, time_limit)
                                  : error(fault::communication, "rank " + std::to_string(rank) + " waits " +
                                                                    report().open() + during.where() + ", but rank " +
                                                                    std::to_string(ended) + " has ended");
        abort(why);
        throw why;
      }
      auto const nap =
          std::min<std::chrono::nanoseconds>(std::chrono::milliseconds(20), left.count() > 0 ? left : left.max());
      timespec const pause{0, static_cast<long>(nap.count())};
      idle = syscall(SYS_futex, &seat(rank).bell, FUTEX_WAIT, seen, &pause, nullptr, 0) != 0 && errno == ETIMEDOUT;
    }
  }

  /// Tells all ranks the reason, once; later reasons are not told. After that no message of this rank moves.
  void abort(error const& why) noexcept {
    broken.note(why);
    lanes_.clear();
    if (seat(rank).gave_up.load() == 0) {
      std::strncpy(seat(rank).reason, broken.reason().c_str(), sizeof(seat(rank).reason) - 1);
      seat(rank).gave_up.store(1);
      tell_all();
    }
  }

  int rank;
  int size;

private:
  using queue = std::deque<std::shared_ptr<shared_message>>; // oldest first

  shared_seat& seat(int of) const { return reinterpret_cast<shared_seat*>(memory_)[of]; }
  queue& lane(bool receives, int peer, int use) {
    lanes_.resize(static_cast<std::size_t>(2 * size * phase_count));
    return lanes_[static_cast<std::size_t>((2 * peer + receives) * phase_count + use)];
  }

  std::string reason_of(int of) const { // the text may be damaged
    return {seat(of).reason, strnlen(seat(of).reason, sizeof(seat(of).reason))};
  }

  template <class Predicate>
  int first_of(Predicate const& holds, bool as) const {
    int each = 0;
    while (each < size && holds(each) != as) {
      each += 1;
    }
    return each;
  }

  void tell_all() noexcept {
    for (int each = 0; each < size; ++each) {
      seat(each).ring();
    }
  }

  void move_all() {
    auto* const rings = reinterpret_cast<shared_ring*>(memory_ + static_cast<std::size_t>(size) * sizeof(shared_seat));
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      std::uint64_t moved = 0;
      auto const [peer, use] = std::pair(static_cast<int>(i) / phase_count / 2, static_cast<int>(i) % phase_count);
      for (queue& all = lanes_[i]; !all.empty(); all.pop_front()) {
        shared_message& m = *all.front();
        int const ring = (m.receives ? peer * size + rank : rank * size + peer) * phase_count + use;
        moved += rings[ring].move(m);
        if (!m.done()) {
          break;
        }
        if (m.size > m.capacity) { // the rest is in the ring, where the next message would take it for a size
          error const why = exceeds_room(m.size, m.peer, m.capacity);
          abort(why); // which empties the lanes
          throw why;
        }
      }
      if (moved > 0) {
        seat(peer).ring();
      }
    }
  }

  // Maps the memory; the first rank to come creates it. Ranks enter one after the other, by the door. So a seat that was
  // taken and is not locked belongs to a rank that has ended, of an earlier run as a rule: whoever finds one takes the
  // name away from that memory, and makes it anew.
  void map(std::string const& name) {
    auto const all = static_cast<std::size_t>(size);
    bytes_ = all * sizeof(shared_seat) + all * all * phase_count * sizeof(shared_ring);
    while (!open_at_door(name) || is_stale()) {
      if (file_ >= 0 && is_named(name)) {
        shm_unlink(name.c_str());
      }
      unmap();
    }
    if (!lock(F_OFD_SETLK, rank)) {
      refuse(name, "it is there already");
    }
    seat(rank).here.store(static_cast<std::uint32_t>(size));
    lock(F_OFD_SETLK, door, F_UNLCK);
  }

  // Opens the memory and takes the door. False if it has lost its name meanwhile, or was made for another number of
  // ranks that have all ended.
  bool open_at_door(std::string const& name) {
    file_ = shm_open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct stat about = {};
    if (file_ < 0 || fstat(file_, &about) != 0) {
      refuse(name, std::strerror(errno));
    }
    if (about.st_uid != geteuid() || (about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
      refuse(name, "it is another user's, or others have rights to it");
    }
    if (!take_door(time_limit)) {
      refuse(name, errno == EAGAIN ? "another process that enters it does not go on" : std::strerror(errno));
    }
    fstat(file_, &about); // as whoever was here before has left it
    bool const fits = about.st_size == 0 || static_cast<std::size_t>(about.st_size) == bytes_;
    if (!is_named(name) || (!fits && lock(F_OFD_GETLK, 0, F_WRLCK, door))) {
      return false;
    }
    errno = posix_fallocate(file_, 0, static_cast<off_t>(bytes_));
    void* const at = errno == 0 ? mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0) : MAP_FAILED;
    if (at == MAP_FAILED) {
      refuse(name, std::strerror(errno));
    }
    memory_ = static_cast<std::byte*>(at);
    return true;
  }

  bool is_stale() const {
    return first_of([&](int each) { return seat(each).here.load() != 0 && lock(F_OFD_GETLK, each); }, true) < size;
  }

  // Waits until no other rank enters; zero stands for no limit. False after the limit, or for an error in errno.
  bool take_door(std::chrono::nanoseconds limit) const noexcept {
    auto const begun = std::chrono::steady_clock::now();
    while (!lock(F_OFD_SETLK, door)) {
      bool const is_late = limit.count() > 0 && std::chrono::steady_clock::now() - begun > limit;
      if (errno != EAGAIN || is_late) {
        return false;
      }
      timespec const pause{0, 1000000};
      nanosleep(&pause, nullptr);
    }
    return true;
  }

  // False if the name stands for other memory by now, or for none.
  bool is_named(std::string const& name) const noexcept {
    struct stat mine = {};
    struct stat named = {};
    int const other = shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0);
    bool const same = other >= 0 && fstat(other, &named) == 0 && fstat(file_, &mine) == 0 &&
                      named.st_dev == mine.st_dev && named.st_ino == mine.st_ino;
    if (other >= 0) {
      close(other);
    }
    return same;
  }

  // A name that cannot be removed is found stale by the next run.
  void remove_name(std::string const& name) const noexcept {
    if (take_door(std::chrono::seconds(1))) {
      if (is_named(name)) {
        shm_unlink(name.c_str());
      }
      lock(F_OFD_SETLK, door, F_UNLCK);
    }
  }

  [[noreturn]] void refuse(std::string const& name, std::string const& why) {
    unmap();
    throw error(fault::communication, "rank " + std::to_string(rank) + " cannot use the memory " + name + ": " + why);
  }

  void unmap() noexcept {
    if (memory_ != nullptr) {
      munmap(std::exchange(memory_, nullptr), bytes_);
    }
    if (file_ >= 0) {
      close(std::exchange(file_, -1)); // with the locks
    }
  }

  // Each rank locks the byte of its number as long as its process lives, or one that it has forked. True if the places
  // are free, or now as this rank asks.
  bool lock(int how, int place, short type = F_WRLCK, int places = 1) const noexcept {
    struct flock what = {};
    what.l_type = type;
    what.l_whence = SEEK_SET;
    what.l_start = place;
    what.l_len = places;
    return fcntl(file_, how, &what) == 0 && (how == F_OFD_SETLK || what.l_type == F_UNLCK);
  }

  static constexpr int door = 1 << 24; // the byte whose lock a rank holds while it enters; no rank has this number

  int file_ = -1;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::vector<queue> lanes_;
};

/// Processes of one node as ranks, over shared memory of POSIX: no MPI, no launcher, no network.
///
/// Every process makes one with the same name ("/my-job", not in use), its rank and the number of ranks. A pair of
/// ranks has a ring of 8 KiB for each direction and phase: 48 P^2 KiB of /dev/shm in all. Waiting ranks sleep, so there
/// may be more ranks than cores. If a rank gives up, takes too long or has ended, the ranks that wait for it get an
/// `error`. A rank that is killed has not ended as long as a process lives that it has forked without exec. Copies share
/// everything; calls come from any thread, one at a time.
///
/// Memory that a job has left behind, because it was ended during its start, is removed and made anew. Memory of another
/// user, or to which others have rights, is an `error`.
class shared_memory_communicator : public limited_communicator<shared_memory_communicator, shared_ranks> {
public:
  using request = held_request<shared_memory_communicator, std::shared_ptr<shared_message>>;
  using bulk_request = request;
  static constexpr bool tells_sizes() { return true; }

  /// Collective: returns when all ranks have come, or throws if one does not come within `limit`, which is also the
  /// first time limit of all waits.
  shared_memory_communicator(std::string const& name, int rank, int size,
                             std::chrono::nanoseconds limit = oktopk::usual_time_limit)
      : limited_communicator(std::make_shared<shared_ranks>(name, rank, size, limit)) {}

  bool takes_other_threads() const { return true; }

  request isend(std::span<std::byte const> out, int peer, phase use) {
    return post({false, peer, use, const_cast<std::byte*>(out.data()), out.size(), out.size()});
  }
  request irecv(std::span<std::byte> in, int peer, phase use) {
    return post({true, peer, use, in.data(), in.size(), 0});
  }

  void wait_all(std::span<request> requests) {
    auto const is_done = [](request const& each) { return !each.active() || each.message_->done(); };
    auto const are_over = [&] { return std::all_of(requests.begin(), requests.end(), is_done); };
    if (!are_over()) {
      launch_unlock const lent;
      auto const needs = [&](int peer) {
        return std::any_of(requests.begin(), requests.end(),
                           [&](request const& each) { return !is_done(each) && each.message_->peer == peer; });
      };
      shared_->sleep_until(are_over, needs, [&] { return wait_report(requests, is_done); });
    }
    for (request& each : requests) {
      if (auto const m = each.take(); m != nullptr) {
        each.bytes_ = m->size;
        if (m->size > m->capacity) { // its end will stay in the ring
          oktopk::detail::abort(*this, exceeds_room(m->size, m->peer, m->capacity));
        }
      }
    }
  }

  void cancel(std::span<request> requests) noexcept {
    shared_->abort(order_is_lost(rank()));
    std::fill(requests.begin(), requests.end(), request());
  }

  /// Tells all ranks that this one cannot continue: their waits, and all messages that they start, end with an `error`.
  void abort(error const& why) noexcept { shared_->abort(why); }

  /// Uses messages: 2n(P-1)/P values in 2(P-1) messages.
  template <class T>
  void allreduce(std::span<T> values, reduction op, phase use) {
    shared_->broken.throw_if_happened();
    std::vector<T> scratch;
    oktopk::reduce_in_ring(*this, values, op, use, scratch);
  }

private:
  request post(shared_message const& what) { return request(shared_->post(what)); }
};

} // namespace shared_memory
