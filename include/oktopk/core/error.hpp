// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/version.hpp>

#include <cstdint>
#include <exception>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace oktopk {

/// The kind of an error, so that a program can act on it without reading the sentence.
enum class fault : std::uint8_t {
  none,
  length_mismatch,      ///< an accumulator whose length is not that of the algorithm
  k_out_of_range,       ///< k negative or over the length, or neither or both of k and density given
  density_out_of_range, ///< density not in (0, 1]
  option_out_of_range,  ///< any other option outside its documented range
  index_overflow,       ///< the length does not fit the sparse format's index type
  not_contiguous,       ///< an accumulator with a stride
  non_finite,           ///< NaN or infinity in an accumulator, or a sum that overflowed
  ranks_disagree,       ///< ranks made the same object with different length, k, types or policies
  bad_state,            ///< a saved state that does not fit the object it is restored into; Kokkos not initialised
  communication,        ///< the communicator reported a failure
  deadlock,             ///< every rank waits and no message can come
  bad_file,             ///< a file, or a message of another program, that is missing, cut short or of the wrong kind
  timed_out,            ///< a wait that took longer than the communicator's time limit
  abandoned,            ///< another rank has given up the common operation, and has said why
  damaged_message,      ///< a message that differs from the one that was sent, or is not the expected one
  caller_failed,        ///< code of the program, which a call ran or waited for, threw an exception that is no `error`
  not_ascending,        ///< indices that a rank put in, of which one is not above the one before
  index_out_of_range,   ///< an index that a rank put in, and that is not in [0, length)
  repeated_index,       ///< an index that a rank put in twice, though it promised not to
  size_mismatch,        ///< indices and values that a rank put in, of which the one are not as many as the other take
};

constexpr std::string_view name(fault what) noexcept {
  constexpr std::string_view names[] = {"none",
                                        "length_mismatch",
                                        "k_out_of_range",
                                        "density_out_of_range",
                                        "option_out_of_range",
                                        "index_overflow",
                                        "not_contiguous",
                                        "non_finite",
                                        "ranks_disagree",
                                        "bad_state",
                                        "communication",
                                        "deadlock",
                                        "bad_file",
                                        "timed_out",
                                        "abandoned",
                                        "damaged_message",
                                        "caller_failed",
                                        "not_ascending",
                                        "index_out_of_range",
                                        "repeated_index",
                                        "size_mismatch"};
  return static_cast<std::size_t>(what) < std::size(names) ? names[static_cast<std::size_t>(what)] : "unknown";
}

/// The one exception type of the library.
///
/// Bad input is reported by the same error, with the same sentence, on every rank of the communicator, after all
/// messages of the call have been received: no rank is left waiting, and the object's state is as it was before. Its type
/// is visible, so that a program catches what a library throws that is compiled with -fvisibility=hidden.
class [[gnu::visibility("default")]] error : public std::runtime_error {
public:
  error(fault what, std::string const& sentence) : std::runtime_error("oktopk: " + sentence), code_(what) {}

  fault code() const noexcept { return code_; }

  /// `what()` without the name of the library.
  std::string sentence() const { return std::string(what()).substr(std::string_view("oktopk: ").size()); }

private:
  fault code_;
};

namespace detail {

/// True for errors after which a communicator cannot be used any more: messages were given up, so this rank may be the
/// only one with an error, or its error is not that of the others. All other errors of collective calls are on all
/// ranks, with the same sentence, and all ranks can continue.
constexpr bool breaks_communicator(fault what) noexcept {
  return what == fault::communication || what == fault::deadlock || what == fault::timed_out ||
         what == fault::abandoned || what == fault::damaged_message;
}

/// An exception as the fault of one rank: an `error` as it is, unless it is of a communicator; else `caller_failed`, with
/// the first line of what it says.
inline error error_of_rank(std::exception_ptr const& why) {
  std::string text = "an exception of unknown type";
  try {
    std::rethrow_exception(why);
  } catch (error const& known) {
    if (!breaks_communicator(known.code())) {
      return known;
    }
    text = known.sentence();
  } catch (std::exception const& thrown) {
    text = thrown.what();
  } catch (...) { // has no text
  }
  return {fault::caller_failed, text.substr(0, text.find('\n'))};
}

/// The number that a fault is about.
enum class fault_subject : std::uint8_t {
  value,    ///< a value that a rank put in
  sum,      ///< a sum over ranks, or a part of one
  returned, ///< the residual of a rank after the returned entries are added
  rank,     ///< none: the rank found the fault before it had an accumulator, and has the sentence
};

/// A fault that a rank found during a call, small enough to travel in front of every message.
///
/// A rank with a fault takes part in the exchange with nothing selected, so no rank waits. Each rank that hears of the
/// fault throws it when the exchange is over. This adds no message to a call.
struct fault_report {
  oktopk::fault code = fault::none;
  std::int64_t detail = 0; ///< the number that belongs to the code: an index, a length, or a position in a list
  fault_subject subject = fault_subject::value;

  explicit operator bool() const { return code != fault::none; }

  /// The largest detail, and so the longest vector.
  static constexpr std::int64_t most_detail = (std::int64_t(1) << 38) - 1;

  /// Packs the report into one number. From the highest bits: the subject, the code, the call tag of the message, the
  /// detail. For a healthy rank the detail is its entry count.
  std::uint64_t packed(std::uint32_t tag = 0) const {
    return (static_cast<std::uint64_t>(subject) << 62) | (static_cast<std::uint64_t>(code) << 56) |
           (static_cast<std::uint64_t>(tag) << 38) | (static_cast<std::uint64_t>(detail) & detail_mask);
  }

  static std::uint32_t tag_of(std::uint64_t number) { return static_cast<std::uint32_t>(number >> 38) & 0x3ffffU; }

  static fault_report unpacked(std::uint64_t number) {
    return {static_cast<oktopk::fault>((number >> 56) & 0x3f), static_cast<std::int64_t>(number & detail_mask),
            static_cast<fault_subject>(number >> 62)};
  }

  /// The error that every rank throws; `length` is that of the algorithm.
  [[gnu::cold]] oktopk::error as_error(std::string const& what, int rank, std::int64_t length) const {
    std::string const who = what + ": rank " + std::to_string(rank) + ": ";
    std::string const number = std::to_string(detail);
    if (subject == fault_subject::rank) {
      return {code, who + "it has no accumulator for this call, because of an error on that rank: " +
                        std::string(name(code))};
    }
    if (code == fault::length_mismatch) {
      return {code, who + "the accumulator has " + number + " elements, expected " + std::to_string(length)};
    }
    if (code == fault::not_contiguous) {
      return {code, who + "the accumulator is not contiguous"};
    }
    if (code == fault::not_ascending) {
      return {code, who + "the index at position " + number + " is not above the one before"};
    }
    if (code == fault::index_out_of_range) {
      return {code, who + "the index at position " + number + " is not in [0, " + std::to_string(length) + ")"};
    }
    if (code == fault::repeated_index) {
      return {code, who + "index " + number + " is there more than once"};
    }
    if (code == fault::size_mismatch) {
      return {code, who + "there are " + number + " values, which is not the width times the number of indices"};
    }
    if (code != fault::non_finite) {
      return {code, who + std::string(name(code))};
    }
    return {code, subject == fault_subject::sum ? what + ": a sum or partial sum at index " + number + " overflows"
                  : subject == fault_subject::returned
                      ? who + "the residual at index " + number + " overflows with what is returned to it"
                      : who + "the value at index " + number + " is not finite"};
  }

private:
  static constexpr std::uint64_t detail_mask = (std::uint64_t(1) << 38) - 1;
};

/// The fault that a call throws: of all reported faults, that of the lowest rank. What a rank put in comes before what
/// came of it, an overflow of sums or of a residual. So all ranks that hear of the same faults, in any order, throw the
/// same error.
class first_fault {
public:
  void hear(fault_report const& what, int rank) {
    if (what && (!report_ || std::pair(is_outcome(what), rank) < std::pair(is_outcome(report_), rank_))) {
      report_ = what;
      rank_ = rank;
    }
  }

  /// Forgets the fault, if the report of another rank counts instead.
  void clear() { *this = {}; }

  explicit operator bool() const { return static_cast<bool>(report_); }
  fault_report const& report() const { return report_; }
  int rank() const { return rank_; }

  /// The number in front of a message: the fault, or the number of entries of the message.
  std::uint64_t packed_or(std::int64_t count, std::uint32_t tag = 0) const {
    return (report_ ? report_ : fault_report{fault::none, count}).packed(tag);
  }

  /// `length` is that of the algorithm.
  void throw_if_any(std::string_view algorithm, std::int64_t length) const {
    if (report_) {
      throw report_.as_error(std::string(algorithm), rank_, length);
    }
  }

private:
  static bool is_outcome(fault_report const& of) {
    return of.subject == fault_subject::sum || of.subject == fault_subject::returned;
  }

  fault_report report_;
  int rank_ = 0;
};

} // namespace detail
} // namespace oktopk
