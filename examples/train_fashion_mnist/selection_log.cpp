// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "selection_log.hpp"

#include "programs/pending_file.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <string>

namespace fashion {

namespace {

// The numbers of all ranks in one, on rank 0.
std::vector<std::int64_t> reduced(std::vector<std::int64_t> const& mine, MPI_Op operation, MPI_Comm comm) {
  std::vector<std::int64_t> all(mine.size());
  MPI_Reduce(mine.data(), all.data(), static_cast<int>(mine.size()), MPI_INT64_T, operation, 0, comm);
  return all;
}

} // namespace

void selection_log::reserve(std::int64_t iterations) {
  if (wanted_) {
    local_.reserve(static_cast<std::size_t>(iterations));
    global_.reserve(static_cast<std::size_t>(iterations));
  }
}

void selection_log::add(std::int64_t local, std::int64_t global) {
  if (wanted_) {
    local_.push_back(local);
    global_.push_back(global);
  }
}

void selection_log::gather(MPI_Comm comm) {
  MPI_Comm_size(comm, &ranks_);
  least_ = reduced(local_, MPI_MIN, comm);
  most_ = reduced(local_, MPI_MAX, comm);
  local_ = reduced(local_, MPI_SUM, comm);
}

void selection_log::write(std::filesystem::path const& file, std::int64_t k) const {
  if (!wanted_) {
    return;
  }
  std::string text = "iteration,k,local_mean,local_min,local_max,global\n";
  for (std::size_t i = 0; i < local_.size(); ++i) {
    text += fmt::format("{},{},{:.2f},{},{},{}\n", i + 1, k, static_cast<double>(local_[i]) / ranks_, least_[i],
                        most_[i], global_[i]);
  }
  oktopk_programs::write_whole(file, text);
}

} // namespace fashion
