// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace oktopk::detail {

/// What is wrong with the number of one of `count` things, called `what`; empty where nothing is.
inline std::string number_fault(char const* what, int number, std::size_t count) {
  bool const known = number >= 0 && static_cast<std::size_t>(number) < count;
  return known ? std::string()
               : "there is no " + std::string(what) + " " + std::to_string(number) + " among " + std::to_string(count);
}

/// Throws it (option_out_of_range).
inline void expect_number(char const* what, int number, std::size_t count) {
  if (std::string const sentence = number_fault(what, number, count); !sentence.empty()) {
    throw error(fault::option_out_of_range, "bucketed: " + sentence);
  }
}

/// All buckets of `bucketed`, by number, which stay where they are made.
template <class Part>
class bucket_parts {
public:
  using state_type = decltype(std::declval<Part&>().feedback.state());

  template <class... Arguments>
  void make(Arguments&&... arguments) {
    parts_.push_back(std::make_unique<Part>(std::forward<Arguments>(arguments)...));
  }

  std::size_t size() const { return parts_.size(); }

  /// An `error` (option_out_of_range) for a number that is none.
  Part& at(int bucket) const {
    expect_number("bucket", bucket, parts_.size());
    return *parts_[static_cast<std::size_t>(bucket)];
  }

  void begin_step() {
    for (auto const& each : parts_) {
      each->done = false;
      each->withheld.clear();
    }
  }

  /// As before the step: what the calls of this step have changed.
  void undo_step() {
    for (auto const& each : parts_) {
      if (each->done) {
        each->feedback.undo();
      }
    }
  }

  /// The states of the error feedbacks, in the order of the buckets.
  std::vector<state_type> states() const {
    std::vector<state_type> all;
    for (auto const& each : parts_) {
      all.push_back(each->feedback.state());
    }
    return all;
  }

  /// The checkpoints of allreduces without a past.
  std::vector<std::string> fresh() const {
    std::vector<std::string> all;
    for (auto const& each : parts_) {
      all.push_back(each->fresh);
    }
    return all;
  }

  /// Restores the error feedbacks of all buckets, or of none. Collective; all ranks throw in the same bucket.
  void restore(std::vector<state_type> const& saved) {
    std::vector<state_type> const before = states();
    for (std::size_t done = 0; done < parts_.size(); ++done) {
      try {
        parts_[done]->feedback.restore(saved[done]);
      } catch (error const&) {
        while (done > 0) {
          done -= 1;
          parts_[done]->feedback.restore(before[done]);
        }
        throw;
      }
    }
  }

private:
  std::vector<std::unique_ptr<Part>> parts_;
};

} // namespace oktopk::detail
