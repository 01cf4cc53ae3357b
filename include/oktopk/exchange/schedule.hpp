// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/options.hpp>

#include <concepts>
#include <cstdint>
#include <string>

namespace oktopk {

/// In which order a rank talks to the others in split and reduce.
///
/// * `destination(rank, step, ranks)`, `source(rank, step, ranks)` — for steps 1 .. P-1; over all steps each other rank
///   once, and if a sends to b in a step then b receives from a in that same step.
/// * `bucket()` — steps whose messages are in flight together, at least 1.
template <class S>
concept schedule = std::copy_constructible<S> && std::copyable<typename S::options> &&
                   std::constructible_from<S, typename S::options> && requires(S const& how, int number) {
                     { how.destination(number, number, number) } -> std::same_as<int>;
                     { how.source(number, number, number) } -> std::same_as<int>;
                     { how.bucket() } -> std::same_as<int>;
                     { how.describe() } -> std::convertible_to<std::string>;
                     { how.problem() } -> std::convertible_to<std::string>;
                   };

/// Rotated destinations in buckets (paper, Fig. 2b): in each step every rank receives one message, so none is a hot
/// spot.
struct rotated {
  struct options {
    int bucket = 4; ///< messages each way in flight together, at least 1

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("bucket", how.bucket, "messages each way in flight together", at_least(1));
    }
  };

  rotated() : rotated(options{}) {}
  explicit rotated(options how) : options_(how) {}

  static int destination(int rank, int step, int ranks) { return (rank + step) % ranks; }
  static int source(int rank, int step, int ranks) { return (rank + ranks - step) % ranks; }
  int bucket() const { return options_.bucket; }
  std::string describe() const { return detail::describe_options("rotated", options_); }
  std::string problem() const { return detail::fault_of_options("rotated", options_); }

private:
  options options_;
};

} // namespace oktopk
