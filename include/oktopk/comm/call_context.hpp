// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/core/sparse.hpp>

namespace oktopk {

namespace detail {

/// The origin of a message, in 18 bits of its first number (`fault_report::packed`): the version of the messages, the
/// phase, a mark of the object, the number of the call. Adds nothing to a message.
///
/// Ranks detect by it that they do not make the same calls. The mark is the number of the object on its communicator
/// plus a hash of algorithm, length and k, in 7 bits: it differs between any two of 128 objects that are made one after
/// the other alike, and of others it may be the same by chance. The number of the call is modulo 64.
class call_tag {
public:
  /// Version of the messages of all algorithms; it changes when their form changes.
  static constexpr unsigned version = 1;

  call_tag(std::string_view algorithm, std::int64_t length, std::int64_t k, std::int64_t call, phase use,
           std::int64_t object = 0) {
    detail::fnv1a hash;
    hash.add(algorithm.data(), algorithm.size());
    hash.add(&length, sizeof(length));
    hash.add(&k, sizeof(k));
    std::uint64_t const mark = (hash.value() ^ (hash.value() >> 32U)) + static_cast<std::uint64_t>(object);
    bits_ = (version << 16U) | (static_cast<std::uint32_t>(use) << 13U) |
            (static_cast<std::uint32_t>(mark % 128) << 6U) | static_cast<std::uint32_t>(call % 64);
  }

  explicit call_tag(std::uint32_t bits) : bits_(bits) {}

  std::uint32_t bits() const { return bits_; }

  friend bool operator==(call_tag, call_tag) = default;

  /// The first difference from the tag that is expected: "version 2 where 1 is expected".
  [[gnu::cold]] std::string difference(call_tag expected) const {
    auto const differ = [](std::string const& what, unsigned is, unsigned should) {
      return what + " " + std::to_string(is) + " where " + std::to_string(should) + " is expected";
    };
    if (version_of() != expected.version_of()) {
      return differ("version", version_of(), expected.version_of());
    }
    if (mark() != expected.mark()) {
      return "another object, algorithm, length or k";
    }
    if (call() != expected.call()) {
      return differ("call (modulo 64)", call(), expected.call());
    }
    return "phase " + phase_name() + " where " + expected.phase_name() + " is expected";
  }

private:
  unsigned version_of() const { return bits_ >> 16U; }
  unsigned mark() const { return (bits_ >> 6U) % 128U; }
  unsigned call() const { return bits_ % 64U; }
  std::string phase_name() const {
    unsigned const use = (bits_ >> 13U) % 8U;
    return use < phase_count ? std::string(name(static_cast<phase>(use))) : std::to_string(use);
  }

  std::uint32_t bits_;
};

/// Adds the time until it goes out of scope to a figure in seconds.
class stopwatch {
public:
  explicit stopwatch(double& seconds) : seconds_(seconds), start_(clock::now()) {}
  stopwatch& operator=(stopwatch&&) = delete;
  ~stopwatch() { seconds_ += std::chrono::duration<double>(clock::now() - start_).count(); }

private:
  using clock = std::chrono::steady_clock;
  double& seconds_;
  clock::time_point start_;
};

} // namespace detail

/// One call of an algorithm: all that its steps share, made by the call operator and handed from step to step.
///
/// A step is an object that owns its buffers; `run(call, input)` returns everything that later steps need. The
/// references outlive the call. `length`, `k` and `iteration` are the same on all ranks.
template <execution_space E, communicator Comm>
struct call_context {
  using execution_space = E;
  using communicator_type = Comm;

  E const& exec;              ///< the instance that every step launches on
  Comm& comm;                 ///< the ranks of this call
  std::string_view algorithm; ///< who calls, for sentences of errors
  std::int64_t length = 0;    ///< of the gradient
  std::int64_t k = 0;         ///< entries to select
  std::int64_t iteration = 0; ///< calls before this one
  detail::first_fault faults; ///< of this rank, and of other ranks once an exchange has reported them
  call_statistics statistics; ///< figures of the steps; each writes its own part
  std::int64_t object = 0;    ///< number of the object that calls, among those made on `comm`
  bool is_uneven = false;     ///< this rank's region has too many entries, or that of another rank that has said so

  /// Notes a fault of this rank. The rank goes on with nothing to send, so that every rank hears of it.
  void note(detail::fault_report const& what) { faults.hear(what, comm.rank()); }

  detail::call_tag tag(phase use) const { return {algorithm, length, k, iteration, use, object}; }

  /// The number in front of a message: the fault in `known`, an earlier copy of `faults`, or the number of entries of
  /// the message.
  std::uint64_t header(detail::first_fault const& known, std::int64_t count, phase use) const {
    return known.packed_or(count, tag(use).bits()) | (is_uneven && !known ? uneven_bit : 0);
  }

  std::uint64_t header(std::int64_t count, phase use) const { return header(faults, count, use); }

  /// The fault or the count of entries in the number in front of a message. A message of another call is an `error`
  /// (fault::damaged_message) that also ends the call of all ranks that can be told (`abort`).
  detail::fault_report read_header(std::uint64_t number, int from, phase use) {
    detail::call_tag const theirs(detail::fault_report::tag_of(number));
    if (!(theirs == tag(use))) {
      detail::abort(comm, error(fault::damaged_message,
                                std::string(algorithm) + ", call " + std::to_string(iteration) + ": rank " +
                                    std::to_string(comm.rank()) + " got a message of rank " + std::to_string(from) +
                                    " that is not of this call: " + theirs.difference(tag(use)) +
                                    "; the ranks do not make the same calls in the same order"));
    }
    detail::fault_report const report = detail::fault_report::unpacked(number);
    is_uneven = is_uneven || (!report && (number & uneven_bit) != 0);
    return report;
  }

  /// Reads the fault of each rank from the first number of its row. Each rank has a row of `width` numbers; all ranks
  /// have the same rows. Throws the fault of the lowest faulty rank, if any. Afterwards the first numbers are the
  /// counts.
  void hear_all(std::span<std::int64_t> rows, std::size_t width, phase use) {
    for (std::size_t rank = 0; rank * width < rows.size(); ++rank) {
      std::int64_t& first = rows[rank * width];
      detail::fault_report const theirs = read_header(static_cast<std::uint64_t>(first), static_cast<int>(rank), use);
      faults.hear(theirs, static_cast<int>(rank));
      first = theirs.detail;
    }
    throw_if_faulty();
  }

  /// Throws the fault of the lowest faulty rank, if any. All ranks must have heard of the same faults.
  void throw_if_faulty() const { faults.throw_if_any(algorithm, length); }

private:
  // The lower bit of the subject, which the number of a rank without a fault does not have.
  static constexpr std::uint64_t uneven_bit = std::uint64_t(1) << 62;
};

} // namespace oktopk
