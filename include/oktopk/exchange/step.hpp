// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/call_context.hpp>
#include <oktopk/comm/collectives.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/format/concept.hpp>
#include <oktopk/select/kernel/non_finite.hpp>
#include <oktopk/sparse/region_sum.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

// The parts that several steps of an algorithm share.
namespace oktopk {

/// The most words of 4 bytes that one rank sends in a step.
struct word_bound {
  double entries = 0; ///< encoded entries, with the rounding of messages
  double control = 0; ///< headers, sizes, counts, histograms and boundaries

  double total() const { return entries + control; }

  friend word_bound operator+(word_bound const& a, word_bound const& b) {
    return {a.entries + b.entries, a.control + b.control};
  }
};

namespace detail {

/// Words that so many entries of a region take in so many messages, wherever they lie and however they are cut, at
/// most. The rounding of messages to 8 bytes is in it where the format leaves their sizes open.
template <sparse_format Format>
double split_words_at_most(Format const& format, int messages, double entries, region where) {
  if constexpr (Format::exact_size) {
    return entries * (sizeof(typename Format::index_type) + sizeof(typename Format::value_type)) / 4;
  } else {
    auto const whole = static_cast<std::int64_t>(std::ceil(entries));
    auto const bytes = format.max_encoded_bytes(whole, where) + messages * (Format::bytes_per_cut + 8);
    return whole == 0 ? 0 : static_cast<double>(bytes) / 4;
  }
}

/// Throws `damaged_message` where a rank tells of more entries than its vector has: no room is made for them.
inline void check_counts(std::span<std::int64_t const> counts, std::int64_t length) {
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    if (counts[rank] < 0 || counts[rank] > length) {
      throw error(fault::damaged_message, "rank " + std::to_string(rank) + " tells of " + std::to_string(counts[rank]) +
                                              " entries of a vector of " + std::to_string(length));
    }
  }
}

/// The sums of a region; an overflow is noted in the call. Waits for the instance.
template <execution_space E, communicator Comm, gradient_index Index, gradient_value Value>
sparse_ref<Index, Value, typename E::memory_space> extract_sums(call_context<E, Comm>& call,
                                                                region_sum<Index, Value, E>& sum) {
  auto sums = sum.extract(call.exec);
  if constexpr (region_sum<Index, Value, E>::checks) {
    if (sum.not_finite() >= 0) {
      call.note({fault::non_finite, sum.not_finite(), fault_subject::sum});
    }
  } else {
    call.note(non_finite_in(call.exec, sums, fault_subject::sum));
  }
  return sums;
}

} // namespace detail

/// The number of entries of each rank, on all ranks.
///
/// 2(P-1) words in ceil(log2 P) messages. A fault that a rank has noted travels in the place of its number; then the
/// fault of the lowest faulty rank is thrown on every rank.
template <communicator Comm>
class count_gathering {
public:
  /// Collective. The counts, in rank order, are the same on all ranks and valid until the next run. Throws
  /// `damaged_message` where one is more than the length of the call, so that no room is made for it.
  template <execution_space E>
  std::span<std::int64_t const> run(call_context<E, Comm>& call, std::int64_t count, phase use = phase::control) {
    auto const mine = static_cast<std::int64_t>(call.header(count, use));
    counts_.resize(static_cast<std::size_t>(call.comm.size()));
    allgather(call.comm, std::span<std::int64_t const>(&mine, 1), std::span<std::int64_t>(counts_), use, collective_);
    call.hear_all(counts_, 1, use);
    detail::check_counts(counts_, call.length);
    return counts_;
  }

  static word_bound bound_words(int ranks) { return {0, 2.0 * (ranks - 1)}; }

private:
  std::vector<std::int64_t> counts_;
  collective_workspace collective_;
};

} // namespace oktopk
