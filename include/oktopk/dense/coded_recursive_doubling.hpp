// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/folded_ranks.hpp>
#include <oktopk/comm/optional_message.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/core/kokkos_ext/fence.hpp>
#include <oktopk/core/kokkos_ext/range.hpp>
#include <oktopk/dense/coded_wire.hpp>
#include <oktopk/dense/concept.hpp>
#include <oktopk/dense/recursive_doubling.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace oktopk {

/// `recursive_doubling` with coded messages (Zhou et al., collective-level compression, Algorithm 2).
///
/// In place, on any number of ranks; `count`, `op` and the options are the same on all. With 2^m <= P < 2^(m+1) a rank
/// encodes and sends what it has m times. So that partners have the same result to the bit, each goes on with what the
/// other decodes of it. All 2^s ranks that have met by step s round off the same; each of them takes its share of the
/// elements into `lost`. Where P is no power of two, the odd rank of a pair gets both messages of its partner's last
/// exchange, as they were encoded: the even one sends m+2 messages, the odd one 1. With `codec_level::message` the
/// pair's result is encoded instead, one message, and every rank rounds its result alike.
///
/// Vectors of less than `cutoff_bytes` go through `recursive_doubling` as they are. Keeps four coded vectors beside the
/// caller's; where losses are told one vector more, and one at the level of messages.
template <execution_space E, communicator Comm, gradient_value Value, collective_codec<Value, E> Codec>
class coded_recursive_doubling {
public:
  static constexpr bool lossless = Codec::lossless;

  struct options {
    typename detail::options_of<Codec>::type codec = {};
    codec_level level = codec_level::collective;
    std::int64_t cutoff_bytes = std::int64_t(1) << 19; ///< of values: vectors below are not coded
    /// Lets a codec that is not stable code each message: to measure it, for results differ between ranks then, and
    /// `lost` knows of the first rounding of a value only.
    bool ranks_may_differ = false;
  };

  coded_recursive_doubling() : coded_recursive_doubling(options{}) {}
  explicit coded_recursive_doubling(options how)
      : options_(how), codec_(detail::configured<Codec>(how.codec)), name_("recursive_doubling of " + codec_.name()) {}

  std::string name() const { return name_; }

  std::string describe() const {
    return codec_.name() + " (level " + detail::name_of(options_.level) + ", cutoff_bytes " +
           std::to_string(options_.cutoff_bytes) + ")";
  }

  std::string fault() const {
    std::string of_codec = detail::fault_of_policy(codec_);
    return of_codec.empty() ? detail::fault_of_level(codec_, options_.level, options_.ranks_may_differ) : of_codec;
  }

  /// Whether one rank's result may be other than another's.
  bool ranks_may_differ() const {
    return options_.ranks_may_differ && options_.level == codec_level::message && !Codec::stable;
  }

  /// A rank may round the same value in every step, and once more for its partner.
  bool losses_may_overflow(int ranks) const {
    return detail::losses_may_overflow<Value>(codec_, detail::ceil_log2(ranks) + 2);
  }

  /// log2 P coded vectors, two more where P is no power of two.
  double bound_words(std::int64_t count, int ranks) const {
    if (is_short(count)) {
      return raw_.bound_words(count, ranks);
    }
    detail::folded_ranks const at(0, ranks);
    int const messages = detail::ceil_log2(at.core) + (at.folded > 0 ? 2 : 0);
    return static_cast<double>(messages * codec_.template encoded_bytes<Value>(count)) / 4;
  }

  void run(E const& exec, Comm& comm, Value* values, Value* lost, std::int64_t count, reduction op = reduction::sum) {
    if (is_short(count) || comm.size() == 1 || count == 0) {
      raw_.run(exec, comm, values, lost, count, op);
      return;
    }
    detail::refuse_losses_of(op, lost);
    detail::folded_ranks const at(comm.rank(), comm.size());
    wire_.bind(exec, comm, codec_, options_.level, values, values, lost, count, op, 2, 2);
    lost_ = lost;
    if (lost != nullptr) {
      noted_.reserve(exec, count);
    }
    typename Comm::request received;
    std::array<typename Comm::request, 2> sent{}; // of this step and of the one before
    cancel_on_unwind const guard(comm, received, sent);
    if (at.is_guest) {
      visit(exec, comm, count);
      return;
    }
    bool const early = wire_.receives_first();
    auto const receive = [&](int step) {
      int const partner = at.rank_at(at.place ^ (1 << step));
      return comm.irecv(wire_.slot(step % 2, whole(0, count)), partner, phase::reduce);
    };
    if (at.in_pair) {
      detail::finish(comm, comm.irecv(wire_.slot(1, whole(0, count)), comm.rank() + 1, phase::reduce));
    }
    if (early) {
      received = receive(0);
    }
    if (at.in_pair) {
      wire_.absorb(exec, 1, whole(0, count));
    }
    int const steps = detail::ceil_log2(at.core);
    for (int step = 0; step < steps; ++step) {
      detail::piece const mine = whole(step % 2, count);
      encode(exec, mine, at.place, step);
      auto const now = static_cast<std::size_t>(step % 2);
      sent[now] = comm.isend(wire_.image(mine), at.rank_at(at.place ^ (1 << step)), phase::reduce);
      if (!early) {
        received = receive(step);
      }
      wire_.settle(exec, mine); // while the messages are on their way
      detail::wait_for(comm, sent[1 - now]);
      detail::wait_for(comm, received);
      if (early && step + 1 < steps) {
        received = receive(step + 1);
      }
      wire_.absorb(exec, step % 2, mine);
    }
    comm.wait_all(std::span<typename Comm::request>(sent));
    if (at.folded > 0) {
      part(exec, comm, at, count, steps);
    }
    detail::fence(exec, "oktopk::recursive_doubling::done");
  }

  /// Adds what was noted of a stretch to what is lost; public because nvcc wants the function around a kernel to be.
  void add_noted(E const& exec, std::int64_t begin, std::int64_t count) {
    Value* const lost = lost_ + begin;
    Value const* const noted = noted_.data() + begin;
    Kokkos::parallel_for(
        "oktopk::recursive_doubling::add_noted", detail::index_range<E>(exec, 0, count),
        KOKKOS_LAMBDA(std::int64_t i) { lost[i] += noted[i]; });
  }

private:
  bool is_short(std::int64_t count) const { return count * std::int64_t(sizeof(Value)) < options_.cutoff_bytes; }

  static detail::piece whole(std::int64_t image, std::int64_t count) { return {image, 0, count}; }

  // 2^step ranks have the same values here, and each tells of its share what is lost.
  void encode(E const& exec, detail::piece p, int place, int step) {
    if (lost_ == nullptr || step == 0) {
      wire_.prepare_noting(exec, p, lost_);
      return;
    }
    wire_.prepare_noting(exec, p, noted_.data());
    int const sharing = 1 << step;
    detail::piece const share = detail::cut_vector(p.count, sharing)[place % sharing];
    add_noted(exec, share.begin, share.count);
  }

  // The odd rank of a pair: gives its values away and gets the result.
  void visit(E const& exec, Comm& comm, std::int64_t count) {
    int const host = comm.rank() - 1;
    wire_.prepare_noting(exec, whole(0, count), lost_);
    detail::finish(comm, comm.isend(wire_.image(whole(0, count)), host, phase::reduce));
    int const messages = wire_.forwards() ? 2 : 1;
    std::array<typename Comm::request, 2> received{};
    cancel_on_unwind const guard(comm, received);
    for (int which = 0; which < messages; ++which) {
      received[static_cast<std::size_t>(which)] = comm.irecv(wire_.slot(which, whole(0, count)), host, phase::gather);
    }
    comm.wait_all(std::span<typename Comm::request>(received));
    wire_.take_slot(exec, 0, whole(0, count));
    if (wire_.forwards()) {
      wire_.absorb(exec, 1, whole(0, count));
    }
    detail::fence(exec, "oktopk::recursive_doubling::done");
  }

  // Gives the odd rank of a pair the result: both halves of it as they were exchanged, or all of it encoded anew.
  void part(E const& exec, Comm& comm, detail::folded_ranks const& at, std::int64_t count, int steps) {
    std::array<typename Comm::request, 2> sent{};
    cancel_on_unwind const guard(comm, sent);
    if (wire_.forwards()) {
      if (at.in_pair) {
        int const last = (steps - 1) % 2;
        sent[0] = comm.isend(wire_.image(whole(last, count)), comm.rank() + 1, phase::gather);
        sent[1] = comm.isend(wire_.slot(last, whole(0, count)), comm.rank() + 1, phase::gather);
      }
    } else {
      encode(exec, whole(0, count), at.place, steps);
      wire_.settle(exec, whole(0, count));
      if (at.in_pair) {
        sent[0] = comm.isend(wire_.image(whole(0, count)), comm.rank() + 1, phase::gather);
      }
    }
    comm.wait_all(std::span<typename Comm::request>(sent));
  }

  options options_;
  Codec codec_;
  std::string name_;
  Value* lost_ = nullptr;
  recursive_doubling<E, Comm, Value> raw_;
  detail::coded_wire<E, Value, Codec> wire_;
  buffer<Value, typename E::memory_space> noted_{"oktopk::recursive_doubling::noted"};
};

} // namespace oktopk
