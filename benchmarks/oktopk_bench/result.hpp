// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "programs/pending_file.hpp"

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace oktopk_bench {

using space = Kokkos::DefaultExecutionSpace;
using accumulator_view = Kokkos::View<float*, space::memory_space>;

/// What one rank got from one call, in host memory.
struct host_result {
  std::vector<std::int64_t> indices;
  std::vector<float> values;
  std::vector<std::int64_t> contributed;
  std::vector<std::int64_t> returned_indices;
  std::vector<float> returned_values;
};

/// A view's elements in host memory, as `To`.
template <class To, class View>
std::vector<To> on_host(View const& view) {
  auto const host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
  return std::vector<To>(host.data(), host.data() + host.extent(0));
}

template <class Update>
host_result result_of(Update const& update) {
  return {on_host<std::int64_t>(update.indices()), on_host<float>(update.values()),
          on_host<std::int64_t>(update.contributed()), on_host<std::int64_t>(update.returned().indices),
          on_host<float>(update.returned().values)};
}

/// Throws where a folder for dumps cannot be one, before anything has been computed; an absent one is made later.
void check_dump_folder(std::string const& folder);

/// Writes one rank's last result of one algorithm as raw little-endian arrays, and adds the files, which do not have
/// their names yet, to `pending`.
void write_dump(std::string const& folder, std::string const& algorithm, int rank, host_result const& result,
                std::vector<oktopk_programs::pending_file>& pending);

} // namespace oktopk_bench
