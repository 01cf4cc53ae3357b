// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

// What the results are compared with. Nothing here uses the library: plain loops over plain arrays on the host.
namespace oktopk_bench {

/// Which of an array's values are its k largest magnitudes: those above one, and the first few of just that magnitude.
template <class T>
class top_entries {
public:
  top_entries(std::span<T const> values, std::int64_t k) {
    auto const count = std::min(static_cast<std::size_t>(k), values.size());
    if (count == 0) {
      return;
    }
    std::vector<T> magnitudes(values.size());
    std::transform(values.begin(), values.end(), magnitudes.begin(), [](T x) { return std::abs(x); });
    auto const last = magnitudes.begin() + static_cast<std::ptrdiff_t>(count - 1);
    std::nth_element(magnitudes.begin(), last, magnitudes.end(), std::greater<>());
    least_ = static_cast<double>(*last);
    ties_ = 1 + std::count(magnitudes.begin(), last, *last);
  }

  /// To be asked about every value, in ascending order of the positions.
  bool takes(T value) {
    auto const magnitude = std::abs(static_cast<double>(value));
    if (magnitude == least_ && ties_ > 0) {
      ties_ -= 1;
      return true;
    }
    return magnitude > least_;
  }

private:
  double least_ = std::numeric_limits<double>::infinity();
  std::ptrdiff_t ties_ = 0;
};

/// Positions of the k largest magnitudes, ascending; ties go to the lower position.
std::vector<std::int64_t> top_k(std::span<float const> values, std::int64_t k);

/// What one rank knows of one entry of the gradient; it travels between ranks as it is.
struct contribution {
  enum kind_type : std::uint32_t {
    given,   ///< the rank's own value
    reached, ///< the same as it reached the owner of the sum
    doubt,   ///< distance to another value that it may have reached the owner as
    returned ///< what the rank takes back
  };

  std::uint32_t offset = 0; ///< from the begin of the block
  float value = 0;
  kind_type kind = given;
};

/// Sums of the contributions to one block of the gradient, and how far a sum in single precision may be from them.
class block_sums {
public:
  /// `rounded`: values reach the sums rounded, and what is rounded off is returned.
  explicit block_sums(std::int64_t width, bool rounded = false);

  bool rounded() const { return rounded_; }
  void clear();
  void add(std::span<contribution const> parts);

  /// Whether anybody contributed to the entry.
  bool touched(std::int64_t offset) const { return given_[static_cast<std::size_t>(offset)] > 0; }
  /// Whether anything was returned there.
  bool took_back(std::int64_t offset) const { return returned_[static_cast<std::size_t>(offset)] > 0; }
  /// What was given less what was returned; of one or two parts that are not rounded, as single precision must have it.
  double sum(std::int64_t offset) const;
  /// Nought for one or two of these; beyond that the order of summation is the scheme's own.
  double tolerance(std::int64_t offset) const;
  /// What the scheme chooses by: the sum of all that was given, as it reached the owner.
  double reached_sum(std::int64_t offset) const;
  double reached_tolerance(std::int64_t offset) const;

private:
  bool rounded_;
  std::vector<double> sums_;
  std::vector<double> magnitudes_;
  std::vector<std::int32_t> given_;
  std::vector<std::int32_t> returned_;
  // Where values are rounded:
  std::vector<double> reached_sums_;
  std::vector<double> reached_magnitudes_;
  std::vector<double> doubts_;
};

/// Compares one result with the sums of what the ranks say they gave to it, block by block in ascending order.
class result_check {
public:
  result_check(std::span<std::int64_t const> indices, std::span<float const> values);

  /// Takes the next block: the entries [begin, end).
  void take(std::int64_t begin, std::int64_t end, block_sums const& sums);

  /// A value that is not the sum of what the ranks contributed, or nothing.
  std::string const& wrong_value() const { return wrong_value_; }
  /// An entry left out that precedes an entry of the result (larger, or equal and of lower index), or nothing.
  std::string wrong_choice() const;
  /// A contribution to an entry that the result has not, or nothing.
  std::string stray() const;
  /// How many entries the ranks contributed to.
  std::int64_t candidates() const { return candidates_; }

private:
  struct ranked_entry {
    std::int64_t index = -1;
    double magnitude = 0;

    bool precedes(ranked_entry const& other) const {
      return magnitude > other.magnitude || (magnitude == other.magnitude && index < other.index);
    }
  };

  void take_inside(std::int64_t index, std::int64_t offset, block_sums const& sums, float value);
  void take_outside(std::int64_t index, std::int64_t offset, block_sums const& sums);

  std::span<std::int64_t const> indices_;
  std::span<float const> values_;
  std::size_t next_ = 0;
  std::int64_t candidates_ = 0;
  ranked_entry last_inside_;
  ranked_entry first_outside_;
  std::int64_t stray_index_ = -1;
  std::string wrong_value_;
};

} // namespace oktopk_bench
