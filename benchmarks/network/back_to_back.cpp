// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The dense allreduces as Gloo's own benchmark measures Gloo's: calls back to back, without a barrier between them, the
// time of each on rank 0. For gloo.sh; takes of the options of oktopk_bench those that gloo.sh gives, and ignores
// others.

#include <oktopk/dense/halving_doubling.hpp>
#include <oktopk/dense/ring_chunked.hpp>
#include <oktopk/dense/ring_pipelined.hpp>
#include <oktopk/mpi.hpp>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

namespace {

using space = Kokkos::DefaultHostExecutionSpace;
using communicator = oktopk::mpi_communicator;

template <class Algorithm>
void measure(std::map<std::string, std::string> const& given) {
  auto comm = communicator::duplicate(MPI_COMM_WORLD);
  auto const length = static_cast<std::int64_t>(std::stoll(given.at("--length")));
  space const exec;
  Kokkos::View<float*, space::memory_space> const values("values", static_cast<std::size_t>(length));
  std::ofstream rows;
  if (comm.rank() == 0) {
    rows.open(given.at("--csv"));
    rows << "algorithm,ranks,length,k,step,seconds\n";
  }
  Algorithm algorithm;
  int const steps = std::stoi(given.at("--steps"));
  MPI_Barrier(comm.get());
  for (int step = -std::stoi(given.at("--warmup")); step < steps; ++step) {
    auto const start = std::chrono::steady_clock::now();
    algorithm.run(exec, comm, values.data(), nullptr, length);
    exec.fence();
    std::chrono::duration<double> const spent = std::chrono::steady_clock::now() - start;
    if (step >= 0) {
      rows << given.at("--algorithm") << ',' << comm.size() << ',' << length << ",," << step << ',' << spent.count()
           << '\n';
    }
  }
}

int run(std::map<std::string, std::string> const& given) {
  std::string const name = given.at("--algorithm");
  if (name == "ring_pipelined") {
    measure<oktopk::ring_pipelined<space, communicator, float>>(given);
  } else if (name == "ring_chunked") {
    measure<oktopk::ring_chunked<space, communicator, float>>(given);
  } else if (name == "halving_doubling") {
    measure<oktopk::halving_doubling<space, communicator, float>>(given);
  } else {
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}

} // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Kokkos::initialize(argc, argv);
  std::map<std::string, std::string> given;
  for (int i = 1; i + 1 < argc; ++i) {
    given[argv[i]] = argv[i + 1];
  }
  int const status = run(given);
  Kokkos::finalize();
  MPI_Finalize();
  return status;
}
