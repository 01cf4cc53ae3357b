// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace oktopk {

/// The kind of an error, so that a program can act on it without reading the sentence.
enum class fault : std::uint8_t {
  none,
  length_mismatch,      ///< an accumulator that has not the length the algorithm was made for
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
  abandoned,            ///< another rank has given up what the ranks were doing together, and has said why
  damaged_message,      ///< a message that is not what its sender sent, or not the one that was expected
};

/// The name of a fault as it is spelled in the enumeration.
constexpr std::string_view name(fault what) noexcept {
  switch (what) {
  case fault::none: return "none";
  case fault::length_mismatch: return "length_mismatch";
  case fault::k_out_of_range: return "k_out_of_range";
  case fault::density_out_of_range: return "density_out_of_range";
  case fault::option_out_of_range: return "option_out_of_range";
  case fault::index_overflow: return "index_overflow";
  case fault::not_contiguous: return "not_contiguous";
  case fault::non_finite: return "non_finite";
  case fault::ranks_disagree: return "ranks_disagree";
  case fault::bad_state: return "bad_state";
  case fault::communication: return "communication";
  case fault::deadlock: return "deadlock";
  case fault::bad_file: return "bad_file";
  case fault::timed_out: return "timed_out";
  case fault::abandoned: return "abandoned";
  case fault::damaged_message: return "damaged_message";
  }
  return "unknown";
}

/// Whether a communicator is of no more use after an error of this kind: messages were given up, so the rank that has
/// it may be the only one, and it names another error than the others do. All others of
/// collective calls are on all ranks, with the same sentence, and everybody can go on.
constexpr bool breaks_communicator(fault what) noexcept {
  return what == fault::communication || what == fault::deadlock || what == fault::timed_out ||
         what == fault::abandoned || what == fault::damaged_message;
}

/// The one exception type of the library.
///
/// Bad input is reported by the same error, with the same sentence, on every rank of the communicator, after all
/// messages of the call have been received: no rank is left waiting, and the object's state is as it was before.
class error : public std::runtime_error {
public:
  error(fault what, std::string const& sentence) : std::runtime_error("oktopk: " + sentence), code_(what) {}

  fault code() const noexcept { return code_; }

  /// `what()` without the name of the library.
  std::string sentence() const { return std::string(what()).substr(std::string_view("oktopk: ").size()); }

private:
  fault code_;
};

} // namespace oktopk
