// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

namespace oktopk_bench {

/// What one rank found wrong with its own files; becomes every rank's error once the ranks have agreed on it.
class local_fault : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Where one rank's accumulators come from. Measured steps count from 0; steps of the warm-up are negative, so that a
/// measured step sees the same input whatever the warm-up.
class input {
public:
  input() = default;
  input(input const&) = delete;
  input& operator=(input const&) = delete;
  virtual ~input() = default;

  /// The number of values of each step.
  virtual std::int64_t length() const = 0;
  /// One line for people.
  virtual std::string description() const = 0;
  /// Writes the accumulator of `step`; throws `local_fault`.
  virtual void read(std::int64_t step, std::span<float> values) = 0;
};

} // namespace oktopk_bench
