// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/select/kernel/list_inside.hpp>
#include <oktopk/select/search/decision.hpp>
#include <oktopk/select/search/device_search.hpp>
#include <oktopk/select/search/guess.hpp>
#include <oktopk/select/search/kth_search.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace oktopk::detail {

/// The search for exactly min(k, candidates of the group) entries: the k largest, ties to the lower index.
///
/// Life cycle: made for one selection, from its context; then one of `run`, `select_all` and `select_above`, once; then
/// `threshold()`. The result does not depend on any guess, only the price does.
///
/// * One rank alone: guess, verify, refine (after the idea of arXiv 2604.22312). `prefilter` loads the source and
///   compacts what reaches the guess, in one read; if that is at least k and not too many, `bracket` finds the k-th
///   among these few, and `finish` selects from them. A guess that fails costs another read, with a guess from a sample
///   of the values themselves, and only where that fails too (most values tie) all are looked at again.
/// * Several ranks: `bracket` narrows the k-th magnitude down by histograms of a range around the last one, summed over
///   the group (and of all magnitudes where it has left that range); as soon as the bracket holds few candidates all
///   ranks tell each other theirs, with the counts that they must know of each other anyway; `decide` finds the k-th
///   among them, and `finish` selects.
template <execution_space E, gradient_index Index, gradient_value Value, selection_group Group>
class exact_search : public kth_search<E, Index, Value, Group> {
  using base = kth_search<E, Index, Value, Group>;

public:
  using typename base::bits_type;
  using typename base::candidates_type;
  using selection_type = selection<Index, Value, typename E::memory_space>;

  using base::base;

  /// Selects from a source and improves the guess for the next time.
  template <selection_source Source>
  selection_type run(Source const& source, search_guess<Value>& guess) {
    if constexpr (Group::alone) {
      return run_alone(source, guess.prefilter);
    } else {
      source.materialize(exec_);
      return run_across(source.materialized(), guess.bracket);
    }
  }

  /// Selects from one rank's candidates by histograms of all of them, without a guess.
  selection_type select_all(candidates_type from) {
    return finish(from, k_ > 0 ? base::kth_magnitude(from, k_) : kth<Value>{});
  }

  /// Selects from candidates of one rank that are at least k and all reach `floor`.
  selection_type select_above(candidates_type from, bits_type floor) {
    return finish(from, base::kth_above(from, floor));
  }

  /// The pattern of the k-th magnitude, once a selection has found it.
  bits_type threshold() const { return threshold_; }

  /// Writes the selection to the workspace: all candidates above the k-th magnitude, and the first `ties` of those with
  /// it. Returns how many: never more than k, whatever it is told. Where more candidates pass (the threshold was too
  /// low), it keeps the first k of them.
  std::int64_t finish(candidates_type from, bits_type threshold, std::int64_t ties, bool all_ties) {
    threshold_ = threshold;
    if constexpr (is_device<E>) {
      std::int64_t const room = std::min(k_, from.size());
      auto const written =
          select_above_threshold<warp_of<E>>(exec_, from, threshold, all_ties ? every_entry : ties, room, workspace_);
      not_finite_ = written.not_finite;
      return std::min(written.kept, room);
    } else {
      return finish_on_host(from, threshold, ties, all_ties);
    }
  }

private:
  using base::exec_;
  using base::group_;
  using base::k_;
  using base::workspace_;

  std::int64_t finish_on_host(candidates_type from, bits_type threshold, std::int64_t ties, bool all_ties) {
    magnitude_filter<Value> passes{threshold};
    if (!all_ties) {
      passes.last_tie = ties == 0 ? -1 : position_of_tie(exec_, from, threshold, ties, workspace_);
    }
    std::int64_t const room = std::min(k_, from.size());
    workspace_.reserve(exec_, room);
    std::int64_t const count = compact(exec_, from, passes, workspace_);
    if (count > workspace_.indices.capacity()) { // what several threads wrote was not joined
      compact_chunks(exec_, from, passes, 1, room, workspace_.indices.data(), workspace_.values.data(),
                     workspace_.chunk_counts.data(), false);
    }
    return std::min(count, room);
  }

  template <selection_source Source>
  selection_type run_alone(Source const& source, prefilter_guess<Value>& guess) {
    if (k_ <= 0 || candidate_limit(k_) >= source.size()) {
      source.materialize(exec_);
      return select_all(source.materialized());
    }
    sampled_guess<Value> sampled;
    if (guess.magnitude <= 0) {
      sampled = base::guess_from_sample(source);
      guess.magnitude = sampled.safe;
    }
    if constexpr (is_device<E>) {
      return run_alone_on_device(source, guess, sampled);
    } else {
      return run_alone_on_host(source, guess, sampled);
    }
  }

  /// The same search, but it is the kernels that go on from step to step.
  template <selection_source Source>
  selection_type run_alone_on_device(Source const& source, prefilter_guess<Value>& guess,
                                     sampled_guess<Value> sampled) {
    std::int64_t const most = std::max(candidate_limit(k_), sample_size(source.size()));
    auto near = select_near_guess<warp_of<E>>(exec_, source, k_, guess.magnitude, most, workspace_);
    auto const values = source.materialized();
    auto const failed = [&] { return near.count < k_ || near.count > most; };
    if (failed() && sampled.likely <= 0) {
      sampled = base::guess_from_sample(values);
      guess.magnitude = sampled.safe;
      near = select_near_guess<warp_of<E>>(exec_, values, k_, guess.magnitude, most, workspace_);
    }
    selection_type result;
    if (near.found) {
      threshold_ = near.threshold;
      not_finite_ = near.not_finite;
      result = {workspace_.entries(k_), group_.gather_counts(k_), true};
      note_checked(result);
    } else {
      result =
          finish(values, failed() ? base::kth_among_ties(values, sampled.likely) : base::kth_magnitude(values, k_));
    }
    guess.learn(magnitude_from_bits<Value>(threshold_), k_, failed() ? k_ : near.count);
    return result;
  }

  template <selection_source Source>
  selection_type run_alone_on_host(Source const& source, prefilter_guess<Value>& guess, sampled_guess<Value> sampled) {
    std::int64_t count = base::prefilter(source, guess.magnitude);
    auto const values = source.materialized();
    if (count < 0 && sampled.likely <= 0) {
      sampled = base::guess_from_sample(values);
      guess.magnitude = sampled.safe;
      count = base::prefilter(values, guess.magnitude);
    }
    auto result = count < 0
                      ? finish(values, base::kth_among_ties(values, sampled.likely))
                      : select_above(candidates_type(workspace_.previous(count)), magnitude_bits(guess.magnitude));
    guess.learn(magnitude_from_bits<Value>(threshold_), k_, count < 0 ? k_ : count);
    return result;
  }

  selection_type run_across(candidates_type from, bracket_guess<Value>& guess) {
    if (k_ == 0) {
      return {workspace_.entries(0), group_.gather_counts(0), true};
    }
    std::int64_t const enough = group_.affordable_row(k_);
    workspace_.numbers.reserve(exec_, enough);
    workspace_.row.reserve(2 + static_cast<std::size_t>(enough));
    workspace_.undecided.reserve(static_cast<std::size_t>(enough));
    kth_bracket<Value> found;
    if (guess.bits > 0) {
      found = base::bracket(from, k_, guess.range(), enough);
    }
    if (!found.found) {
      found = base::bracket(from, k_, magnitude_range<Value>{}, enough);
      guess.bits = 0;
    }
    if (found.shift > 0 && found.inside_total < found.inside) {
      throw error(fault::damaged_message, "all ranks together count fewer candidates than this one");
    }
    workspace_.row.assign({found.above, found.inside});
    if (found.shift > 0) {
      list_inside(exec_, from, found, workspace_);
      std::int64_t const* const listed = workspace_.numbers.host();
      workspace_.row.insert(workspace_.row.end(), listed, listed + found.inside);
      workspace_.row.resize(2 + static_cast<std::size_t>(found.inside_total));
    }
    std::size_t const width = workspace_.row.size();
    std::span<std::int64_t> const rows = group_.gather_rows(workspace_.row);
    auto const decided = decide<Value>(found, rows, width, group_.rank(), workspace_.undecided);
    std::int64_t const count =
        finish(from, decided.threshold, decided.my_kept_ties, decided.my_kept_ties == decided.my_ties);
    guess.learn(decided.threshold);
    selection_type result{workspace_.entries(count), group_.adopt_counts(rows, width), true};
    note_checked(result);
    return result;
  }

  selection_type finish(candidates_type from, kth<Value> found) {
    threshold_ = found.threshold;
    std::int64_t const count =
        k_ > 0 ? finish(from, found.threshold, found.ties_wanted, found.ties_wanted == found.ties) : 0;
    selection_type result{workspace_.entries(count), group_.gather_counts(count), true};
    if (k_ > 0) {
      note_checked(result);
    }
    return result;
  }

  // Kernels of a device look at what they write.
  void note_checked(selection_type& result) const {
    result.checked = is_device<E>;
    result.not_finite = not_finite_;
  }

  bits_type threshold_ = 0;
  std::int64_t not_finite_ = -1;
};

} // namespace oktopk::detail
