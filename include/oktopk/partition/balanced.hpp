// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/core/options.hpp>
#include <oktopk/core/workspace.hpp>
#include <oktopk/partition/concept.hpp>
#include <oktopk/sparse/arithmetic.hpp>

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

/// The number of entries of all ranks below an index.
struct known_count {
  std::int64_t index = 0;
  std::int64_t below = 0;
};

/// Throws `damaged_message` for counts that do not ascend, or are too large for the arithmetic below.
inline void check_known(std::span<known_count const> known) {
  constexpr auto most = std::int64_t(1) << 43;
  if (!std::ranges::is_sorted(known, {}, &known_count::below) || known.front().below < 0 ||
      known.back().below >= most) {
    throw error(fault::damaged_message,
                "the counts of entries, summed over ranks, do not ascend: a message was damaged");
  }
}

/// Moves boundaries to where every region has the same count, as far as is known: `place(wanted, low, high)` is the index
/// with `wanted` entries below it, which lies between two indices whose counts are known. `known` ascends from 0 to the
/// length.
template <class Place>
void move_boundaries(std::span<known_count const> known, std::span<std::int64_t> boundaries, Place const& place) {
  auto const regions = static_cast<std::int64_t>(boundaries.size()) - 1;
  std::int64_t const total = known.back().below;
  if (total == 0) {
    return;
  }
  std::size_t at = 0;
  for (std::int64_t r = 1; r < regions; ++r) {
    std::int64_t const wanted = total / regions * r + total % regions * r / regions;
    while (at + 2 < known.size() && known[at + 1].below <= wanted) {
      at += 1;
    }
    boundaries[static_cast<std::size_t>(r)] = place(wanted, known[at], known[at + 1]);
  }
}

/// The index if entries are spread evenly. Uses integers only, so that all ranks get the same result.
inline std::int64_t place_of_even(std::int64_t wanted, known_count const& low, known_count const& high) {
  std::int64_t const count = high.below - low.below;
  std::int64_t const width = high.index - low.index;
  std::int64_t const share = count == 0 ? 0 : ((wanted - low.below) << 20) / count;
  return low.index + (width >> 20) * share + (((width & 0xfffff) * share) >> 20);
}

/// The step of `balanced`, and of `sampled`, which evens the regions in `rounds` rounds first.
template <execution_space E, communicator Comm>
class balancing_step : public partitioner_base::step_base {
public:
  explicit balancing_step(int rounds) : rounds_(rounds) {}

  template <gradient_index Index>
  std::span<std::int64_t const> run(call_context<E, Comm>& call,
                                    array_ref<Index const, typename E::memory_space> const& selected,
                                    bool /*were_uneven*/ = false) {
    average(call, selected);
    known_.assign(1, {0, 0});
    for (int round = 0; round < rounds_ && boundaries_.size() > 2; ++round) {
      count(call, selected, boundaries_);
      if (!learn_counts()) {
        break; // no boundary is new, on any rank: more rounds would change nothing
      }
      move_boundaries(known_, boundaries_, place_of_even);
    }
    return boundaries_;
  }

protected:
  // Sums the numbers of selected entries below each boundary but the first, over all ranks.
  template <gradient_index Index>
  void count(call_context<E, Comm>& call, array_ref<Index const, typename E::memory_space> const& selected,
             std::span<std::int64_t const> boundaries) {
    split_positions<E, Index>(call.exec, selected, boundaries, positions_);
    counts_.assign(positions_.host() + 1, positions_.host() + boundaries.size());
    allreduce_integers(call.comm, std::span<std::int64_t>(counts_), reduction::sum, phase::partition, collective_);
  }

  // Adds the counts to those that are known. False if no boundary is new.
  bool learn_counts() {
    std::size_t const known_before = known_.size();
    for (std::size_t r = 0; r < counts_.size(); ++r) {
      known_.push_back({boundaries_[r + 1], counts_[r]});
    }
    std::ranges::sort(known_, {}, &known_count::index);
    auto const same_index = [](known_count const& a, known_count const& b) { return a.index == b.index; };
    known_.erase(std::unique(known_.begin(), known_.end(), same_index), known_.end());
    check_known(known_);
    return known_.size() > known_before;
  }

  // The averages of the ranks' boundaries.
  template <class Indices>
  void average(call_context<E, Comm>& call, Indices const& selected) {
    auto const ranks = static_cast<std::size_t>(call.comm.size());
    boundaries_.resize(ranks + 1);
    numbers_.reserve(call.exec, call.comm.size());
    // The sums of P boundaries overflow only beyond P x n = 2^63. The last number counts the ranks that take part.
    std::span<std::int64_t> const sums(numbers_.host(), ranks);
    bool const has_say = selected.extent(0) > 0;
    std::ranges::fill(sums, 0);
    if (has_say) { // the indices at P-1 evenly spaced positions of the selection
      boundary_lookup<Indices> const kernel{selected, static_cast<std::int64_t>(selected.extent(0)), call.comm.size(),
                                            numbers_.device().data()};
      Kokkos::parallel_for("oktopk::partition::local_boundaries", index_range<E>(call.exec, 0, call.comm.size() - 1),
                           kernel);
      numbers_.to_host(call.exec, call.comm.size() - 1, "oktopk::partition::local_boundaries");
    }
    sums.back() = has_say ? 1 : 0;
    allreduce_integers(call.comm, sums, reduction::sum, phase::partition, collective_);
    std::int64_t const voices = sums.back();
    if (voices == 0) {
      even_regions(call.length, boundaries_);
      return;
    }
    boundaries_.front() = 0;
    boundaries_.back() = call.length;
    for (std::size_t r = 1; r < ranks; ++r) {
      boundaries_[r] = sums[r - 1] / std::max<std::int64_t>(voices, 1);
    }
    if (voices < 0 || voices > call.comm.size() || !std::is_sorted(boundaries_.begin(), boundaries_.end())) {
      throw error(fault::damaged_message, "the boundaries, summed over ranks, do not ascend: a message was damaged");
    }
  }

  int rounds_;
  std::vector<std::int64_t> boundaries_;
  std::vector<std::int64_t> counts_;
  std::vector<known_count> known_;

private:
  shared_numbers<std::int64_t, E> numbers_{"oktopk::partition::numbers"};
  shared_numbers<std::int64_t, E> positions_{"oktopk::partition::numbers"};
  collective_workspace collective_;
};

} // namespace detail

/// Regions that split every rank's selection about evenly (paper, section 3.1.1): each rank cuts its own selection into
/// P equal parts, and the boundaries are averaged over ranks.
///
/// Costs one allreduce of P integers every tau iterations. A rank that selected nothing takes no part in the average;
/// if no rank selected anything, regions are uniform. Averaging balances only if the ranks' gradients are large in the
/// same places; otherwise it guarantees nothing.
struct balanced : partitioner_base {
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
  static double bound_words(int ranks, std::int64_t, bool) { return detail::allreduce_words_at_most(ranks, ranks); }

  template <execution_space E, communicator Comm>
  struct step : detail::balancing_step<E, Comm> {
    explicit step(balanced const&) : detail::balancing_step<E, Comm>(0) {}
  };

private:
  options options_;
};

} // namespace oktopk
