// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/collectives.hpp>
#include <oktopk/exchange/allgatherv.hpp>
#include <oktopk/exchange/fault_report.hpp>
#include <oktopk/select/concept.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace oktopk {

/// Room that a global selection keeps between calls.
template <execution_space E, communicator Comm, sparse_format Format>
struct global_scope_workspace {
  std::vector<std::int64_t> sizes; ///< what each rank selected, after `share`
  std::vector<std::uint16_t> narrow;
  std::vector<std::uint32_t> wide;
  collective_workspace collective;
  allgatherv<E, Comm, Format> gathering;
};

/// All ranks, each with the sums of its own region: the scope of a global selection.
///
/// A sum of c counts costs about log2 P messages of c half words, words or double words, as narrow as all ranks'
/// candidates together allow; `before` and `share` send 2(P-1) words each. A fault that a rank reports travels with
/// `share`, which then throws on every rank.
template <execution_space E, communicator Comm, sparse_format Format>
class global_scope {
public:
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;
  using entries_type = sparse_ref<index_type, value_type, typename E::memory_space>;

  /// `most_candidates`: no more than these on all ranks together; the same on every rank.
  global_scope(Comm& comm, std::int64_t most_candidates, std::int64_t length, std::string_view algorithm,
               fault_report mine, global_scope_workspace<E, Comm, Format>& workspace)
      : comm_(&comm), most_candidates_(most_candidates), length_(length), algorithm_(algorithm), mine_(mine),
        workspace_(&workspace) {}

  static constexpr bool alone = false;

  /// The fewest digits whose histograms cost no more than k/16 words, for each digit is a round of messages. Where all
  /// cost more, the widest that cost no more than 3k/8 (k/8 where the search is in a range, which may be in vain), so
  /// that an iteration that searches all magnitudes keeps the bound of the others; 8 bits at most then, and 4 at least.
  int kth_digit_bits(std::int64_t k, int bits) const {
    constexpr int all = detail::magnitude_bit_count<value_type>;
    for (int digits = 1; digits <= 4; ++digits) {
      int const width = (bits + digits - 1) / digits;
      if (width <= 12 && histogram_words(bits, width) <= k / 16) {
        return width;
      }
    }
    for (int width = 8; width > 4; --width) {
      if (histogram_words(bits, width) <= (bits < all ? k / 8 : 3 * k / 8)) {
        return width;
      }
    }
    return 4;
  }

  void sum(std::span<std::int64_t> counts) {
    if (comm_->size() == 1) {
      return;
    }
    switch (count_bytes()) {
    case 2: sum_as(counts, workspace_->narrow); break;
    case 4: sum_as(counts, workspace_->wide); break;
    default: allreduce_integers(*comm_, counts, reduction::sum, phase::threshold, workspace_->collective);
    }
  }

  std::int64_t before(std::int64_t count) {
    gather_number(static_cast<std::uint64_t>(count), phase::threshold);
    return std::accumulate(workspace_->sizes.begin(), workspace_->sizes.begin() + comm_->rank(), std::int64_t(0));
  }

  std::int64_t share(std::int64_t count) {
    gather_number((mine_ ? mine_ : fault_report{fault::none, count}).packed(), phase::control);
    for (std::size_t rank = 0; rank < workspace_->sizes.size(); ++rank) {
      auto const report = fault_report::unpacked(static_cast<std::uint64_t>(workspace_->sizes[rank]));
      if (report) {
        throw report.as_error(std::string(algorithm_), static_cast<int>(rank), length_);
      }
    }
    return std::accumulate(workspace_->sizes.begin(), workspace_->sizes.end(), std::int64_t(0));
  }

  /// All candidates of all ranks, as the paper re-evaluates (Algorithm 1, line 10). Collective; sends all of them.
  entries_type gather(E const& exec, candidates<index_type, value_type, typename E::memory_space> from) {
    gather_number(static_cast<std::uint64_t>(from.size()), phase::threshold);
    return workspace_->gathering.run(exec, *comm_, {from.indices.data(), from.values.data(), from.size()},
                                     std::span<std::int64_t const>(workspace_->sizes), length_);
  }

private:
  std::int64_t histogram_words(int bits, int width) const {
    std::int64_t const messages = detail::levels(comm_->size());
    return messages * ((bits + width - 1) / width) * (std::int64_t(1) << width) * count_bytes() / 4;
  }

  std::int64_t count_bytes() const {
    if (most_candidates_ <= std::numeric_limits<std::uint16_t>::max()) {
      return 2;
    }
    return most_candidates_ <= std::numeric_limits<std::uint32_t>::max() ? 4 : 8;
  }

  template <class Count>
  void sum_as(std::span<std::int64_t> counts, std::vector<Count>& converted) {
    converted.resize(counts.size());
    std::transform(counts.begin(), counts.end(), converted.begin(),
                   [](std::int64_t c) { return static_cast<Count>(c); });
    allreduce_integers(*comm_, std::span<Count>(converted), reduction::sum, phase::threshold, workspace_->collective);
    std::copy(converted.begin(), converted.end(), counts.begin());
  }

  void gather_number(std::uint64_t number, phase use) {
    auto const mine = static_cast<std::int64_t>(number);
    workspace_->sizes.resize(static_cast<std::size_t>(comm_->size()));
    allgather(*comm_, std::span<std::int64_t const>(&mine, 1), std::span<std::int64_t>(workspace_->sizes), use,
              workspace_->collective);
  }

  Comm* comm_;
  std::int64_t most_candidates_;
  std::int64_t length_;
  std::string_view algorithm_;
  fault_report mine_;
  global_scope_workspace<E, Comm, Format>* workspace_;
};

} // namespace oktopk
