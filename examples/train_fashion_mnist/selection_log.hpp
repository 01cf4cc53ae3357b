// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/mpi.hpp>

#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

namespace fashion {

/// How many entries were selected in each iteration, on each rank and in the result: what the paper's Figure 6 shows.
/// The ranks compare notes once, after the training, so that the log costs no message in between.
class selection_log {
public:
  explicit selection_log(bool wanted) : wanted_(wanted) {}

  /// Makes room for a run, so that the training does not.
  void reserve(std::int64_t iterations);

  /// The next iteration.
  void add(std::int64_t local, std::int64_t global);

  /// The numbers of this rank so far, for checkpoints: two vectors of one length, empty where no log is wanted.
  std::vector<std::int64_t> const& local() const { return local_; }
  std::vector<std::int64_t> const& global() const { return global_; }
  void go_on_from(std::vector<std::int64_t> local, std::vector<std::int64_t> global) {
    local_ = std::move(local);
    global_ = std::move(global);
  }

  /// Collective. Brings the ranks' numbers together, on rank 0.
  void gather(oktopk::mpi_communicator& world);

  /// On rank 0, after `gather`: `iteration,k,local_mean,local_min,local_max,global`, a row per iteration. Throws
  /// std::runtime_error.
  void write(std::filesystem::path const& file, std::int64_t k) const;

private:
  bool wanted_;
  int ranks_ = 1;
  std::vector<std::int64_t> local_; // of this rank; on rank 0 the sum over ranks once they are gathered
  std::vector<std::int64_t> least_;
  std::vector<std::int64_t> most_;
  std::vector<std::int64_t> global_; // the same on all ranks
};

} // namespace fashion
