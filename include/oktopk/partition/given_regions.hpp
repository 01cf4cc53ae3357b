// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/partition/concept.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace oktopk {

/// The regions that the caller names, in every call. Sends nothing.
struct given_regions : partitioner_base {
  static constexpr bool is_known_before = true;

  struct options {
    std::vector<std::int64_t> boundaries{}; ///< P+1 of them, from 0 to the length
    std::int64_t length = 0;
    int ranks = 0;

    template <class Options, class Visit>
    static void each_option(Options&, Visit&) {}
  };

  given_regions() = default;
  explicit given_regions(options how) : how_(std::move(how)) {}

  /// Ranks compare it: a digest of the boundaries.
  std::string describe() const {
    detail::fnv1a digest;
    digest.add(how_.boundaries.data(), how_.boundaries.size() * sizeof(std::int64_t));
    return "given_regions (digest " + std::to_string(digest.value()) + ")";
  }

  std::string problem() const {
    auto const& all = how_.boundaries;
    if (std::ssize(all) != how_.ranks + 1) {
      return std::to_string(all.size()) + " boundaries of regions are given for " + std::to_string(how_.ranks) +
             " ranks, which take one more than they are";
    }
    bool const ascend = std::is_sorted(all.begin(), all.end()) && all.front() == 0 && all.back() == how_.length;
    return ascend
               ? std::string()
               : "the given boundaries of regions do not ascend from 0 to the length, " + std::to_string(how_.length);
  }

  static bool due(std::int64_t iteration) { return iteration == 0; }
  static double bound_words(int, std::int64_t, bool) { return 0; }

  template <execution_space E, communicator Comm>
  class step : public partitioner_base::step_base {
  public:
    explicit step(given_regions const& how) : boundaries_(how.how_.boundaries) {}

    template <gradient_index Index>
    std::span<std::int64_t const> run(call_context<E, Comm>&, array_ref<Index const, typename E::memory_space> const&,
                                      bool) {
      return boundaries_;
    }

  private:
    std::vector<std::int64_t> boundaries_;
  };

private:
  options how_;
};

} // namespace oktopk
