// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/agreement.hpp>
#include <oktopk/core/write_in_order.hpp>
#include <oktopk/select/concept.hpp>
#include <oktopk/select/kernel/compact.hpp>
#include <oktopk/select/kernel/digits.hpp>
#include <oktopk/select/kernel/source.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

namespace oktopk::detail {

/// Decides which of all ranks' undecided candidates belong to the k largest, the same on every rank: the k-th
/// magnitude, and of this rank's candidates how many have it and how many of these are kept. A row of a rank has the
/// number of its candidates above the bracket, the number inside, and the patterns of these unless all are the same.
/// Replaces each row's first number by the number of candidates that the rank keeps. Throws `damaged_message` for rows
/// that no ranks can have sent.
template <gradient_value Value>
kth<Value> decide(kth_bracket<Value> const& bracket, std::span<std::int64_t> rows, std::size_t width, int rank,
                  std::vector<std::int64_t>& undecided) {
  std::int64_t threshold = static_cast<std::int64_t>(bracket.floor);
  std::int64_t wanted_ties = bracket.wanted;
  bool const listed = bracket.shift > 0 && bracket.inside_total > 0;
  constexpr auto countable = std::int64_t(1) << 56; // the largest count in a message
  std::int64_t const most = listed ? static_cast<std::int64_t>(width) - 2 : countable;
  undecided.clear();
  for (std::size_t row = 0; row < rows.size(); row += width) {
    if (rows[row] < 0 || rows[row] > countable || rows[row + 1] < 0 || rows[row + 1] > most) {
      throw error(fault::damaged_message, "rank " + std::to_string(row / width) + " tells of " +
                                              std::to_string(rows[row + 1]) + " candidates, where " +
                                              std::to_string(most) + " are the most");
    }
    auto const inside = rows.subspan(row + 2, listed ? static_cast<std::size_t>(rows[row + 1]) : 0);
    undecided.insert(undecided.end(), inside.begin(), inside.end());
  }
  if (listed) {
    std::int64_t const sought = std::max<std::int64_t>(bracket.wanted, 1);
    if (static_cast<std::int64_t>(undecided.size()) < sought) {
      throw error(fault::damaged_message, "the ranks list fewer candidates than they have counted");
    }
    auto const place = undecided.begin() + static_cast<std::ptrdiff_t>(sought - 1);
    std::nth_element(undecided.begin(), place, undecided.end(), std::greater<>());
    threshold = *place;
    wanted_ties -= std::count_if(undecided.begin(), place, [&](std::int64_t each) { return each > threshold; });
  }
  kth<Value> result;
  result.threshold = static_cast<bits_of<Value>>(threshold);
  for (std::size_t row = 0; row < rows.size(); row += width) {
    auto const inside = rows.subspan(row + 2, listed ? static_cast<std::size_t>(rows[row + 1]) : 0);
    std::int64_t const ties = listed ? std::count(inside.begin(), inside.end(), threshold) : rows[row + 1];
    std::int64_t const above =
        std::count_if(inside.begin(), inside.end(), [&](std::int64_t each) { return each > threshold; });
    std::int64_t const kept = std::clamp<std::int64_t>(wanted_ties, 0, ties);
    wanted_ties -= kept;
    rows[row] += above + kept;
    if (static_cast<std::size_t>(rank) == row / width) {
      result.ties = ties;
      result.ties_wanted = kept;
    }
  }
  return result;
}

/// Copies evenly spread values: one from each stretch, at a place that a hash picks, so that no period of the values
/// matters. The same values give the same sample. Does not load them.
template <selection_source Source>
struct sample_copying {
  Source from;
  std::int64_t stretch;
  value_of<Source>* out;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    std::uint64_t h = (static_cast<std::uint64_t>(i) + 1) * 0x9e3779b97f4a7c15U;
    h = (h ^ (h >> 31)) * 0xbf58476d1ce4e5b9U;
    out[i] = from.peek(i * stretch + static_cast<std::int64_t>((h >> 33) % static_cast<std::uint64_t>(stretch)));
  }
};

/// The candidates in a bracket, in order; no more than fit are written.
template <gradient_value Value>
struct inside_items {
  static constexpr bool single = true;

  Value const* values;
  kth_bracket<Value> bracket;
  std::int64_t* out;

  KOKKOS_INLINE_FUNCTION std::int64_t count(std::int64_t i) const {
    return bracket.holds(magnitude_bits(values[i])) ? 1 : 0;
  }
  KOKKOS_INLINE_FUNCTION std::int64_t write(std::int64_t i, std::int64_t place) const {
    if (place < bracket.inside) {
      out[place] = static_cast<std::int64_t>(magnitude_bits(values[i]));
    }
    return 1;
  }
};

/// Writes the patterns of this rank's candidates in the bracket to the host's numbers, in the order of their indices;
/// never more of them than `bracket.inside`. Waits for `exec`.
template <execution_space E, gradient_index Index, gradient_value Value>
void list_inside(E const& exec, candidates<Index, Value, typename E::memory_space> from, kth_bracket<Value> bracket,
                 selection_workspace<Index, Value, E>& workspace) {
  workspace.numbers.reserve(exec, bracket.inside); // allocates nothing where the bracket was made for that room
  enqueue_in_order("oktopk::select::list_inside", exec, from.size(),
                   inside_items<Value>{from.values.data(), bracket, workspace.numbers.device().data()});
  workspace.numbers.to_host(exec, bracket.inside, "oktopk::select::list_inside");
}

/// The guess of one rank alone: a magnitude that about 5/4 k values reach.
template <gradient_value Value>
struct prefilter_guess {
  Value magnitude = 0; ///< none yet when 0

  /// Learns from a search: k values reach `threshold`, and `count` values reached the guess; `count` is k if the guess
  /// failed. Between two magnitudes the tail of gradients is about a power law.
  void learn(Value threshold, std::int64_t k, std::int64_t count) {
    double exponent = 3; // of a typical tail, if the two do not tell
    if (magnitude > 0 && magnitude < threshold && count > k) {
      exponent = std::log(static_cast<double>(count) / static_cast<double>(k)) /
                 std::log(double(threshold) / double(magnitude));
    }
    double const factor = std::pow(1.25, -1 / exponent);
    magnitude = static_cast<Value>(double(threshold) * std::clamp(factor, 0.5, 0.9999));
  }

  bool operator==(prefilter_guess const&) const = default;
};

/// The guess of several ranks, the same on all of them: patterns of magnitudes around the last k-th one.
template <gradient_value Value>
struct bracket_guess {
  Value magnitude = 0;            ///< the last k-th
  signed_bits_of<Value> bits = 0; ///< 2^bits patterns; none yet when 0

  /// The widest range that is worth a guess: half of the exponents of float, an eighth of those of double.
  static constexpr int most_bits = magnitude_bit_count<Value> - 7;

  /// The range in which the k-th magnitude is searched: as wide around the last one as its recent moves require.
  magnitude_range<Value> range() const {
    bits_of<Value> const middle = magnitude_bits(magnitude);
    int const width = std::min(static_cast<int>(bits), magnitude_bit_count<Value> - 1);
    bits_of<Value> const reach = bits_of<Value>(1) << (width - 1);
    return {middle > reach ? middle - reach : 0, width};
  }

  /// Learns from a search: the range widens at once to four times the last move, and narrows by one bit a search.
  void learn(bits_of<Value> found) {
    constexpr int least = 12;
    bits_of<Value> const last = magnitude_bits(magnitude);
    bits_of<Value> const moved = found > last ? found - last : last - found;
    int const wide = std::clamp(static_cast<int>(std::bit_width(moved)) + 3, least, most_bits);
    int const kept = bits > 0 ? std::min(static_cast<int>(bits) - 1, most_bits) : most_bits;
    magnitude = magnitude_from_bits<Value>(found);
    bits = static_cast<signed_bits_of<Value>>(std::max(wide, kept));
  }

  bool operator==(bracket_guess const&) const = default;
};

/// The part of a selector's state with which the next exact search begins. A search of one rank uses one of the two
/// guesses, a search of several ranks the other.
template <gradient_value Value>
struct search_guess {
  prefilter_guess<Value> prefilter;
  bracket_guess<Value> bracket;

  /// True if a search can have left this state.
  bool is_sound() const {
    return is_finite_magnitude(prefilter.magnitude) && is_finite_magnitude(bracket.magnitude) && bracket.bits >= 0 &&
           bracket.bits <= bracket_guess<Value>::most_bits;
  }

  /// Only ranks that search together compare their guesses.
  void list_facts(agreement& terms) const {
    terms.fact("guess", bracket.magnitude).fact("range of the guess", bracket.bits);
    terms.fact("guess of one rank", prefilter.magnitude); // the same, too: a search of several ranks does not change it
  }

  bool operator==(search_guess const&) const = default;

  /// For `save` and `load`.
  template <class Guess, class Visit>
  static void each_part(Guess& guess, Visit& visit) {
    visit(guess.prefilter.magnitude);
    visit(guess.bracket.magnitude);
    visit(guess.bracket.bits);
  }
};

/// Two magnitudes from a sample of the values. Zero where the sample is too small to tell.
template <gradient_value Value>
struct sampled_guess {
  Value safe = 0;   ///< very probably k values reach it
  Value likely = 0; ///< the k-th if the values are spread just as the sample is
};

/// The search for exactly min(k, candidates of the group) entries: the k largest, ties to the lower index.
///
/// Made for one selection, from its context; it keeps references to the parts of the context. Call one of `run`,
/// `select_all` and `select_above` once, and after it `threshold()`; or call one of the searches for a magnitude. The
/// result does not depend on any guess; only the cost does. Only kernels differ between a CPU and a device.
///
/// * One rank alone: guess, verify, refine (after arXiv 2604.22312). `write_near_guess` loads the source and gathers
///   the values that reach the guess, in one read; if they are at least k and not too many, it selects from these few.
///   A guess that fails costs another read, with a guess from a sample of the values themselves, and only if that fails
///   too (most values tie) all values are read again.
/// * Several ranks: `bracket` narrows the k-th magnitude down by histograms of a range around the last one, summed over
///   the group (and of all magnitudes if it has left that range). As soon as the bracket holds few candidates, all
///   ranks send theirs to each other, with the counts that they must know anyway; `decide` finds the k-th among them.
template <execution_space E, gradient_index Index, gradient_value Value, selection_group Group>
class exact_search {
public:
  using candidates_type = candidates<Index, Value, typename E::memory_space>;
  using bits_type = bits_of<Value>;
  using selection_type = selection<Index, Value, typename E::memory_space>;

  explicit exact_search(selection_context<E, Index, Value, Group> const& context)
      : exec_(context.exec), k_(context.k), group_(context.group), workspace_(context.workspace) {}

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
    return select(from, k_ > 0 ? kth_magnitude(from, k_) : kth<Value>{});
  }

  /// Selects from candidates of one rank that are at least k and all reach `least`.
  selection_type select_above(candidates_type from, Value least) { return select(from, kth_near(from, least)); }

  /// The pattern of the k-th magnitude, once a selection has found it.
  bits_type threshold() const { return threshold_; }

  /// Brackets the `wanted`-th largest magnitude of the group's candidates, until at most `enough` of them are inside.
  ///
  /// By radix on the bit pattern of |x|: digit by digit from the top, a histogram of the candidates that share the
  /// digits found so far decides the next one. No sort, no copy of the values, any magnitudes (denormal, infinite, NaN)
  /// ordered as their patterns are. Reads the candidates once a digit: 3 times (float) with the 12 bits of `one_rank`.
  /// Sends one histogram a digit through `group.sum`. If there are fewer candidates than `wanted`, which is positive,
  /// all are wanted.
  ///
  /// A narrower range, the same on all ranks of the group, takes fewer digits. If the magnitude is not in it (or is its
  /// last pattern), it is not found, on any rank.
  kth_bracket<Value> bracket(candidates_type from, std::int64_t wanted, magnitude_range<Value> range,
                             std::int64_t enough) {
    bool const whole = range.bits == magnitude_bit_count<Value>;
    int const digit_bits = std::min(group_.kth_digit_bits(wanted, range.bits), widest_digit<E>);
    std::int64_t const most_bins = std::int64_t(1) << digit_bits;
    // Reserves for one rank's widest digit at once: a search among few candidates can come before one among many.
    reserve_digit(exec_, Group::alone ? std::max<std::int64_t>(most_bins, 1 << 12) : most_bins, workspace_);

    kth_bracket<Value> result;
    digit<Value> which{range, 0, 0, 0};
    bool at_the_end = !whole;
    for (int left = range.bits; left > 0 && (left == range.bits || at_the_end || result.inside_total > enough);
         left = which.shift) {
      which.width = std::min(digit_bits, left);
      which.shift = left - which.width;
      std::int64_t const bins = which.bins();
      count_digit(exec_, from.values, which, workspace_);
      workspace_.numbers.to_host(exec_, bins, "oktopk::select::bracket");
      std::int64_t* const mine = workspace_.numbers.host();
      std::int64_t* const all = mine + most_bins;
      std::copy(mine, mine + bins, all);
      group_.sum(std::span<std::int64_t>(all, static_cast<std::size_t>(bins)));
      if (left == range.bits) {
        std::int64_t const reaching = std::accumulate(all, all + bins, std::int64_t(0));
        if (!whole && reaching < wanted) {
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
      // The last place of a range also stands for all patterns above.
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

  /// The `wanted`-th largest magnitude of one rank's candidates, by histograms of all of them.
  kth<Value> kth_magnitude(candidates_type from, std::int64_t wanted) {
    auto const found = bracket(from, wanted, magnitude_range<Value>{}, 0);
    return {found.floor, found.inside, found.wanted};
  }

private:
  static std::int64_t sample_size(std::int64_t values) { return std::min<std::int64_t>(values, 1 << 15); }

  /// The most candidates that a guess may leave.
  std::int64_t candidate_limit() const { return 2 * k_ + 1024; }

  /// The most candidates that may reach a guess: at least the size of a sample, because the workspace has had room for
  /// that.
  std::int64_t most_near_guess(std::int64_t candidates) const {
    return std::max(candidate_limit(), sample_size(candidates));
  }

  /// Two guesses from a sample: the same values give the same guesses. Overwrites the entries in the workspace.
  template <selection_source Source>
  sampled_guess<Value> guess_from_sample(Source const& source) {
    std::int64_t const samples = sample_size(source.size());
    workspace_.reserve(exec_, samples);
    Kokkos::parallel_for("oktopk::select::sample", index_range<E>(exec_, 0, samples),
                         sample_copying<Source>{source, source.size() / samples, workspace_.values.data()});
    double const expected = static_cast<double>(k_) * static_cast<double>(samples) / static_cast<double>(source.size());
    candidates_type const sample(workspace_.entries(samples));
    auto const at = [&](double rank) {
      auto const whole = std::max<std::int64_t>(static_cast<std::int64_t>(rank), 1);
      return whole >= samples ? Value(0) : magnitude_from_bits<Value>(kth_magnitude(sample, whole).threshold);
    };
    // Four standard deviations on the safe side: too many candidates cost little, too few another pass.
    return {at(expected + 4 * std::sqrt(expected) + 4), at(expected + 0.5)};
  }

  /// The k-th magnitude of one rank's candidates, at less cost if it is one of the 2^bits patterns from that of a guess
  /// on. After a prefilter it is no more than about twice as large, which takes one digit less; if very many values
  /// tie, it is the guess itself.
  kth<Value> kth_near(candidates_type from, Value guess, int bits = std::numeric_limits<Value>::digits) {
    auto const bracketed = bracket(from, k_, {magnitude_bits(guess), bits}, 0);
    return bracketed.found ? kth<Value>{bracketed.floor, bracketed.inside, bracketed.wanted} : kth_magnitude(from, k_);
  }

  /// Loads the whole source and writes the k largest of it if at least k and at most `most` candidates reach the guess;
  /// on a device, where kernels find the k-th magnitude, if that is no more than about twice as large, too. Earlier
  /// uses of the buffers have no influence, so that the same state gives the same guesses.
  template <selection_source Source>
  written_selection<Value> write_near_guess(Source const& source, Value guess, std::int64_t most) {
    if constexpr (is_device<E>) {
      return select_near_guess_on_device(exec_, source, k_, guess, most, workspace_);
    } else {
      workspace_.reserve(exec_, most);
      std::int64_t const count = compact(exec_, source, magnitude_bits(guess), workspace_);
      written_selection<Value> written;
      if (k_ <= count && count <= most) {
        workspace_.swap_buffers();
        candidates_type const few(workspace_.previous(count));
        written = write(few, kth_near(few, guess));
        written.found = true;
        written.threshold = threshold_;
      }
      written.count = count;
      return written;
    }
  }

  template <selection_source Source>
  selection_type run_alone(Source const& source, prefilter_guess<Value>& guess) {
    if (k_ <= 0 || candidate_limit() >= source.size()) {
      source.materialize(exec_);
      return select_all(source.materialized());
    }
    sampled_guess<Value> sampled;
    if (guess.magnitude <= 0) {
      sampled = guess_from_sample(source);
      guess.magnitude = sampled.safe;
    }
    std::int64_t const most = most_near_guess(source.size());
    auto tried = write_near_guess(source, guess.magnitude, most);
    auto const values = source.materialized();
    auto const failed = [&] { return tried.count < k_ || tried.count > most; };
    if (failed() && sampled.likely <= 0) {
      sampled = guess_from_sample(values);
      guess.magnitude = sampled.safe;
      tried = write_near_guess(values, guess.magnitude, most);
    }
    selection_type result;
    if (tried.found) {
      threshold_ = tried.threshold;
      result = result_of(tried, group_.gather_counts(tried.kept));
    } else {
      result = select(values, failed() ? kth_near(values, sampled.likely, 1) : kth_magnitude(values, k_));
    }
    guess.learn(magnitude_from_bits<Value>(threshold_), k_, failed() ? k_ : tried.count);
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
      found = bracket(from, k_, guess.range(), enough);
    }
    if (!found.found) {
      found = bracket(from, k_, magnitude_range<Value>{}, enough);
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
    kth<Value> const decided = decide<Value>(found, rows, width, group_.rank(), workspace_.undecided);
    auto const written = write(from, decided);
    guess.learn(decided.threshold);
    return result_of(written, group_.adopt_counts(rows, width));
  }

  selection_type select(candidates_type from, kth<Value> found) {
    auto const written = k_ > 0 ? write(from, found) : written_selection<Value>{};
    return result_of(written, group_.gather_counts(written.kept));
  }

  written_selection<Value> write(candidates_type from, kth<Value> found) {
    threshold_ = found.threshold;
    return write_above_threshold(exec_, from, found.threshold, found.ties_to_write(), k_, workspace_);
  }

  selection_type result_of(written_selection<Value> const& written, std::span<std::int64_t const> counts) const {
    return {workspace_.entries(written.kept), counts, true, written.checked, written.not_finite};
  }

  E const& exec_;
  std::int64_t k_;
  Group& group_;
  selection_workspace<Index, Value, E>& workspace_;
  bits_type threshold_ = 0;
};

/// Searches of one rank alone; the free functions are for callers that are no selectors.
template <execution_space E, gradient_index Index, gradient_value Value>
using search_alone = exact_search<E, Index, Value, one_rank>;

/// The k largest candidates, by histograms of all; ascending, until the next use of the workspace. k must be positive.
template <execution_space E, gradient_index Index, gradient_value Value>
sparse_ref<Index, Value, typename E::memory_space>
largest_entries(E const& exec, candidates<Index, Value, typename E::memory_space> from, std::int64_t k,
                selection_workspace<Index, Value, E>& workspace) {
  one_rank alone;
  return search_alone<E, Index, Value>({exec, k, 0, alone, workspace}).select_all(from).entries;
}

/// Makes room for `largest_entries`, so that the search of k among up to `most` entries allocates nothing.
template <execution_space E, gradient_index Index, gradient_value Value>
void reserve_for_largest(E const& exec, [[maybe_unused]] std::int64_t most, std::int64_t k,
                         selection_workspace<Index, Value, E>& workspace) {
  workspace.reserve(exec, k);
  if (workspace.numbers.device().extent(0) == 0) { // a search among none makes room for histograms
    largest_entries<E, Index, Value>(exec, {}, 1, workspace);
  }
  if constexpr (is_device<E>) {
    reserve_on_device(exec, most, workspace);
  }
}

/// The exact k-th largest magnitude, by histograms of all candidates; see `exact_search::bracket`. k must be positive.
template <execution_space E, gradient_index Index, gradient_value Value>
kth<Value> kth_magnitude(E const& exec, candidates<Index, Value, typename E::memory_space> from, std::int64_t k,
                         selection_workspace<Index, Value, E>& workspace) {
  one_rank alone;
  return search_alone<E, Index, Value>({exec, k, 0, alone, workspace}).kth_magnitude(from, k);
}

} // namespace oktopk::detail

namespace oktopk {

/// Exactly k entries every time: the k largest magnitudes, ties to the lower index.
///
/// One rank alone reads its values little more than once, and not again to form the accumulator; several ranks sum one
/// histogram where the k-th magnitude moves as gradients do. `detail::exact_search` says how. The result does not
/// depend on the guess that is carried from call to call.
struct exact : selector_base {
  struct options {};

  template <gradient_value Value>
  struct state {
    detail::search_guess<Value> guess;

    bool is_sound(std::int64_t) const { return guess.is_sound(); }
    void list_facts(agreement& terms) const { guess.list_facts(terms); }
    bool operator==(state const&) const = default;

    /// For `save` and `load`.
    template <class State, class Visit>
    static void each_part(State& carried, Visit& visit) {
      detail::search_guess<Value>::each_part(carried.guess, visit);
    }
  };

  exact() : exact(options{}) {}
  explicit exact(options) {}

  static std::string name() { return "exact"; }
  std::string describe() const { return name(); }
  std::string problem() const { return {}; }
  bool bounded() const { return true; }
  selection_promises promises() const { return {.rule = describe(), .low = 1, .high = 1, .largest = true}; }

  std::int64_t capacity(std::int64_t k, std::int64_t) const { return k; }

  template <execution_space E, gradient_index Index, gradient_value Value, selection_group Group,
            selection_source Source>
  selection<Index, Value, typename E::memory_space> select(selection_context<E, Index, Value, Group> const& context,
                                                           Source const& source, state<Value>& carried) const {
    detail::exact_search<E, Index, Value, Group> search(context);
    return search.run(source, carried.guess);
  }
};

} // namespace oktopk
