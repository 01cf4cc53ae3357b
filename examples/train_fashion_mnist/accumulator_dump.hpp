// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "types.hpp"

#include <oktopk/mpi.hpp>

#include <cstdint>
#include <filesystem>
#include <vector>

namespace fashion {

/// Writes the ranks' accumulators of chosen iterations to files that other programs can read:
/// `FOLDER/accumulator.ITERATION.RANK.f32`, raw little-endian float32.
class accumulator_dump {
public:
  /// Collective. Makes the folder and sees to it that every rank can write there; does nothing for an empty folder.
  accumulator_dump(oktopk::mpi_communicator const& world, std::filesystem::path folder,
                   std::vector<std::int64_t> iterations);

  /// Collective. Writes the accumulator if the iteration is one of the chosen.
  void operator()(std::int64_t iteration, const_vector const& accumulator);

private:
  std::filesystem::path file(std::int64_t iteration) const;

  oktopk::mpi_communicator world_;
  std::filesystem::path folder_;
  std::vector<std::int64_t> iterations_;
};

} // namespace fashion
