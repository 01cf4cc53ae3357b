// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/collectives.hpp>
#include <oktopk/core/fault_report.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/exchange/allgatherv.hpp>
#include <oktopk/select/group.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace oktopk {

/// The buffers of `all_ranks`, which outlive it: they hold the counts and entries that it returns.
template <execution_space E, communicator Comm, sparse_format Format>
struct all_ranks_workspace {
  std::vector<std::int64_t> counts; ///< what each rank has selected
  std::vector<std::int64_t> row;
  std::vector<std::int64_t> rows;
  std::vector<std::uint16_t> narrow;
  std::vector<std::uint32_t> wide;
  collective_workspace collective;
  allgatherv<E, Comm, Format> gathering;
};

/// All ranks, each with the sums of its own region: the group of a global selection.
///
/// A model of `gathering_group`, made for one selection. A sum of c counts costs about log2 P messages of c half words,
/// words or double words, as narrow as all ranks' candidates together allow; `gather_counts` sends 2(P-1) words, a row
/// of c numbers 2c(P-1). A fault of a rank travels with either, which then throws the same `error` on every rank: that
/// of the lowest faulty rank. What is returned lies in the workspace.
template <execution_space E, communicator Comm, sparse_format Format>
class all_ranks {
public:
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;
  using entries_type = sparse_ref<index_type, value_type, typename E::memory_space>;

  /// `most_candidates`: no more than these on all ranks together; the same on every rank.
  all_ranks(Comm& comm, std::int64_t most_candidates, std::int64_t length, std::string_view algorithm,
            fault_report mine, all_ranks_workspace<E, Comm, Format>& workspace)
      : comm_(&comm), most_candidates_(most_candidates), length_(length), algorithm_(algorithm), mine_(mine),
        workspace_(&workspace) {}

  static constexpr bool alone = false;

  /// The widest digit whose histogram costs no more than k/32 words, 12 bits at most and 4 at least. One is enough
  /// where the threshold moves as gradients do; all digits of a range and of all magnitudes cost no more than 3k/8.
  int kth_digit_bits(std::int64_t k, int bits) const {
    std::int64_t const messages = detail::ceil_log2(comm_->size());
    int width = std::min(bits, 12);
    while (width > 4 && messages * (std::int64_t(1) << width) * count_bytes() / 4 > k / 32) {
      width -= 1;
    }
    return width;
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

  int rank() const { return comm_->rank(); }

  /// The numbers that cost no more than k/16 words to gather, and 4 at least.
  std::int64_t affordable_row(std::int64_t k) const {
    std::int64_t const others = std::max(comm_->size() - 1, 1);
    return std::clamp<std::int64_t>(k / (std::int64_t(32) * others), 4, 4096);
  }

  std::span<std::int64_t const> gather_counts(std::int64_t count) {
    gather_number(count_or_fault(count), phase::control);
    throw_faults(workspace_->counts, 1);
    return workspace_->counts;
  }

  std::span<std::int64_t> gather_rows(std::span<std::int64_t const> row) {
    workspace_->row.assign(row.begin(), row.end());
    workspace_->row.front() = static_cast<std::int64_t>(count_or_fault(row.front()));
    workspace_->rows.resize(row.size() * static_cast<std::size_t>(comm_->size()));
    allgather(*comm_, std::span<std::int64_t const>(workspace_->row), std::span<std::int64_t>(workspace_->rows),
              phase::threshold, workspace_->collective);
    throw_faults(workspace_->rows, row.size());
    return workspace_->rows;
  }

  std::span<std::int64_t const> adopt_counts(std::span<std::int64_t const> rows, std::size_t width) {
    workspace_->counts.resize(static_cast<std::size_t>(comm_->size()));
    for (std::size_t rank = 0; rank < workspace_->counts.size(); ++rank) {
      workspace_->counts[rank] = rows[rank * width];
    }
    return workspace_->counts;
  }

  /// All candidates of all ranks, as the paper re-evaluates (Algorithm 1, line 10). Collective; sends all of them.
  entries_type gather(E const& exec, candidates<index_type, value_type, typename E::memory_space> from) {
    gather_number(static_cast<std::uint64_t>(from.size()), phase::threshold);
    return workspace_->gathering.run(exec, *comm_, {from.indices.data(), from.values.data(), from.size()},
                                     std::span<std::int64_t const>(workspace_->counts), length_);
  }

private:
  std::uint64_t count_or_fault(std::int64_t count) const {
    return (mine_ ? mine_ : fault_report{fault::none, count}).packed();
  }

  void throw_faults(std::span<std::int64_t const> rows, std::size_t width) const {
    for (std::size_t rank = 0; rank * width < rows.size(); ++rank) {
      auto const report = fault_report::unpacked(static_cast<std::uint64_t>(rows[rank * width]));
      if (report) {
        throw report.as_error(std::string(algorithm_), static_cast<int>(rank), length_);
      }
    }
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
    workspace_->counts.resize(static_cast<std::size_t>(comm_->size()));
    allgather(*comm_, std::span<std::int64_t const>(&mine, 1), std::span<std::int64_t>(workspace_->counts), use,
              workspace_->collective);
  }

  Comm* comm_;
  std::int64_t most_candidates_;
  std::int64_t length_;
  std::string_view algorithm_;
  fault_report mine_;
  all_ranks_workspace<E, Comm, Format>* workspace_;
};

} // namespace oktopk
