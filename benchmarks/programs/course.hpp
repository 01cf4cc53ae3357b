// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/catalogue/automatic.hpp>
#include <oktopk/core/checkpoint.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace oktopk_programs {

/// A file with a row for each iteration of a training, written as it ends: seconds, loss and words of the rank that
/// writes, what its allreduce runs, and how often `automatic` has decided for another scheme (its trials are none).
class course {
public:
  /// Begins the file; without a name there is none. Throws std::runtime_error.
  explicit course(std::filesystem::path const& name) : name_(name) {
    if (name.empty()) {
      return;
    }
    out_.open(name);
    out_ << "iteration,seconds,loss,words,runs,switches" << std::endl;
    if (!out_) {
      throw std::runtime_error("cannot write " + name.string());
    }
  }

  /// `buckets` are pointers to every `any_allreduce`: the longest one tells what runs, the one that switches most how
  /// often. `words` were sent in this iteration. Throws std::runtime_error
  /// where the row cannot be written.
  template <class Allreduce>
  void add(std::int64_t iteration, double seconds, double loss, double words, std::vector<Allreduce*> const& buckets) {
    if (!out_.is_open()) {
      return;
    }
    chosen_.resize(buckets.size());
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      chosen_[i].see(chosen_by(*buckets[i]));
    }
    auto const* const longest = *std::max_element(
        buckets.begin(), buckets.end(), [](auto const* a, auto const* b) { return a->length() < b->length(); });
    auto const most = std::max_element(chosen_.begin(), chosen_.end(),
                                       [](auto const& a, auto const& b) { return a.switches < b.switches; });
    out_ << iteration << ',' << seconds << ',' << loss << ',' << words << ",\"" << longest->explain() << "\","
         << most->switches << std::endl; // whoever watches the training reads it now
    if (!out_) {
      throw std::runtime_error("cannot write " + name_.string() + "; is the disk full?");
    }
  }

private:
  struct choice {
    std::string scheme;
    std::int64_t switches = 0;

    void see(std::string const& now) {
      if (!now.empty()) {
        switches += !scheme.empty() && scheme != now ? 1 : 0;
        scheme = now;
      }
    }
  };

  // The scheme that `automatic` has decided for; empty while it tries some, and of other algorithms.
  template <class Allreduce>
  static std::string chosen_by(Allreduce const& of) {
    if (of.name() != "automatic") {
      return {};
    }
    auto const text = oktopk::detail::state_of<oktopk::detail::automatic_state>(of.state().checkpoint).text;
    return {text.begin(), text.end()};
  }

  std::filesystem::path name_;
  std::ofstream out_;
  std::vector<choice> chosen_;
};

} // namespace oktopk_programs
