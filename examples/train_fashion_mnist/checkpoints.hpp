// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "measurements.hpp"
#include "report.hpp"

#include <oktopk/mpi.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fashion {

/// All that a rank needs to go on as if nothing had been. Order of images, learning rate and what is dumped follow from
/// the iteration.
struct training_state {
  std::int64_t iteration = 0;    ///< that was done last, counted from 1
  std::vector<float> parameters; ///< the same on all ranks
  std::vector<char> optimizer;   ///< checkpoint of the optimizer: residual, velocity, the algorithm's state
  measurements epoch;            ///< of the epoch under way
  report::story history;         ///< of those before
  std::vector<std::int64_t> local;
  std::vector<std::int64_t> global;
};

/// The checkpoints of a run: FILE says which iteration is saved, and each rank's state lies in FILE.ITERATION.RANK.
///
/// FILE is written last, in one piece, when the files of all ranks are on their disks; files of the iteration before it
/// are removed after that. So whenever ranks are killed, FILE names an iteration that all of them have saved. The files
/// of a rank need not be seen by another rank; FILE must be seen by rank 0.
class checkpoints {
public:
  /// Collective; does nothing for an empty name. `training` is what a run that goes on must have in common with the one
  /// before, in words. Throws `bad_file` on every rank where the folder cannot be written to.
  checkpoints(oktopk::mpi_communicator const& world, std::filesystem::path name, std::int64_t every,
              std::string training);

  /// Collective. What FILE names, or nothing where there is no FILE. Removes what an interrupted save has left. Throws
  /// `bad_file` on every rank, with the name of the file, where it is damaged, cut short, missing on a rank, no
  /// checkpoint, or that of another training.
  std::optional<training_state> newest();

  /// Whether to save after an iteration.
  bool due(std::int64_t iteration) const { return !name_.empty() && iteration % every_ == 0; }

  /// Collective. Throws `bad_file` on every rank where a rank cannot write; the checkpoint before stays what it is.
  void save(training_state state);

private:
  void add_over_ranks(std::vector<std::uint64_t>& numbers);
  std::filesystem::path file_of(std::int64_t iteration) const;
  void remove_all_but(std::int64_t iteration) const;

  oktopk::mpi_communicator world_;
  std::filesystem::path name_;
  std::int64_t every_;
  std::string training_;
};

} // namespace fashion
