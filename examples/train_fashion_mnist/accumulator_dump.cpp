// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "accumulator_dump.hpp"

#include "together.hpp"

#include "programs/pending_file.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace fashion {

static_assert(std::endian::native == std::endian::little, "the files are written as they lie in memory");

accumulator_dump::accumulator_dump(oktopk::mpi_communicator const& world, std::filesystem::path folder,
                                   std::vector<std::int64_t> iterations)
    : world_(world), folder_(std::move(folder)), iterations_(std::move(iterations)) {
  together(world_, "--dump", [this] {
    if (iterations_.empty()) {
      return;
    }
    std::error_code failure;
    std::filesystem::create_directories(folder_, failure);
    if (failure) {
      throw std::runtime_error("--dump " + folder_.string() + ": the folder cannot be made: " + failure.message());
    }
    oktopk_programs::pending_file{file(iterations_.front())}; // can be made, and vanishes again
  });
}

void accumulator_dump::operator()(std::int64_t iteration, const_vector const& accumulator) {
  if (std::find(iterations_.begin(), iterations_.end(), iteration) == iterations_.end()) {
    return;
  }
  together(world_, "--dump", [&] {
    auto const host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), accumulator);
    oktopk_programs::write_whole(file(iteration), std::as_bytes(std::span(host.data(), host.extent(0))));
  });
}

std::filesystem::path accumulator_dump::file(std::int64_t iteration) const {
  return folder_ / ("accumulator." + std::to_string(iteration) + "." + std::to_string(world_.rank()) + ".f32");
}

} // namespace fashion
