// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "promises.hpp"
#include "reference.hpp"
#include "result.hpp"
#include "value_code.hpp"

#include <oktopk/algorithm/concept.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace oktopk_bench {

/// One rank's view of one call: what it put in, what it got out, and what that must satisfy.
class own_part {
public:
  /// `boundaries`: P + 1 of the regions whose owners add up; none where there are no regions. All arguments are to
  /// outlive the object.
  own_part(std::span<float const> accumulator, host_result const& result, oktopk::call_statistics const& figures,
           allreduce_promises const& promised, std::int64_t k, int rank, std::span<std::int64_t const> boundaries);

  /// What can be told wrong without the other ranks, in one sentence, or nothing.
  std::string problem() const;

  /// Whether the whole selection is known.
  bool knows_selection() const { return knows_selection_; }
  /// Whether it is, and what the sums have of it: all that a choice among them is made from.
  bool knows_candidates() const;

  /// What this rank adds to the entries [begin, end): its contributions, what was returned to it and, where its
  /// selection is known, the selected entries that did not make it into the result.
  void append_contributions(std::int64_t begin, std::int64_t end, std::vector<contribution>& parts) const;

private:
  std::string shape_fault() const;
  std::string selection_fault() const;
  std::string count_fault() const;
  bool gave_everything() const;
  bool rounds() const { return rounds_entries(promised_); }

  void follow_selection();
  std::string returned_fault() const;
  std::string lost_value_fault() const;
  std::string own_sums_fault() const;
  std::string result_code_fault() const;

  std::span<float const> accumulator_;
  host_result const& result_;
  oktopk::call_statistics const& figures_;
  allreduce_promises const& promised_;
  oktopk::selection_promises local_; // nothing is left out where everything is summed
  std::int64_t k_;
  int rank_;
  std::span<std::int64_t const> boundaries_;
  value_code code_;
  bool knows_selection_ = false;
  std::vector<std::int64_t> selected_; // by the reference, where the promises and figures tell all of it
  std::int64_t own_begin_ = 0;         // the region of this rank's sums
  std::int64_t own_end_ = 0;
  std::vector<std::int64_t> followed_; // entries of which is known what becomes of them on the wire
  std::vector<coded_value> reached_;   // their values at the owners of the sums
};

} // namespace oktopk_bench
