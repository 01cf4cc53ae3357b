// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Dense allreduces as Gloo's own benchmark measures Gloo's: calls back to back, in place, without a barrier between
// them, the time of each on rank 0. For `run.py network --back-to-back`: it takes the options of oktopk_bench that are
// needed here, and ignores the others.

#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/time_limit.hpp>
#include <oktopk/dense/halving_doubling.hpp>
#include <oktopk/dense/native_allreduce.hpp>
#include <oktopk/dense/rabenseifner.hpp>
#include <oktopk/dense/recursive_doubling.hpp>
#include <oktopk/dense/ring.hpp>
#include <oktopk/mpi.hpp>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>

namespace {

using space = Kokkos::DefaultHostExecutionSpace;
using communicator = oktopk::counted<oktopk::mpi_communicator>;

std::int64_t whole_number(std::string const& text) {
  std::size_t end = 0;
  std::int64_t const number = std::stoll(text, &end);
  return end == text.size() ? number : throw std::invalid_argument(text + " is no whole number");
}

template <class Algorithm>
void measure(std::map<std::string, std::string> const& given) {
  communicator comm(oktopk::mpi_communicator::duplicate(MPI_COMM_WORLD));
  comm.set_time_limit(std::chrono::nanoseconds(0)); // MPI's own allreduce in a time limit would be another one
  auto const length = whole_number(given.at("--length"));
  space const exec;
  Kokkos::View<float*, space::memory_space> const values("values", static_cast<std::size_t>(length));
  std::ofstream rows;
  if (comm.rank() == 0) {
    rows.open(given.at("--csv"));
    rows << "algorithm,ranks,length,k,step,seconds,select_seconds,words_sent_max,words_received_max,messages_sent_max,"
            "words_are_a_floor,back_to_back\n";
  }
  Algorithm algorithm;
  std::int64_t const steps = whole_number(given.at("--steps"));
  MPI_Barrier(MPI_COMM_WORLD);
  for (std::int64_t step = -whole_number(given.at("--warmup")); step < steps; ++step) {
    comm.reset();
    auto const start = std::chrono::steady_clock::now();
    algorithm.run(exec, comm, values.data(), nullptr, length);
    exec.fence();
    std::chrono::duration<double> const spent = std::chrono::steady_clock::now() - start;
    if (step >= 0) {
      oktopk::traffic const total = comm.total();
      rows << given.at("--algorithm") << ',' << comm.size() << ',' << length << ',' << length << ',' << step << ','
           << spent.count() << ",0," << std::llround(total.words_sent()) << ',' << std::llround(total.words_received())
           << ',' << total.messages_sent << ',' << (comm.modelled() > 0) << ",1\n";
    }
  }
  if (comm.rank() == 0 && !rows.flush()) {
    throw std::runtime_error("cannot write " + given.at("--csv"));
  }
}

int run(std::map<std::string, std::string> const& given) {
  std::map<std::string, void (*)(std::map<std::string, std::string> const&)> const algorithms{
      {"dense", &measure<oktopk::native_allreduce<space, communicator, float>>},
      {"dense_rabenseifner", &measure<oktopk::rabenseifner<space, communicator, float>>},
      {"ring", &measure<oktopk::ring<space, communicator, float>>},
      {"ring_chunked", &measure<oktopk::ring_chunked<space, communicator, float>>},
      {"ring_pipelined", &measure<oktopk::ring_pipelined<space, communicator, float>>},
      {"halving_doubling", &measure<oktopk::halving_doubling<space, communicator, float>>},
      {"recursive_doubling", &measure<oktopk::recursive_doubling<space, communicator, float>>}};
  auto const found = algorithms.find(given.at("--algorithm"));
  if (found == algorithms.end()) {
    return EXIT_FAILURE;
  }
  found->second(given);
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
