// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A first sparse allreduce, without MPI: four ranks in one process. With oktopk installed in $HOME/.local, from the folder
// of the repository:
//
//   g++ -O2 examples/first.cpp $(pkg-config --cflags --libs $HOME/.local/lib/pkgconfig/oktopk.pc) -o first
//
// Each rank has a gradient of 1,000 values, and sends its 10 largest. The 10 largest sums arrive on all ranks.

#include <oktopk/allreduce.hpp>

#include <cmath>
#include <cstdio>

using space = Kokkos::DefaultExecutionSpace;

void run(oktopk::in_process_communicator ranks) {
  oktopk::counted comm(ranks);
  oktopk::ok_topk allreduce(space(), comm, {.length = 1000, .k = 10});

  // A wave with a peak at index 500 on all ranks, and a smaller one that each rank has alone.
  Kokkos::View<float*, space> const gradient("gradient", 1000);
  auto const host = Kokkos::create_mirror_view(gradient);
  for (int i = 0; i < 1000; ++i) {
    float const own = static_cast<float>(i - 200 * ranks.rank()) / 20;
    float const common = static_cast<float>(i - 500) / 20;
    host(i) = std::exp(-common * common) + 0.5F * std::exp(-own * own);
  }
  Kokkos::deep_copy(gradient, host);

  auto const& update = allreduce(gradient);

  if (ranks.rank() == 0) {
    auto const indices = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), update.indices());
    auto const sums = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), update.values());
    for (std::size_t i = 0; i < sums.extent(0); ++i) {
      std::printf("sum at index %d: %.4f\n", indices(i), sums(i));
    }
    std::printf("%.0f words sent by rank 0; a dense allreduce sends %d\n", comm.total().words_sent(), 2 * 1000 * 3 / 4);
  }
}

int main(int argc, char** argv) {
  Kokkos::ScopeGuard const kokkos(argc, argv);
  oktopk::in_process::run(4, run);
}
