// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "xi.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>

namespace torch_training {
namespace {

/// Clears all but the k largest magnitudes; of equal ones the first stay.
void keep_topk(std::vector<float>& values, std::int64_t k) {
  if (k >= static_cast<std::int64_t>(values.size())) {
    return;
  }
  std::vector<float> magnitudes(values.size());
  std::transform(values.begin(), values.end(), magnitudes.begin(), [](float value) { return std::abs(value); });
  auto const kth = magnitudes.begin() + k;
  std::nth_element(magnitudes.begin(), kth, magnitudes.end(), std::greater<>());
  float const next = *kth; // the largest that does not belong to them, or one of equals
  std::int64_t left = k - std::count_if(values.begin(), values.end(), [&](float v) { return std::abs(v) > next; });
  for (float& value : values) {
    if (std::abs(value) < next || (std::abs(value) == next && left-- <= 0)) {
      value = 0;
    }
  }
}

double squares(std::vector<float> const& values) {
  double sum = 0;
  for (float const value : values) {
    sum += static_cast<double>(value) * static_cast<double>(value);
  }
  return sum;
}

} // namespace

void xi_of_step::attach(oktopk::bucketed<scheme>& buckets) {
  buckets_.resize(buckets.plan().buckets.size());
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    auto& feedback = buckets.feedback(static_cast<int>(i));
    feedback.before_allreduce([this, i, &feedback](auto const& accumulator) {
      auto const residual = feedback.residual();
      seen& of = buckets_[i];
      of.accumulator.assign(accumulator.data(), accumulator.data() + accumulator.extent(0));
      of.added.resize(of.accumulator.size());
      for (std::size_t at = 0; at < of.added.size(); ++at) {
        of.added[at] = accumulator(at) - residual(at);
      }
    });
  }
}

void xi_of_step::detach(oktopk::bucketed<scheme>& buckets) {
  for (std::size_t i = 0; i < buckets.plan().buckets.size(); ++i) {
    buckets.feedback(static_cast<int>(i)).before_allreduce(nullptr);
  }
}

double xi_of_step::measure(oktopk::bucketed<scheme>& buckets, oktopk::mpi_communicator world) {
  detach(buckets);
  double apart = 0;
  double added = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    auto const bucket = static_cast<int>(i);
    seen& of = buckets_[i];
    world.allreduce(std::span<float>(of.accumulator), oktopk::reduction::sum, oktopk::phase::control);
    world.allreduce(std::span<float>(of.added), oktopk::reduction::sum, oktopk::phase::control);
    keep_topk(of.accumulator, buckets.allreduce(bucket).k());
    auto const& update = buckets.update(bucket);
    for (std::size_t e = 0; e < update.indices().extent(0); ++e) {
      of.accumulator[static_cast<std::size_t>(update.indices()(e))] -= update.values()(e);
    }
    apart += squares(of.accumulator);
    added += squares(of.added);
  }
  return added > 0 ? std::sqrt(apart / added) : 0;
}

} // namespace torch_training
