// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "communicator.hpp"
#include "options.hpp"
#include "types.hpp"

#include <oktopk/algorithm/dense.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

// The textbook's dense allreduces, with and without a codec. Which one it is, the program learns when it runs: the
// training is compiled for two types, not for every algorithm with every codec.
namespace fashion {

inline constexpr std::array<std::string_view, 5> textbook_names{"ring", "ring_chunked", "ring_pipelined",
                                                                "halving_doubling", "recursive_doubling"};

bool is_textbook(std::string_view algorithm);

/// Any of them, behind virtual functions: a call of one costs nothing beside the messages of an allreduce.
class any_sum {
public:
  any_sum() = default;
  any_sum(any_sum const&) = delete;
  any_sum& operator=(any_sum const&) = delete;
  virtual ~any_sum() = default;

  virtual bool lossless() const = 0;
  virtual std::string name() const = 0;
  virtual std::string describe() const = 0;
  virtual std::string fault() const = 0;
  virtual double bound_words(std::int64_t count, int ranks) const = 0;
  virtual void run(execution const& exec, communicator& comm, float* values, float* lost, std::int64_t count) = 0;
};

/// The one that `--algorithm`, `--codec`, `--rate` and `--codec-level` name, which `parse_options` has accepted. Throws
/// an oktopk::error where the codec cannot work in the memory that the training is in.
std::unique_ptr<any_sum> make_textbook_sum(options const& how);

/// One of them as the library wants its policies: whether the sum is exact is part of the type.
template <bool Exact>
class textbook_sum {
public:
  static constexpr bool lossless = Exact;

  struct options {
    std::shared_ptr<any_sum> sum; ///< with the same answer to `lossless`
  };

  textbook_sum() = default;
  explicit textbook_sum(options how) : sum_(std::move(how.sum)) {}

  std::string name() const { return sum_ ? sum_->name() : "none"; }
  std::string describe() const { return sum_ ? sum_->describe() : "none"; }

  std::string fault() const {
    if (!sum_ || sum_->lossless() != lossless) {
      return sum_ ? sum_->name() + " is not as exact as its type says" : "no dense allreduce was chosen";
    }
    return sum_->fault();
  }

  double bound_words(std::int64_t count, int ranks) const { return sum_->bound_words(count, ranks); }

  void run(execution const& exec, communicator& comm, float* values, float* lost, std::int64_t count) {
    sum_->run(exec, comm, values, lost, count);
  }

private:
  std::shared_ptr<any_sum> sum_;
};

template <bool Exact>
using textbook_dense = oktopk::dense<execution, communicator, float, std::int32_t, textbook_sum<Exact>>;

} // namespace fashion
