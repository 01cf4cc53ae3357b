// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/options.hpp>
#include <oktopk/partition/concept.hpp>

/// Regions of about equal width that begin at multiples of a number: no communication.
struct aligned {
  struct options {
    std::int64_t multiple = 64; ///< at which regions begin, at least 1

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("multiple", how.multiple, "at which regions begin", oktopk::at_least(1));
    }
  };

  aligned() : aligned(options{}) {}
  explicit aligned(options how) : options_(how) {}

  std::string describe() const { return oktopk::detail::describe_options("aligned", options_); }
  std::string problem() const { return oktopk::detail::fault_of_options("aligned", options_); }
  static bool due(std::int64_t iteration) { return iteration == 0; }
  static double bound_words(int) { return 0; }

  template <oktopk::execution_space E, oktopk::communicator Comm>
  class step {
  public:
    explicit step(aligned const& how) : multiple_(how.options_.multiple) {}

    template <oktopk::gradient_index Index>
    std::span<std::int64_t const> run(oktopk::call_context<E, Comm>& call,
                                      oktopk::array_ref<Index const, typename E::memory_space> const&) {
      std::int64_t const ranks = call.comm.size();
      boundaries_.assign(static_cast<std::size_t>(ranks) + 1, call.length);
      for (std::int64_t r = 0; r < ranks; ++r) {
        boundaries_[static_cast<std::size_t>(r)] = call.length / ranks * r / multiple_ * multiple_;
      }
      return boundaries_;
    }

  private:
    std::int64_t multiple_;
    std::vector<std::int64_t> boundaries_;
  };

private:
  options options_;
};
