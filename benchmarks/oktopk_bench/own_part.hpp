// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "reference.hpp"
#include "result.hpp"

#include <oktopk/algorithm/concept.hpp>
#include <oktopk/catalogue/promises.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace oktopk_bench {

/// One rank's view of one call: what it put in, what it got out, and what that must satisfy.
class own_part {
public:
  own_part(std::span<float const> accumulator, host_result const& result, oktopk::call_statistics const& figures,
           oktopk::allreduce_promises const& promised, std::int64_t k);

  /// What can be told wrong without the other ranks, in one sentence, or nothing.
  std::string problem() const;

  /// What this rank adds to the entries [begin, end): its contributions less what was returned to it and, where its
  /// selection is known to be exact, the selected entries that did not make it into the result.
  void append_contributions(std::int64_t begin, std::int64_t end, std::vector<contribution>& parts) const;

private:
  std::string shape_fault() const;
  std::string selection_fault() const;
  std::string count_fault() const;
  bool gave_everything() const;

  std::span<float const> accumulator_;
  host_result const& result_;
  oktopk::call_statistics const& figures_;
  oktopk::allreduce_promises const& promised_;
  std::int64_t k_;
  std::vector<std::int64_t> selected_; // by the reference, where the promise is an exact selection
};

} // namespace oktopk_bench
