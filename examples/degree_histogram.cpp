// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Degrees of a graph whose edges are dealt to the ranks: the sum of what each rank counts, in whole numbers, of which each
// rank keeps a region that is as full as those of the others. Four ranks in one process; checks itself.
#include <oktopk/sparse_sum.hpp>

#include <cstdint>
#include <cstdio>
#include <map>
#include <utility>
#include <vector>

namespace {

using space = Kokkos::DefaultExecutionSpace;
using memory = space::memory_space;

constexpr std::int64_t vertices = std::int64_t(1) << 20; // of which few have an edge
constexpr int edges_of_rank = 5000;

/// Both ends of the edges of a rank: some vertices have many edges.
std::vector<std::int64_t> ends_of(int rank) {
  std::vector<std::int64_t> ends;
  std::uint64_t state = 99U + static_cast<std::uint64_t>(rank);
  for (int i = 0; i < 2 * edges_of_rank; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    auto const vertex = static_cast<std::int64_t>(state >> 44U); // of 2^20
    ends.push_back(i % 3 == 0 ? vertex % 100 * 10007 : vertex);
  }
  return ends;
}

int run(oktopk::in_process_communicator comm) {
  using policies = oktopk::scatter_policies<std::int64_t, std::int64_t>;
  oktopk::sparse_reduce_scatter<space, oktopk::in_process_communicator, policies> sum(space(), comm,
                                                                                      {.length = vertices});
  auto const ends = ends_of(comm.rank());
  Kokkos::View<std::int64_t*, memory> const indices("indices", ends.size());
  Kokkos::View<std::int64_t*, memory> const ones("ones", ends.size());
  auto const host_indices = Kokkos::create_mirror_view(indices);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    host_indices(i) = ends[i];
  }
  Kokkos::deep_copy(indices, host_indices);
  Kokkos::deep_copy(ones, std::int64_t(1));
  auto const& own = sum(indices, ones);
  auto const found = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), own.indices());
  auto const degrees = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), own.values());

  std::map<std::int64_t, std::int64_t> expected;
  for (int rank = 0; rank < comm.size(); ++rank) {
    for (std::int64_t const end : ends_of(rank)) {
      if (end >= own.own_region().begin && end < own.own_region().end) {
        expected[end] += 1;
      }
    }
  }
  bool right = found.extent(0) == expected.size();
  std::size_t at = 0;
  std::map<std::int64_t, int> histogram; // vertices of each degree
  for (auto const& [vertex, degree] : expected) {
    right = right && found(at) == vertex && degrees(at) == degree;
    histogram[degree] += 1;
    at += 1;
  }
  std::printf("rank %d: %zu vertices of degree 1 to %lld, %s\n", comm.rank(), found.extent(0),
              static_cast<long long>(histogram.empty() ? 0 : histogram.rbegin()->first), right ? "right" : "wrong");
  return right ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard const kokkos(argc, argv);
  int failures = 0;
  oktopk::in_process::run(4, [&](oktopk::in_process_communicator comm) { failures += run(comm); });
  return failures;
}
