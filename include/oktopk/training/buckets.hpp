// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace oktopk {

/// Tensors that are reduced together, as one accumulator: one after the other, in this order.
struct bucket {
  std::vector<int> tensors; ///< their numbers
  std::int64_t length = 0;  ///< of all of them together
  double density = 0;       ///< of the selection; 0 where none was given
};

namespace detail {

/// The place of a tensor.
struct tensor_place {
  int bucket = 0;
  std::int64_t offset = 0; ///< of its first value in the bucket
  std::int64_t length = 0;
};

/// Tensors put into buckets; a plain value, the same on all ranks.
struct bucket_plan {
  std::vector<bucket> buckets;
  std::vector<tensor_place> places; ///< of each tensor, by its number
};

} // namespace detail

/// What a plan is made from.
struct bucket_options {
  std::int64_t bucket_bytes = std::int64_t(25) << 20; ///< the most of a bucket, unless one tensor alone takes more
  std::vector<int> order{};        ///< of the tensors, as their gradients become ready; empty: as they are numbered
  std::vector<double> densities{}; ///< of each tensor's selection, or one for all; tensors of a bucket share it
};

namespace detail {

/// The fault of such options in words; empty where there is none.
inline std::string problem_of(std::span<std::int64_t const> lengths, bucket_options const& how) {
  if (how.bucket_bytes < 1) {
    return "bucket_bytes = " + std::to_string(how.bucket_bytes) + " is not positive";
  }
  for (std::int64_t const length : lengths) {
    if (length < 0) {
      return "the length of a tensor, " + std::to_string(length) + ", is negative";
    }
  }
  if (!how.order.empty()) {
    std::vector<bool> seen(lengths.size());
    for (int const tensor : how.order) {
      if (tensor < 0 || static_cast<std::size_t>(tensor) >= lengths.size() || seen[static_cast<std::size_t>(tensor)]) {
        return "order is no permutation of the tensors' numbers: " + std::to_string(tensor) + " is not there, or twice";
      }
      seen[static_cast<std::size_t>(tensor)] = true;
    }
  }
  if (!how.order.empty() && how.order.size() != lengths.size()) {
    return "order names " + std::to_string(how.order.size()) + " of " + std::to_string(lengths.size()) + " tensors";
  }
  if (how.densities.size() > 1 && how.densities.size() != lengths.size()) {
    return "there are " + std::to_string(how.densities.size()) + " densities for " + std::to_string(lengths.size()) +
           " tensors";
  }
  for (double const density : how.densities) {
    if (!(density > 0 && density <= 1)) {
      return "the density " + std::to_string(density) + " is not in (0, 1]";
    }
  }
  return {};
}

/// Fills buckets with tensors in the order in which their gradients become ready, so that a bucket is full early in the
/// backward pass. A new bucket begins where the next tensor would make it larger than `bucket_bytes`, or has another
/// density. `options` has no problem.
inline bucket_plan plan_buckets(std::span<std::int64_t const> lengths, std::size_t value_bytes,
                                bucket_options const& how) {
  bucket_plan plan;
  plan.places.resize(lengths.size());
  std::vector<int> order = how.order;
  if (order.empty()) {
    order.resize(lengths.size());
    std::iota(order.begin(), order.end(), 0);
  }
  std::int64_t const most = how.bucket_bytes / static_cast<std::int64_t>(value_bytes);
  for (int const tensor : order) {
    auto const number = static_cast<std::size_t>(tensor);
    double const density = how.densities.empty()       ? 0
                           : how.densities.size() == 1 ? how.densities.front()
                                                       : how.densities[number];
    bool const fits = !plan.buckets.empty() && plan.buckets.back().density == density &&
                      lengths[number] <= most - plan.buckets.back().length;
    if (!fits) {
      plan.buckets.push_back({{}, 0, density});
    }
    bucket& last = plan.buckets.back();
    plan.places[number] = {static_cast<int>(plan.buckets.size()) - 1, last.length, lengths[number]};
    last.tensors.push_back(tensor);
    last.length += lengths[number];
  }
  return plan;
}

/// Times of one bucket in a step, in seconds since the step began.
struct bucket_times {
  double ready = 0; ///< its last gradient was there
  double began = 0; ///< its call
  double ended = 0;
};

} // namespace detail

/// How much of a step's communication the backward pass has hidden.
struct overlap_times {
  std::vector<detail::bucket_times> buckets; ///< in the order of their calls
  double wait_began = 0;                     ///< the backward pass was over: `wait` was called
  double wait_ended = 0;                     ///< all averages were there
  int absent = 0;                            ///< tensors that this rank did not announce, which counted as zeros

  /// Seconds of all calls: selection, messages and sums.
  double communication() const {
    double sum = 0;
    for (detail::bucket_times const& each : buckets) {
      sum += each.ended - each.began;
    }
    return sum;
  }

  /// Seconds of calls that ran before `wait` was called.
  double hidden() const {
    double sum = 0;
    for (detail::bucket_times const& each : buckets) {
      sum += std::max(0.0, std::min(each.ended, wait_began) - std::min(each.began, wait_began));
    }
    return sum;
  }

  /// The most seconds that could have been hidden: calls of the same lengths, each as early as its gradients and the
  /// call before it allow, up to the end of the backward pass.
  double hideable() const {
    double free_at = 0;
    double sum = 0;
    for (detail::bucket_times const& each : buckets) {
      double const begin = std::max(free_at, each.ready);
      double const end = begin + (each.ended - each.began);
      sum += std::max(0.0, std::min(end, wait_began) - std::min(begin, wait_began));
      free_at = end;
    }
    return sum;
  }
};

} // namespace oktopk
