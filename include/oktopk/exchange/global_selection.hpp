// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/call_context.hpp>
#include <oktopk/comm/collectives.hpp>
#include <oktopk/core/cost.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/exchange/allgatherv.hpp>
#include <oktopk/exchange/concept.hpp>
#include <oktopk/format/coo.hpp>
#include <oktopk/select/concept.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

namespace oktopk {

namespace detail {

/// A format for candidates, which are compared with a threshold: rounded ones would be counted wrongly.
template <sparse_format Format>
using candidate_format =
    std::conditional_t<Format::lossless, Format, coo<typename Format::value_type, typename Format::index_type>>;

/// All ranks, each with the sums of its own region: the group of a global selection.
///
/// A model of `gathering_group`. A sum of c counts costs about log2 P messages of c half words, words or double words,
/// as narrow as all ranks' candidates together allow; `gather_counts` sends 2(P-1) words, a row of c numbers 2c(P-1). A
/// fault of a rank travels with either, which then throws the same `error` on every rank: that of the lowest faulty
/// rank. Returned arrays lie in this object.
template <execution_space E, communicator Comm, sparse_format Format>
class all_ranks {
public:
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;
  using entries_type = sparse_ref<index_type, value_type, typename E::memory_space>;

  /// Begins a selection in a call; the call must outlive the selection. `most_candidates` is an upper bound of the
  /// candidates on all ranks together, the same on every rank.
  void begin(call_context<E, Comm>& call, std::int64_t most_candidates) {
    call_ = &call;
    most_candidates_ = most_candidates;
    gathered_ = 0;
  }

  static constexpr bool alone = false;

  /// The widest digit whose histogram costs no more than k/32 words, 12 bits at most and 4 at least. One digit is
  /// enough if the threshold moves as gradients do; all digits of a range and of all magnitudes cost no more than 3k/8.
  int kth_digit_bits(std::int64_t k, int bits) const {
    std::int64_t const messages = ceil_log2(call_->comm.size());
    int width = std::min(bits, 12);
    while (width > 4 && messages * (std::int64_t(1) << width) * count_bytes() / 4 > k / 32) {
      width -= 1;
    }
    return width;
  }

  void sum(std::span<std::int64_t> counts) {
    if (call_->comm.size() == 1) {
      return;
    }
    switch (count_bytes()) {
    case 2: sum_as(counts, narrow_); break;
    case 4: sum_as(counts, wide_); break;
    default: allreduce_integers(call_->comm, counts, reduction::sum, phase::threshold, collective_);
    }
    // Later steps add these counts; the sums must not overflow.
    std::int64_t const most = std::min(most_candidates_, std::int64_t(1) << 50);
    if (std::any_of(counts.begin(), counts.end(), [most](std::int64_t c) { return c < 0 || c > most; })) {
      throw error(fault::damaged_message, "the ranks count more candidates than there can be");
    }
  }

  int rank() const { return call_->comm.rank(); }

  /// The length of a row that costs no more than k/16 words to gather, and 4 at least.
  std::int64_t affordable_row(std::int64_t k) const {
    std::int64_t const others = std::max(call_->comm.size() - 1, 1);
    return std::clamp<std::int64_t>(k / (std::int64_t(32) * others), 4, 4096);
  }

  std::span<std::int64_t const> gather_counts(std::int64_t count) { return gathering_counts_.run(*call_, count); }

  std::span<std::int64_t> gather_rows(std::span<std::int64_t const> row) {
    row_.assign(row.begin(), row.end());
    row_.front() = static_cast<std::int64_t>(call_->header(row.front(), phase::threshold));
    rows_.resize(row.size() * static_cast<std::size_t>(call_->comm.size()));
    allgather(call_->comm, std::span<std::int64_t const>(row_), std::span<std::int64_t>(rows_), phase::threshold,
              collective_);
    call_->hear_all(rows_, row.size(), phase::threshold);
    return rows_;
  }

  std::span<std::int64_t const> adopt_counts(std::span<std::int64_t const> rows, std::size_t width) {
    counts_.resize(static_cast<std::size_t>(call_->comm.size()));
    for (std::size_t rank = 0; rank < counts_.size(); ++rank) {
      counts_[rank] = rows[rank * width];
    }
    check_counts(counts_, call_->length);
    return counts_;
  }

  /// All candidates of all ranks, as in the paper's re-evaluation (Algorithm 1, line 10). Collective; sends all of
  /// them.
  entries_type gather(E const&, candidates<index_type, value_type, typename E::memory_space> from) {
    auto const sizes = gathering_counts_.run(*call_, from.size(), phase::threshold);
    gathered_ = std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0));
    return gathering_.run(*call_, {from.indices.data(), from.values.data(), from.size()}, sizes);
  }

  /// The bound for `candidates` candidates, or for those that the last selection has gathered if they are more, in
  /// `steps` steps.
  word_bound bound_of_gather(int ranks, std::int64_t length, std::int64_t candidates, std::int64_t steps) const {
    return gathering_.bound_words(ranks, length, static_cast<double>(std::max(candidates, gathered_) * steps),
                                  ranks - 1);
  }

private:
  std::int64_t count_bytes() const {
    if (most_candidates_ <= std::numeric_limits<std::uint16_t>::max()) {
      return 2;
    }
    return most_candidates_ <= std::numeric_limits<std::uint32_t>::max() ? 4 : 8;
  }

  template <class Count>
  void sum_as(std::span<std::int64_t> counts, std::vector<Count>& converted) {
    converted.assign(counts.begin(), counts.end());
    allreduce_integers(call_->comm, std::span<Count>(converted), reduction::sum, phase::threshold, collective_);
    std::copy(converted.begin(), converted.end(), counts.begin());
  }

  call_context<E, Comm>* call_ = nullptr;
  std::int64_t most_candidates_ = 0;
  std::vector<std::int64_t> counts_; // of the rows that were adopted
  std::vector<std::int64_t> row_;
  std::vector<std::int64_t> rows_;
  std::vector<std::uint16_t> narrow_;
  std::vector<std::uint32_t> wide_;
  std::int64_t gathered_ = 0; // the candidates of all ranks, where the last selection has gathered them
  collective_workspace collective_;
  count_gathering<Comm> gathering_counts_;
  encoded_allgatherv<E, Comm, candidate_format<Format>> gathering_;
};

template <class S, class E, class Comm, class Format>
concept selects_among_ranks =
    selects_from<S, E, typename Format::index_type, typename Format::value_type, all_ranks<E, Comm, Format>,
                 candidates<typename Format::index_type, typename Format::value_type, typename E::memory_space>>;

} // namespace detail

/// A selector for the sums of all ranks' regions together (Algorithm 1, lines 9 to 12).
///
/// As `selector`, in the group `all_ranks`: collective, with a state that is the same on all ranks. It need not serve a
/// rank that selects alone.
template <class S, class E, class Comm, class Format>
concept global_selector =
    std::copy_constructible<S> && detail::derives_from_selector_base<S> && detail::has_selector_options<S> &&
    detail::states_promises<S> && detail::carries_state<S> && detail::selects_among_ranks<S, E, Comm, Format>;

namespace detail {

/// Selection of the k largest of all sums, each rank from those of its own region (Algorithm 1, lines 9 to 12, and the
/// cut that the paper leaves to balance_and_allgatherv).
template <execution_space E, communicator Comm, sparse_format Format, class GlobalSelector>
  requires global_selector<GlobalSelector, E, Comm, Format>
class global_selection {
public:
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;
  using state_type = typename GlobalSelector::template state<value_type>;
  using selection_type = selection<index_type, value_type, typename E::memory_space>;

  explicit global_selection(GlobalSelector const& how) : selector_(how) {}

  GlobalSelector const& selector() const { return selector_; }

  /// Collective. Gives the entries of this rank's region and the counts of all ranks, valid until the next run. `state`
  /// is the same on all ranks, before and after. `most_selected`: the most entries that a rank has put into the sums,
  /// or nothing if that is not known; the same on every rank. A fault of a rank is thrown on every rank.
  selection_type run(call_context<E, Comm>& call, entries_of<Format, E> sums, state_type& state,
                     std::optional<std::int64_t> most_selected) {
    profiling_region const profiled("oktopk::global_selection");
    stopwatch const timed(call.statistics.select_seconds);
    std::int64_t const most = most_selected.value_or(call.length);
    constexpr std::int64_t endless = std::numeric_limits<std::int64_t>::max();
    std::int64_t const ranks = call.comm.size();
    std::int64_t const most_candidates = most > endless / ranks ? endless : most * ranks;
    all_ranks_.begin(call, most_candidates);
    selection_context<E, index_type, value_type, all_ranks<E, Comm, Format>> const context{
        call.exec, call.k, call.iteration, all_ranks_, workspace_};
    auto chosen = selector_.select(context, candidates<index_type, value_type, typename E::memory_space>(sums), state);
    call.statistics.global_reevaluated = chosen.reevaluated;
    found_ = chosen.total();
    return chosen;
  }

  /// The most entries that are selected: k, or the entries that the last call selected if they are more and the
  /// selector is not bounded.
  std::int64_t most_found(std::int64_t k) const { return selector_.bounded() ? k : std::max(k, found_); }

  /// At most k/2 for the histograms and candidates of a search, and twice the least cost of these: for a search in a
  /// range that fails, and then for one among all magnitudes. 12(P-1) for counts and candidates, and 2(P-1) more for a
  /// threshold that may have become stale. If candidates are gathered, the union of P selections of k, or the
  /// candidates of the last call if they are more, in each step of the allgatherv.
  word_bound bound_words(int ranks, std::int64_t length, std::int64_t k) const {
    if (ranks == 1) {
      return {};
    }
    std::int64_t const steps = ceil_log2(ranks);
    if (selector_.gathers_candidates()) {
      return word_bound{0, 4.0 * (ranks - 1)} +
             all_ranks_.bound_of_gather(ranks, length, k < length / ranks ? k * ranks : length, steps);
    }
    double const digits = 2 * (8.0 * sizeof(value_type) - 1) / 4;
    return {0, static_cast<double>(k) / 2 + (selector_.bounded() ? 12.0 : 14.0) * (ranks - 1) +
                   static_cast<double>(steps + 1) * (digits + 1) * 16 * 2};
  }

  /// One histogram of k/32 words or of a few words, and the counts; this rank reads the sums of its region once.
  static detail::call_cost expected_cost(int ranks, double sums, double k) {
    double const steps = doubling_steps(ranks);
    return {.messages = 2 * steps, .bytes = steps * (k / 8 + 64) + 8.0 * (ranks - 1), .selected = sums, .passes = 1};
  }

private:
  GlobalSelector selector_;
  std::int64_t found_ = 0;
  selection_workspace<index_type, value_type, E> workspace_;
  all_ranks<E, Comm, Format> all_ranks_;
};

} // namespace detail
} // namespace oktopk
