// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>

namespace oktopk::detail {

/// A stretch of a vector, and its number among the stretches that the vector was cut into.
struct piece {
  std::int64_t index = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

/// A vector cut into so many pieces, as even as whole grains allow: the same on all ranks.
class cut_vector {
public:
  cut_vector() = default;
  cut_vector(std::int64_t count, std::int64_t pieces, std::int64_t grain = 1)
      : count_(count), pieces_(pieces), grain_(grain) {}

  std::int64_t pieces() const { return pieces_; }
  std::int64_t longest() const { return std::min(count_, grains() / pieces_ * grain_ + grain_); }

  piece operator[](std::int64_t index) const {
    std::int64_t const begin = boundary(index);
    return {index, begin, boundary(index + 1) - begin};
  }

private:
  std::int64_t grains() const { return (count_ + grain_ - 1) / grain_; }

  std::int64_t boundary(std::int64_t index) const {
    std::int64_t const each = grains() / pieces_;
    std::int64_t const left = grains() % pieces_;
    return std::min(count_, (each * index + left * index / pieces_) * grain_);
  }

  std::int64_t count_ = 0;
  std::int64_t pieces_ = 1;
  std::int64_t grain_ = 1;
};

} // namespace oktopk::detail
