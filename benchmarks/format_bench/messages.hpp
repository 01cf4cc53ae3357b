// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/sparse.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace format_bench {

/// The entries of one region, as a rank sends them.
struct message {
  std::vector<std::int32_t> indices; ///< ascending
  std::vector<float> values;
  oktopk::region where;

  std::int64_t size() const { return static_cast<std::int64_t>(indices.size()); }
};

/// What is measured on: the messages of one selection or of several.
struct input {
  std::string name;
  std::int64_t length = 0; ///< of the gradient
  std::vector<message> messages;
  double gap_entropy = 0; ///< of the gaps between indices, in bits an entry: the least of a code of one gap at a time
  double choice_bits = 0; ///< log2 of the number of ways to choose so many places in a region, in bits an entry: the
                          ///< least where all places are equally likely

  std::int64_t entries() const;
};

/// Random entries by the way that they lie:
/// `uniform`: anywhere; `clustered`: nine tenths of them in a tenth of the stretches of 4,096; `alternating`: small and
/// large gaps by turns, which no one width fits; `random_bits`: anywhere, with values of random bits, which nothing can
/// compress.
inline constexpr std::string_view kinds[] = {"uniform", "clustered", "alternating", "random_bits"};

bool is_kind(std::string_view name);

/// About density x length entries, cut into so many messages of equally many entries; the same for the same arguments.
input make_input(std::string_view kind, std::int64_t length, double density, std::int64_t parts);

/// The largest magnitudes of each of these files (.npy or raw float32), density x length of each, each file cut into so
/// many messages. Throws `std::runtime_error` where a file cannot be read or has another length than the first.
input read_input(std::vector<std::string> const& files, std::string const& name, double density, std::int64_t parts);

} // namespace format_bench
