// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/revocation.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>

#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>
#include <signal.h> // POSIX: what <csignal> has cannot ask
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>
#include <vector>

namespace oktopk {

namespace detail {

/// Ignores SIGPIPE in this process, unless the program has set another action for it.
///
/// Gloo writes to its connections without MSG_NOSIGNAL (gloo/transport/tcp/pair.cc), from the caller's thread and from
/// its own. Where the peer has left, the signal would end the program; ignored, it is an error of the call. Python
/// ignores it too. A signal mask would not help: Gloo's thread keeps the mask that it began with.
inline void ignore_broken_pipe() {
#ifdef SIGPIPE // not on Windows
  struct sigaction now = {};
  if (sigaction(SIGPIPE, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL) {
    signal(SIGPIPE, SIG_IGN);
  }
#endif
}

/// The text of an exception of torch or Gloo, without the call stack that torch adds.
inline std::string torch_text(std::exception const& caught) {
  auto const* const own = dynamic_cast<c10::Error const*>(&caught);
  std::string const text = own != nullptr ? own->what_without_backtrace() : caught.what();
  return text.substr(0, text.find('\n'));
}

/// True if the text says that something took too long: neither torch nor Gloo has a type for that.
inline bool says_timed_out(std::string const& text) {
  return text.find("imed out") != std::string::npos;
}

/// Calls torch; what it throws becomes an `error` (communication) with the name of the call.
template <class Call>
decltype(auto) torch_call(char const* name, Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (std::exception const& caught) {
    throw error(fault::communication, std::string(name) + ": " + torch_text(caught));
  }
}

/// A process group, and what the copies of its communicator share.
struct torch_ranks : shared_state {
  torch_ranks(c10::intrusive_ptr<c10d::ProcessGroup> of, int tag, c10::intrusive_ptr<c10d::ProcessGroup> sums)
      : group(std::move(of)), of_allreduce(sums ? std::move(sums) : group), first_tag(tag) {
    if (!group || first_tag < 0) {
      throw error(fault::communication, "a communicator needs a process group, and a first tag that is not negative");
    }
    if (of_allreduce->getRank() != group->getRank() || of_allreduce->getSize() != group->getSize()) {
      throw error(fault::communication, "the process group of the allreduce has other ranks");
    }
    time_limit = {};
  }

  c10::intrusive_ptr<c10d::ProcessGroup> group;
  c10::intrusive_ptr<c10d::ProcessGroup> of_allreduce; ///< the same one, or another one of the same ranks
  int first_tag;
  bool is_closed = false;
};

} // namespace detail

/// Ranks of a process group of torch (c10d) that moves data of the host: Gloo's.
///
/// A message is a send and a receive of the group, of a tensor that is the caller's bytes; `allreduce` is the group's, or
/// that of another group of the same ranks.
/// Messages of each phase have a tag, from `first_tag` on: other messages over the same group must have other tags.
/// Gloo does not tell how many bytes arrived, so the size of a message is sent ahead if the receiver does not know it
/// (`message_group`), and a message that is longer than its room ends the program. Gloo orders messages of a tag
/// between two ranks. Copies share the group, and keep it.
///
/// For NCCL, use `nccl_communicator` (nccl.hpp) for bulk data; its control is this communicator, over a group of Gloo
/// with the same ranks. A group of NCCL cannot be used here: its tensors lie on a device, it knows no tags, and its
/// waits order streams, so it would be `ordered_by_instance`, with groups of messages.
///
/// The time limit of every wait is rounded up to milliseconds; zero, as at first, means the group's own limit. When a
/// wait exceeds a limit, Gloo closes the connections of the group on this rank: no rank can use the group any more, and
/// the other ranks soon get an error. With a limit, an allreduce works on a copy.
class process_group_communicator
    : public detail::limited_communicator<process_group_communicator, detail::torch_ranks> {
public:
  class request : public detail::reported_request {
  public:
    request() = default;
    bool active() const { return static_cast<bool>(work_); }

  private:
    friend process_group_communicator;
    using reported_request::reported_request;
    decltype(std::declval<c10d::ProcessGroup&>().barrier()) work_;
  };

  using bulk_request = request;
  static constexpr int usual_first_tag = 0x6f6b00;

  /// Not collective. `first_tag` is not negative and the same on all ranks. A second communicator over the same group
  /// takes tags that are `phase_count` away at least. Gloo pairs the allreduces of a group by their order: where another
  /// thread calls any collective of `group` meanwhile, `of_allreduce` is another group of the same ranks in the same
  /// order, which nobody else uses; `group` unless given. If the program
  /// leaves SIGPIPE at its default, this process ignores it from now on: Gloo would let the signal end the program when
  /// it writes to a rank that has left.
  explicit process_group_communicator(c10::intrusive_ptr<c10d::ProcessGroup> group, int first_tag = usual_first_tag,
                                      c10::intrusive_ptr<c10d::ProcessGroup> of_allreduce = {})
      : limited_communicator(
            std::make_shared<detail::torch_ranks>(std::move(group), first_tag, std::move(of_allreduce))) {
    detail::ignore_broken_pipe();
  }

  int rank() const { return shared_->group->getRank(); }
  int size() const { return shared_->group->getSize(); }
  bool takes_other_threads() const { return true; }

  /// The group, for calls beside the library's.
  c10::intrusive_ptr<c10d::ProcessGroup> const& get() const { return shared_->group; }

  /// Gives the communicator up: this rank can no longer use it. Closes the connections of the group on this rank, so
  /// that the waits of the others end with an error of Gloo, which does not say why.
  void abort(error const& why) noexcept {
    shared_->broken.note(why);
    if (!std::exchange(shared_->is_closed, true)) {
      close_connections(*shared_->group);
      if (shared_->of_allreduce != shared_->group) {
        close_connections(*shared_->of_allreduce);
      }
    }
  }

  request isend(std::span<std::byte const> out, int peer, phase use) {
    return start_one(false, {const_cast<std::byte*>(out.data()), out.size()}, peer, use); // Gloo only reads it
  }

  request irecv(std::span<std::byte> in, int peer, phase use) { return start_one(true, in, peer, use); }

  void wait_all(std::span<request> requests) {
    for (request& each : requests) {
      if (each.active()) {
        try {
          wait_for(*each.work_, [&] {
            return detail::wait_report(requests, [](request const& other) {
              return !other.active() || (other.work_->isCompleted() && other.work_->isSuccess());
            });
          });
        } catch (error const& failed) {
          abort(failed); // also to those that wait for this rank
          if (failed.code() != fault::timed_out) {
            each.work_.reset(); // it is over
          }
          throw;
        }
        each.work_.reset();
      }
    }
  }

  /// As `communicator` says. Never waits for a peer: Gloo forgets the bytes of a message with its request. Does not
  /// tell the other ranks, because other code may use the group, too; `abort` tells them, and so does a call of an
  /// algorithm that fails on one rank.
  void cancel(std::span<request> requests) noexcept {
    shared_->broken.note(detail::order_is_lost(rank()));
    for (request& each : requests) {
      each.work_.reset();
    }
  }

  template <class T>
    requires std::is_same_v<T, float> || std::is_same_v<T, double>
  void allreduce(std::span<T> values, reduction op, phase) {
    shared_->broken.throw_if_happened();
    if (values.empty()) {
      return;
    }
    std::vector<at::Tensor> tensors{tensor_of(values)};
    bool const copies = shared_->has_limit();
    if (copies) {
      tensors[0] = tensors[0].clone(); // left to the group if the wait fails
    }
    std::span<T> const reduced(static_cast<T*>(tensors[0].data_ptr()), values.size());
    detail::to_order(reduced, op);
    if (op != reduction::sum) {
      tensors[0] = tensors[0].view(std::is_same_v<T, float> ? at::kInt : at::kLong);
    }
    c10d::AllreduceOptions how;
    how.reduceOp = op == reduction::sum   ? c10d::ReduceOp::SUM
                   : op == reduction::min ? c10d::ReduceOp::MIN
                                          : c10d::ReduceOp::MAX;
    auto const work = detail::torch_call("allreduce", [&] { return shared_->of_allreduce->allreduce(tensors, how); });
    try {
      wait_for(*work, [] { return detail::wait_report("for everybody in an allreduce"); });
    } catch (error const& failed) {
      abort(failed);
      throw;
    }
    detail::from_order(reduced, op);
    if (copies) {
      std::memcpy(values.data(), reduced.data(), values.size_bytes());
    }
  }

private:
  template <class T>
  static at::Tensor tensor_of(std::span<T> values) {
    constexpr at::ScalarType type = std::is_same_v<T, float>    ? at::kFloat
                                    : std::is_same_v<T, double> ? at::kDouble
                                                                : at::kByte;
    return at::from_blob(values.data(), {std::ssize(values)}, at::TensorOptions().dtype(type));
  }

  request start_one(bool receives, std::span<std::byte> bytes, int peer, phase use) {
    shared_->broken.throw_if_happened();
    std::vector<at::Tensor> tensors{tensor_of(bytes)};
    int const tag = shared_->first_tag + static_cast<int>(use);
    request started(receives, peer, use);
    started.work_ = detail::torch_call(receives ? "recv" : "send", [&] {
      if (peer < 0 || peer >= size()) { // not every process group says so
        throw std::out_of_range("there is no rank " + std::to_string(peer));
      }
      return receives ? shared_->group->recv(tensors, peer, tag) : shared_->group->send(tensors, peer, tag);
    });
    return started;
  }

  template <class Work, class Report>
  void wait_for(Work& work, Report const& report) {
    detail::launch_unlock const lent;
    auto const limit = std::chrono::ceil<std::chrono::milliseconds>(shared_->time_limit);
    std::string text;
    try {
      if (limit.count() > 0 ? work.wait(limit) : work.wait()) {
        return;
      }
      text = "aborted";
    } catch (std::exception const& caught) {
      text = detail::torch_text(caught);
    }
    if (limit.count() > 0 && detail::says_timed_out(text)) {
      throw report().timed_out(rank(), shared_->during, shared_->time_limit);
    }
    throw error(detail::says_timed_out(text) ? fault::timed_out : fault::communication,
                "rank " + std::to_string(rank()) + " has waited " + report().open() + ": " + text);
  }

  // An allreduce that is given up continues in a thread of the group, and the group waits for that thread at its end. A
  // receive that exceeds its time makes Gloo close all connections, and so ends the allreduce. A receive from a rank
  // that has closed its own connections fails at once, and closes none.
  void close_connections(c10d::ProcessGroup& group) noexcept {
    for (int step = 1; step < size(); ++step) {
      try {
        std::byte none{};
        std::vector<at::Tensor> tensors{tensor_of(std::span(&none, 1))};
        int const peer = (rank() + step) % size();
        group.recv(tensors, peer, shared_->first_tag + phase_count)->wait(std::chrono::milliseconds(1));
      } catch (std::exception const& caught) { // as expected
        if (detail::says_timed_out(detail::torch_text(caught))) {
          return;
        }
      }
    }
  }
};

} // namespace oktopk
