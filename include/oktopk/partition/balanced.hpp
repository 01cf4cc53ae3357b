// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/core/options.hpp>
#include <oktopk/core/workspace.hpp>
#include <oktopk/partition/uniform.hpp>

#include <algorithm>
#include <span>
#include <vector>

namespace oktopk {

namespace detail {

template <class Indices>
struct boundary_lookup {
  Indices selected;
  std::int64_t count; ///< of `selected`
  std::int64_t regions;
  std::int64_t* found;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t r) const {
    std::int64_t const extra = count % regions;
    std::int64_t const position = count / regions * (r + 1) + (r + 1 < extra ? r + 1 : extra);
    found[r] = static_cast<std::int64_t>(selected(position < count ? position : count - 1));
  }
};

/// Copies the indices at P-1 evenly spaced positions of an ascending selection to the host: its local boundaries.
template <execution_space E, gradient_index Index>
void local_boundaries(E const& exec, array_ref<Index const, typename E::memory_space> selected, std::int64_t regions,
                      shared_numbers<std::int64_t, E>& numbers) {
  boundary_lookup<decltype(selected)> const kernel{selected, static_cast<std::int64_t>(selected.extent(0)), regions,
                                                   numbers.device().data()};
  Kokkos::parallel_for("oktopk::partition::local_boundaries", detail::index_range<E>(exec, 0, regions - 1), kernel);
  numbers.to_host(exec, regions - 1, "oktopk::partition::local_boundaries");
}

} // namespace detail

/// Regions that split every rank's selection about evenly (paper, section 3.1.1): each rank cuts its own selection into
/// P equal parts, and the boundaries are averaged over ranks.
///
/// Costs one allreduce of P integers every tau iterations. A rank that selected nothing has no say; where none did,
/// regions are uniform. Averaging balances as far as the ranks' gradients are large in the same places; it is no
/// guarantee where they are not.
struct balanced {
  struct options {
    std::int64_t tau = 64; ///< iterations from one repartition to the next, at least 1

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("tau", how.tau, "iterations from one partition to the next", at_least(1));
    }
  };

  balanced() : balanced(options{}) {}
  explicit balanced(options how) : options_(how) {}

  std::string describe() const { return detail::describe_options("balanced", options_); }
  std::string problem() const { return detail::fault_of_options("balanced", options_); }

  bool due(std::int64_t iteration) const { return iteration % options_.tau == 0; }
  static double bound_words(int ranks) { return detail::allreduce_words_at_most(ranks, ranks); }

  template <execution_space E, communicator Comm>
  class step {
  public:
    explicit step(balanced const&) {}

    template <gradient_index Index>
    std::span<std::int64_t const> run(call_context<E, Comm>& call,
                                      array_ref<Index const, typename E::memory_space> const& selected) {
      auto const ranks = static_cast<std::size_t>(call.comm.size());
      boundaries_.resize(ranks + 1);
      numbers_.reserve(call.exec, call.comm.size());
      // The sums of P boundaries overflow only beyond P x n = 2^63. The last number counts the ranks that have a say.
      std::span<std::int64_t> const sums(numbers_.host(), ranks);
      bool const has_say = selected.extent(0) > 0;
      std::ranges::fill(sums, 0);
      if (has_say) {
        detail::local_boundaries(call.exec, selected, call.comm.size(), numbers_);
      }
      sums.back() = has_say ? 1 : 0;
      allreduce_integers(call.comm, sums, reduction::sum, phase::partition, collective_);
      std::int64_t const voices = sums.back();
      if (voices == 0) {
        detail::even_regions(call.length, boundaries_);
        return boundaries_;
      }
      boundaries_.front() = 0;
      boundaries_.back() = call.length;
      for (std::size_t r = 1; r < ranks; ++r) {
        boundaries_[r] = sums[r - 1] / std::max<std::int64_t>(voices, 1);
      }
      if (voices < 0 || voices > call.comm.size() || !std::is_sorted(boundaries_.begin(), boundaries_.end())) {
        throw error(fault::damaged_message, "the ranks' sums of boundaries are none");
      }
      return boundaries_;
    }

  private:
    std::vector<std::int64_t> boundaries_;
    detail::shared_numbers<std::int64_t, E> numbers_{"oktopk::partition::numbers"};
    collective_workspace collective_;
  };

private:
  options options_;
};

} // namespace oktopk
