// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace oktopk_bench {

/// Entries of a sparse vector in host memory, ascending: an index and `width` values of each, small whole numbers, so that
/// sums are exact in whatever order they are formed.
struct host_entries {
  std::vector<std::int32_t> indices;
  std::vector<float> values;
};

/// How the entries of ranks lie; `density` of the places have one on each rank.
///
/// * `zipf` — place i is taken with a probability of min(1, c / (i + 1)), as words of a text are that are numbered by their
///   frequency: the places in front on all ranks, those behind on few.
/// * `uniform` — any place with the same probability.
/// * `blocks` — blocks of 1024 places, all or none of each.
struct entries_source {
  std::int64_t length = 0;
  double density = 0;
  std::int64_t width = 1;
  std::string skew = "zipf";
  std::uint64_t seed = 1;

  /// What a rank has in a step: the same numbers in every run.
  host_entries draw(int rank, std::int64_t step) const;
  /// One line for people.
  std::string description() const;
  /// A sentence about a name that `skew` does not have; empty where it has.
  static std::string fault_of_skew(std::string const& name);
};

/// The sum of what all ranks draw, which no part of the library forms.
host_entries sum_of(entries_source const& source, int ranks, std::int64_t step);

} // namespace oktopk_bench
