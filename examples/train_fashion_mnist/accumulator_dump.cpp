// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "accumulator_dump.hpp"

#include "agreement.hpp"
#include "output_file.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace fashion {

static_assert(std::endian::native == std::endian::little, "the files are written as they lie in memory");

accumulator_dump::accumulator_dump(MPI_Comm comm, std::filesystem::path folder, std::vector<std::int64_t> iterations)
    : comm_(comm), folder_(std::move(folder)), iterations_(std::move(iterations)) {
  MPI_Comm_rank(comm_, &rank_);
  on_every_rank(comm_, [this] {
    if (iterations_.empty()) {
      return;
    }
    std::error_code failure;
    std::filesystem::create_directories(folder_, failure);
    if (failure) {
      throw std::runtime_error("--dump " + folder_.string() + ": the folder cannot be made: " + failure.message());
    }
    require_writable(file(iterations_.front()));
  });
}

void accumulator_dump::operator()(std::int64_t iteration, const_vector const& accumulator) const {
  if (std::find(iterations_.begin(), iterations_.end(), iteration) == iterations_.end()) {
    return;
  }
  on_every_rank(comm_, [&] {
    auto const host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), accumulator);
    write_whole(file(iteration), std::as_bytes(std::span(host.data(), host.extent(0))));
  });
}

std::filesystem::path accumulator_dump::file(std::int64_t iteration) const {
  return folder_ / ("accumulator." + std::to_string(iteration) + "." + std::to_string(rank_) + ".f32");
}

} // namespace fashion
