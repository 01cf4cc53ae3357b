// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/finding.hpp"
#include "fuzz/participant.hpp"
#include "fuzz/run_case.hpp"
#include "fuzz/seen_call.hpp"

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace oktopk_fuzz {

enum class event_kind {
  refusal,      ///< an object with bad options
  twin,         ///< a second object made of a checkpoint
  restore,      ///< an altered state
  bad_file,     ///< a checkpoint that is cut short, too long or of another type
  flipped_file, ///< a checkpoint with some bits flipped
};

/// What a rank has seen between two calls.
template <class Value>
struct event {
  event_kind what = event_kind::refusal;
  outcome said;
  oktopk::fault expected = oktopk::fault::none;
  bool loaded = true; ///< of files: whether all ranks could read theirs
  state_numbers<Value> before;
  state_numbers<Value> wanted; ///< what was to be restored
  state_numbers<Value> after;
};

/// Where ranks write down what they see. Who is the last to do so has it judged.
template <class Value>
class board {
public:
  board(facts const& about, fuzz_case const& what) : about_(about), what_(what) {}

  bool stopped() const { return result_.wrong.has_value(); }
  void found(finding what, int call);
  void note_sabotage() { result_.done.sabotaged = 1; }

  /// Gives whether to go on.
  bool tell(event<Value> seen, int rank, int call);
  void tell_call(call_record<Value> record, std::optional<call_record<Value>> twins, int rank, int call);

  case_result& result() { return result_; }

private:
  struct round {
    std::size_t told = 0;
    std::vector<call_record<Value>> ranks;
    std::vector<call_record<Value>> twins;
  };

  void judge(std::vector<event<Value>> const& all, int call);
  verdict judged_restore(std::vector<event<Value>> const& all);
  void judge(round& all, int call);

  facts const& about_;
  fuzz_case const& what_;
  case_result result_;
  std::vector<std::size_t> events_told_;                    // by rank
  std::map<std::size_t, std::vector<event<Value>>> events_; // by their number
  std::map<std::size_t, std::size_t> told_;
  std::map<int, round> rounds_; // by call
};

} // namespace oktopk_fuzz
