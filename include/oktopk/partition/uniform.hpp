// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/options.hpp>
#include <oktopk/partition/concept.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace oktopk {

/// Regions of equal width, without communication.
///
/// With one block each, regions are contiguous, and uneven if the large gradients lie close together (paper, Fig. 1b). With
/// more, rank r has the blocks r, P + r, 2P + r, ...: a block-cyclic distribution. Then each region has a part of every
/// layer, and is even in the entries that ranks select, in their sums and in the result, in every call. A call takes two
/// passes more, over its selection and its result, which put the blocks of a region together; each searches the list for
/// the begin of all P x `blocks` blocks, so blocks should have more entries than one.
/// Memory: two lists of k entries and five arrays of P x `blocks` numbers. Of sums that are equal in magnitude the first
/// in the order of regions is chosen.
struct uniform : partitioner_base {
  struct options {
    int blocks = 1; ///< of a region, dealt out to the ranks in turn, at least 1; no more than it has indices

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("blocks", how.blocks, "blocks of a region, dealt out to the ranks in turn", at_least(1));
    }
  };

  uniform() : uniform(options{}) {}
  explicit uniform(options how) : options_(how) {}

  std::string describe() const { return detail::describe_options("uniform", options_); }
  std::string problem() const { return detail::fault_of_options("uniform", options_); }
  static bool due(std::int64_t iteration) { return iteration == 0; }
  static double bound_words(int, std::int64_t, bool) { return 0; }
  int blocks() const { return options_.blocks; }

  template <execution_space E, communicator Comm>
  class step : public partitioner_base::step_base {
  public:
    explicit step(uniform const&) {}

    template <gradient_index Index>
    std::span<std::int64_t const> run(call_context<E, Comm>& call,
                                      array_ref<Index const, typename E::memory_space> const&, bool) {
      boundaries_.resize(static_cast<std::size_t>(call.comm.size()) + 1);
      detail::even_regions(call.length, boundaries_); // dealt blocks are even, too
      return boundaries_;
    }

  private:
    std::vector<std::int64_t> boundaries_;
  };

private:
  options options_;
};

} // namespace oktopk
