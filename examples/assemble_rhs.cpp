// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A right-hand side assembled by elements: each rank has elements of a grid, adds to the nodes of each, and nodes on a border
// belong to one of several ranks that contribute. No plan of who sends to whom. Six ranks in one process; checks itself.
#include <oktopk/sparse_sum.hpp>

#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

using space = Kokkos::DefaultExecutionSpace;
using memory = space::memory_space;

constexpr std::int64_t side = 60; // elements of a side of the grid; nodes are one more

std::int64_t node(std::int64_t x, std::int64_t y) {
  return y * (side + 1) + x;
}

/// The first row of elements of a rank, and so the first row of nodes that it owns.
std::int64_t first_row(int rank, int ranks) {
  return side * rank / ranks;
}

int run(oktopk::in_process_communicator comm) {
  using counted = oktopk::counted<oktopk::in_process_communicator>;
  counted counting(comm);
  int const ranks = comm.size();
  std::vector<std::int64_t> owners; // rows of nodes, one after the other
  for (int rank = 0; rank < ranks; ++rank) {
    owners.push_back(node(0, first_row(rank, ranks)));
  }
  owners.push_back(node(0, side + 1));
  using policies = oktopk::owner_policies<double, std::int64_t>;
  oktopk::sparse_reduce<space, counted, policies> assemble(space(), counting,
                                                           {.length = owners.back(), .boundaries = owners});

  // Each element adds a quarter to each of its four nodes: a node is given as often as elements meet there.
  std::vector<std::int64_t> nodes;
  for (std::int64_t y = first_row(comm.rank(), ranks); y < first_row(comm.rank() + 1, ranks); ++y) {
    for (std::int64_t x = 0; x < side; ++x) {
      nodes.insert(nodes.end(), {node(x, y), node(x + 1, y), node(x, y + 1), node(x + 1, y + 1)});
    }
  }
  Kokkos::View<std::int64_t*, memory> const indices("indices", nodes.size());
  Kokkos::View<double*, memory> const values("values", nodes.size());
  auto const host_indices = Kokkos::create_mirror_view(indices);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    host_indices(i) = nodes[i];
  }
  Kokkos::deep_copy(indices, host_indices);
  Kokkos::deep_copy(values, 0.25);

  counting.reset();
  auto const& own = assemble(indices, values);
  auto const found = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), own.indices());
  auto const sums = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), own.values());
  auto const rank = static_cast<std::size_t>(comm.rank());
  int wrong = found.extent(0) == static_cast<std::size_t>(owners[rank + 1] - owners[rank]) ? 0 : 1;
  for (std::size_t i = 0; i < found.extent(0); ++i) {
    std::int64_t const x = found(i) % (side + 1);
    std::int64_t const y = found(i) / (side + 1);
    double const expected = (x == 0 || x == side ? 0.5 : 1.0) * (y == 0 || y == side ? 0.5 : 1.0);
    wrong += found(i) == owners[rank] + static_cast<std::int64_t>(i) && sums(i) == expected ? 0 : 1;
  }
  std::printf("rank %d: %zu nodes of its own, %d wrong; %lld messages of entries for %d other ranks\n", comm.rank(),
              found.extent(0), wrong, static_cast<long long>(counting.of_phase(oktopk::phase::reduce).messages_sent),
              ranks - 1);
  return wrong == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard const kokkos(argc, argv);
  int failures = 0;
  oktopk::in_process::run(6, [&](oktopk::in_process_communicator comm) { failures += run(comm); });
  return failures;
}
