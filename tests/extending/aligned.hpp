// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/partition/concept.hpp>

/// Regions of about equal width that begin at multiples of 64: no communication.
struct aligned {
  struct options {};

  aligned() : aligned(options{}) {}
  explicit aligned(options) {}

  static std::string describe() { return "aligned"; } // the ranks compare this text
  static std::string problem() { return {}; }         // a sentence where the options are wrong
  static bool due(std::int64_t iteration) { return iteration == 0; }
  static double bound_words(int) { return 0; }

  template <oktopk::execution_space E, oktopk::communicator Comm>
  class step {
  public:
    explicit step(aligned const&) {}

    template <oktopk::gradient_index Index>
    std::span<std::int64_t const> run(oktopk::call_context<E, Comm>& call,
                                      oktopk::array_ref<Index const, typename E::memory_space> const&) {
      std::int64_t const ranks = call.comm.size();
      boundaries_.assign(static_cast<std::size_t>(ranks) + 1, call.length);
      for (std::int64_t r = 0; r < ranks; ++r) {
        boundaries_[static_cast<std::size_t>(r)] = call.length / ranks * r / 64 * 64;
      }
      return boundaries_;
    }

  private:
    std::vector<std::int64_t> boundaries_;
  };
};
