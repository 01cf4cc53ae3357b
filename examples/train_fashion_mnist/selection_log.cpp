// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "selection_log.hpp"

#include "programs/pending_file.hpp"

#include <oktopk/comm/collectives.hpp>

#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <string>

namespace fashion {

namespace {

// The numbers of all ranks in one.
std::vector<std::int64_t> reduced(std::vector<std::int64_t> numbers, oktopk::reduction op,
                                  oktopk::mpi_communicator& world) {
  oktopk::collective_workspace workspace;
  oktopk::allreduce_integers(world, std::span(numbers), op, oktopk::phase::control, workspace);
  return numbers;
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

void selection_log::gather(oktopk::mpi_communicator& world) {
  ranks_ = world.size();
  least_ = reduced(local_, oktopk::reduction::min, world);
  most_ = reduced(local_, oktopk::reduction::max, world);
  local_ = reduced(local_, oktopk::reduction::sum, world);
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
