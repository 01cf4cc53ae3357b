// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/select/concept.hpp>
#include <oktopk/select/kernel/compact.hpp>
#include <oktopk/select/kernel/count.hpp>
#include <oktopk/select/kernel/count_digit.hpp>
#include <oktopk/select/kernel/device/digits.hpp>
#include <oktopk/select/kernel/sample.hpp>
#include <oktopk/select/search/kth.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>

namespace oktopk::detail {

/// The most candidates that a prefilter may leave, for a selection of k.
inline std::int64_t candidate_limit(std::int64_t k) {
  return 2 * k + 1024;
}

/// Two magnitudes from a sample of the values. Zero where the sample is too small to tell.
template <gradient_value Value>
struct sampled_guess {
  Value safe = 0;   ///< k values reach it but for bad luck
  Value likely = 0; ///< the k-th if the values are spread just as the sample is
};

/// The search for the k-th largest magnitude of a group's candidates, in steps that combine.
///
/// Made from the context of one selection, to whose parts it keeps references.
template <execution_space E, gradient_index Index, gradient_value Value, selection_group Group>
class kth_search {
public:
  using candidates_type = candidates<Index, Value, typename E::memory_space>;
  using bits_type = bits_of<Value>;

  explicit kth_search(selection_context<E, Index, Value, Group> const& context)
      : exec_(context.exec), k_(context.k), group_(context.group), workspace_(context.workspace) {}

  /// Two guesses for a prefilter from a sample of the values: the same values give the same guesses. Overwrites the
  /// entries in the workspace.
  template <selection_source Source>
  sampled_guess<Value> guess_from_sample(Source const& source) {
    std::int64_t const samples = sample_size(source.size());
    workspace_.reserve(exec_, samples);
    copy_sample(exec_, source, samples, workspace_.values.data());
    double const expected = static_cast<double>(k_) * static_cast<double>(samples) / static_cast<double>(source.size());
    candidates_type const sample(workspace_.entries(samples));
    auto const at = [&](double rank) {
      auto const whole = std::max<std::int64_t>(static_cast<std::int64_t>(rank), 1);
      return whole >= samples ? Value(0) : magnitude_from_bits<Value>(kth_magnitude(sample, whole).threshold);
    };
    // Four standard deviations on the safe side: too many candidates cost little, too few another pass.
    return {at(expected + 4 * std::sqrt(expected) + 4), at(expected + 0.5)};
  }

  /// Loads the whole source and compacts what reaches the guess: returns how many previous entries of the workspace
  /// these are, or -1 where the guess failed, since they are fewer than k or more than there is always room for. What
  /// else the buffers were used for plays no part, so that the same state gives the same guesses.
  template <selection_source Source>
  std::int64_t prefilter(Source const& source, Value guess) {
    std::int64_t const most = std::max(candidate_limit(k_), sample_size(source.size()));
    workspace_.reserve(exec_, most);
    std::int64_t const count = compact(exec_, source, magnitude_filter<Value>{magnitude_bits(guess)}, workspace_);
    if (count < k_ || count > most) {
      return -1;
    }
    workspace_.swap_buffers();
    return count;
  }

  /// Brackets the `wanted`-th largest magnitude of all candidates in the group, until no more than `enough` of them are
  /// inside.
  ///
  /// By radix on the bit pattern of |x|: digit by digit from the top, a histogram of the candidates that share the
  /// digits found so far decides the next one. No sort, no copy of the values, any magnitudes (denormal, infinite, NaN)
  /// ordered as their patterns are. Reads the candidates once a digit: 3 times (float) with the 12 bits of `one_rank`.
  /// Sends one histogram a digit through `group.sum`. With fewer candidates than `wanted` all are wanted. `wanted` must
  /// be positive.
  ///
  /// A narrower range, the same on all ranks of the group, takes fewer digits; where the magnitude is not in it (or is
  /// the last pattern of it) it is not found, on any rank.
  kth_bracket<Value> bracket(candidates_type from, std::int64_t wanted, magnitude_range<Value> range,
                             std::int64_t enough) {
    bool const whole = range.bits == magnitude_bit_count<Value>;
    int const asked_bits = group_.kth_digit_bits(wanted, range.bits);
    int const digit_bits = is_device<E> ? std::min(asked_bits, widest_shared_digit) : asked_bits;
    std::int64_t const most_bins = std::int64_t(1) << digit_bits;
    std::int64_t const rows = std::max<std::int64_t>(1, exec_.concurrency()); // on a CPU
    // One rank's widest digit at once: a search among few candidates can come before one among many.
    std::int64_t const room = Group::alone ? std::max<std::int64_t>(most_bins, 1 << 12) : most_bins;
    if constexpr (is_device<E>) {
      workspace_.on_device.reserve_sums(exec_, room);
    } else {
      workspace_.histograms.reserve(exec_, rows * room);
    }
    workspace_.numbers.reserve(exec_, 2 * room);

    kth_bracket<Value> result;
    digit<Value> which{range, 0, 0, 0};
    std::int64_t const sought = wanted;
    bool at_the_end = !whole;
    for (int left = range.bits; left > 0 && (left == range.bits || at_the_end || result.inside_total > enough);
         left = which.shift) {
      which.width = std::min(digit_bits, left);
      which.shift = left - which.width;
      std::int64_t const bins = which.bins();
      std::int64_t* const counts = workspace_.numbers.device().data();
      if constexpr (is_device<E>) {
        auto const& device = workspace_.on_device;
        count_digit_by_teams<warp_of<E>, E, Value>(exec_, from.values, which, device.sums.data(),
                                                   &device.record.data()->arrived, counts);
      } else {
        count_digit(exec_, from.values, which, rows, workspace_.histograms.data());
        add_histograms(exec_, rows, bins, workspace_.histograms.data(), counts);
      }
      workspace_.numbers.to_host(exec_, bins, "oktopk::select::bracket");
      std::int64_t* const mine = workspace_.numbers.host();
      std::int64_t* const all = mine + most_bins;
      std::copy(mine, mine + bins, all);
      group_.sum(std::span<std::int64_t>(all, static_cast<std::size_t>(bins)));
      if (left == range.bits) {
        std::int64_t const reaching = std::accumulate(all, all + bins, std::int64_t(0));
        if (!whole && reaching < sought) {
          return {};
        }
        wanted = std::min(wanted, reaching);
      }
      std::int64_t bin = bins - 1;
      while (bin > 0 && (all[bin] < wanted || wanted == 0)) { // without candidates, to the lowest of all patterns
        wanted -= all[bin];
        result.above += mine[bin];
        bin -= 1;
      }
      which.prefix = static_cast<bits_type>((which.prefix << which.width) | static_cast<bits_type>(bin));
      result.inside = mine[bin];
      result.inside_total = all[bin];
      // The last place of a range stands for all that is above, too.
      at_the_end = at_the_end && bin == bins - 1;
    }
    if (at_the_end) {
      return {};
    }
    result.found = true;
    result.floor = static_cast<bits_type>(which.prefix << which.shift) + range.floor;
    result.shift = which.shift;
    result.wanted = std::min(wanted, result.inside_total);
    return result;
  }

  /// The `wanted`-th largest magnitude of one rank's candidates, by histograms of all of them. It must be in the range.
  kth<Value> kth_magnitude(candidates_type from, std::int64_t wanted, magnitude_range<Value> range = {}) {
    auto const found = bracket(from, wanted, range, 0);
    return {found.floor, found.inside, found.wanted};
  }

  /// The k-th magnitude of one rank's candidates for the price of little more than one read of them: a prefilter by
  /// what a sample says is certainly below it. Overwrites the entries in the workspace. k must be positive.
  kth<Value> kth_magnitude_by_prefilter(candidates_type from) {
    if (candidate_limit(k_) >= from.size()) {
      return kth_magnitude(from, k_);
    }
    auto const sampled = guess_from_sample(from);
    std::int64_t const count = prefilter(from, sampled.safe);
    return count < 0 ? kth_among_ties(from, sampled.likely)
                     : kth_above(candidates_type(workspace_.previous(count)), magnitude_bits(sampled.safe));
  }

  /// The k-th magnitude among at least k candidates of one rank that all reach `floor`. Where it is no more than about
  /// twice as large, as behind a prefilter, that takes a digit less than elsewhere.
  kth<Value> kth_above(candidates_type from, bits_type floor) {
    auto const near = bracket(from, k_, {floor, std::numeric_limits<Value>::digits}, 0);
    return near.found ? kth<Value>{near.floor, near.inside, near.wanted} : kth_magnitude(from, k_);
  }

  /// The k-th magnitude of one rank's candidates where no prefilter leaves few: it is `likely` where very many tie
  /// there.
  kth<Value> kth_among_ties(candidates_type from, Value likely) {
    bits_type const threshold = magnitude_bits(likely);
    std::int64_t const above = count_at_least(exec_, from, static_cast<bits_type>(threshold + 1));
    std::int64_t const reaching = above < k_ ? count_at_least(exec_, from, threshold) : 0;
    return above < k_ && k_ <= reaching ? kth<Value>{threshold, reaching - above, k_ - above} : kth_magnitude(from, k_);
  }

protected:
  E const& exec_;
  std::int64_t k_;
  Group& group_;
  selection_workspace<Index, Value, E>& workspace_;
};

} // namespace oktopk::detail
