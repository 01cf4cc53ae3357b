// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/agreement.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/training/buckets.hpp>
#include <oktopk/training/error_feedback_options.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace oktopk::detail {

/// Checks what buckets are made from. Collective; an `error` on every rank where a rank's options make no sense, or
/// where lengths or options of the plan differ between ranks. (Those of `feedback` are compared by `error_feedback`.)
template <class Comm>
void agree_on_buckets(Comm& comm, std::span<std::int64_t const> lengths, bucket_options const& plan,
                      error_feedback_options const& feedback) {
  agreement terms("bucketed");
  std::string sentence = problem_of(lengths, plan);
  sentence = sentence.empty() ? feedback.problem() : sentence;
  if (!sentence.empty()) {
    terms.note(fault::option_out_of_range, sentence);
  }
  terms.fact("tensors", lengths.size()).fact("bucket_bytes", plan.bucket_bytes);
  for (std::int64_t const length : lengths) {
    terms.fact("length of a tensor", length);
  }
  for (int const tensor : plan.order) {
    terms.fact("next in order", tensor);
  }
  for (double const density : plan.densities) {
    terms.fact("density of a tensor", density);
  }
  terms.check_on(comm);
}

/// Makes a step without buckets fail on every rank where one rank has a misuse: no call tells the others. Collective.
template <class Comm>
void agree_on_misuse(Comm& comm, std::optional<error> const& misuse) {
  agreement terms("a step without tensors");
  if (misuse) {
    terms.note(misuse->code(), misuse->sentence());
  }
  terms.check_on(comm);
}

/// Checks that the allreduce of each bucket, of length `made(bucket)`, is made for the bucket's length. Collective; an
/// `error` on every rank where one is not.
template <class Comm, class Made>
void agree_on_lengths(Comm& comm, bucket_plan const& plan, Made const& made) {
  agreement terms("bucketed");
  for (std::size_t bucket = 0; bucket < plan.buckets.size(); ++bucket) {
    std::int64_t const expected = plan.buckets[bucket].length;
    if (made(bucket) != expected) {
      terms.note(fault::length_mismatch, "bucket " + std::to_string(bucket) + " has " + std::to_string(expected) +
                                             " values, and its allreduce is made for " + std::to_string(made(bucket)));
    }
  }
  terms.check_on(comm);
}

} // namespace oktopk::detail
