// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/options.hpp>
#include <oktopk/partition/balanced.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace oktopk {

namespace detail {

template <class Indices>
struct sample_lookup {
  Indices selected;
  std::int64_t count; ///< of `selected`, not 0
  std::int64_t samples;
  std::int64_t* found;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t j) const { // the middle of the j-th of even stretches
    std::int64_t const whole = count / samples;
    std::int64_t const rest = count % samples;
    found[j] = static_cast<std::int64_t>(selected[whole * j + whole / 2 + (rest * (2 * j + 1)) / (2 * samples)]);
  }
};

} // namespace detail

/// Regions that are even in what is there in this call: splitters from samples of every rank's entries (Shi and Schaeffer
/// 1992, parallel sorting by regular sampling).
///
/// Each rank gives the indices in the middles of s even stretches of its entries, s = 4P, but 32 at least and 128 at most.
/// All ranks then know how many entries lie below each sample, to half a stretch of each rank, and take each boundary
/// between two samples where the regions have the same count. So no region has more than (1 + 2P/s) times the mean, and
/// an entry for each rank that shares an index; a few percent more than the mean is usual. Costs one allgather: 2(s+1)(P-1)
/// words in ceil(log2 P) messages. Nothing is kept for the next call.
struct splitters : partitioner_base {
  struct options {
    template <class Options, class Visit>
    static void each_option(Options&, Visit&) {}
  };

  splitters() = default;
  explicit splitters(options) {}

  static std::string describe() { return "splitters"; }
  static std::string problem() { return {}; }
  static bool due(std::int64_t) { return true; }
  static double bound_words(int ranks, std::int64_t, bool) {
    return 2.0 * static_cast<double>(samples_of(ranks) + 1) * (ranks - 1);
  }

  template <execution_space E, communicator Comm>
  class step : public partitioner_base::step_base {
  public:
    explicit step(splitters const&) {}

    template <gradient_index Index>
    std::span<std::int64_t const> run(call_context<E, Comm>& call,
                                      array_ref<Index const, typename E::memory_space> const& selected,
                                      bool /*were_uneven*/ = false) {
      boundaries_.resize(static_cast<std::size_t>(call.comm.size()) + 1);
      detail::even_regions(call.length, boundaries_);
      if (call.comm.size() > 1) {
        gather(call, selected);
        count_below(call);
        detail::move_boundaries(known_, boundaries_, detail::place_of_even);
      }
      return boundaries_;
    }

  private:
    // A row for each rank: the number of its entries, and its samples.
    template <gradient_index Index>
    void gather(call_context<E, Comm>& call, array_ref<Index const, typename E::memory_space> const& selected) {
      using indices = array_ref<Index const, typename E::memory_space>;
      auto const count = static_cast<std::int64_t>(selected.extent(0));
      auto const samples = samples_of(call.comm.size());
      auto const width = static_cast<std::size_t>(samples) + 1;
      row_.assign(width, 0);
      row_[0] = count;
      if (count > 0) {
        found_.reserve(call.exec, samples);
        Kokkos::parallel_for("oktopk::splitters::samples", detail::index_range<E>(call.exec, 0, samples),
                             detail::sample_lookup<indices>{selected, count, samples, found_.device().data()});
        found_.to_host(call.exec, samples, "oktopk::splitters::samples");
        std::copy_n(found_.host(), samples, row_.begin() + 1);
      }
      rows_.resize(width * static_cast<std::size_t>(call.comm.size()));
      allgather(call.comm, std::span<std::int64_t const>(row_), std::span<std::int64_t>(rows_), phase::partition,
                collective_);
    }

    // The entries of all ranks below each sample. A rank has j + 1/2 stretches below its sample j, and as many as it has
    // samples, on average, below one of another rank. In halves of stretches, and so in integers, which are the same on
    // all ranks.
    void count_below(call_context<E, Comm>& call) {
      std::int64_t const samples = samples_of(call.comm.size());
      auto const width = static_cast<std::size_t>(samples) + 1;
      std::int64_t most = 0;
      for (std::size_t at = 0; at < rows_.size(); at += width) {
        most = std::max(most, rows_[at]);
        check(std::span(rows_).subspan(at, width), call.length);
      }
      int coarser = 0; // so that the sum of all has fewer bits than `place_of_even` takes
      while ((most >> coarser) > most_count / (2 * samples * call.comm.size())) {
        coarser += 1;
      }
      weighed_.clear();
      for (std::size_t at = 0; at < rows_.size(); at += width) {
        std::int64_t const weight = rows_[at] == 0 ? 0 : std::max<std::int64_t>(rows_[at] >> coarser, 1);
        for (std::size_t j = 1; j < width && weight > 0; ++j) {
          weighed_.push_back({rows_[at + j], weight});
        }
      }
      std::ranges::sort(weighed_, {}, &detail::known_count::index);
      known_.assign(1, {0, 0});
      std::int64_t below = 0;
      for (std::size_t i = 0; i < weighed_.size();) {
        std::int64_t const index = weighed_[i].index;
        std::int64_t here = 0;
        for (; i < weighed_.size() && weighed_[i].index == index; ++i) {
          here += weighed_[i].below;
        }
        if (index > 0) {
          known_.push_back({index, 2 * below + here});
        }
        below += here;
      }
      known_.push_back({call.length, 2 * below});
    }

    static void check(std::span<std::int64_t const> row, std::int64_t length) {
      auto const samples = row.subspan(1);
      if (row[0] < 0 || row[0] > length ||
          (row[0] > 0 &&
           (samples.front() < 0 || samples.back() >= length || !std::is_sorted(samples.begin(), samples.end())))) {
        throw error(fault::damaged_message,
                    "the samples of a rank do not ascend, or lie outside: a message was damaged");
      }
    }

    std::vector<std::int64_t> boundaries_;
    std::vector<std::int64_t> row_;
    std::vector<std::int64_t> rows_;
    std::vector<detail::known_count> weighed_; // samples, and the entries of a stretch
    std::vector<detail::known_count> known_;
    detail::shared_numbers<std::int64_t, E> found_{"oktopk::splitters::samples"};
    collective_workspace collective_;
  };

private:
  static constexpr std::int64_t most_count = (std::int64_t(1) << 43) - 1;

  static std::int64_t samples_of(int ranks) { return std::clamp<std::int64_t>(std::int64_t(4) * ranks, 32, 128); }
};

} // namespace oktopk
