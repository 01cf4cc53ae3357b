// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifdef OKTOPK_BENCH_WITH_MPI
#include "bench.hpp"
#include "run.hpp"

#include "programs/options.hpp"

#include <oktopk/mpi.hpp>
#include <oktopk/tcp.hpp>

#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace oktopk_bench {
namespace {

// Where the ranks leave their addresses: each sets one key, and then asks for those of the others.
class address_book {
public:
  void set(std::string const& key, std::string const& bytes) { mine_ = key + '\n' + bytes; }

  std::string get(std::string const& key) {
    if (all_.empty()) {
      meet();
    }
    return all_.at(key);
  }

private:
  void meet() {
    int ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int const length = static_cast<int>(mine_.size());
    std::vector<int> lengths(static_cast<std::size_t>(ranks));
    MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD);
    std::vector<int> begins(lengths.size() + 1);
    std::partial_sum(lengths.begin(), lengths.end(), begins.begin() + 1);
    std::string bytes(static_cast<std::size_t>(begins.back()), ' ');
    MPI_Allgatherv(mine_.data(), length, MPI_CHAR, bytes.data(), lengths.data(), begins.data(), MPI_CHAR,
                   MPI_COMM_WORLD);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      std::string const of = bytes.substr(static_cast<std::size_t>(begins[i]), static_cast<std::size_t>(lengths[i]));
      std::size_t const end = of.find('\n');
      all_[of.substr(0, end)] = of.substr(end + 1);
    }
  }

  std::string mine_;
  std::map<std::string, std::string> all_;
};

} // namespace

void run_over_tcp(oktopk::mpi_communicator comm, options const& asked, std::string const& note) {
  address_book addresses;
  oktopk::rendezvous_store const store{.set = [&](auto const& key, auto const& bytes) { addresses.set(key, bytes); },
                                       .get = [&](auto const& key) { return addresses.get(key); }};
  auto over = oktopk::tcp_communicator::rendezvous(store, "oktopk_bench", comm.rank(), comm.size());
  oktopk_programs::set_deadline(over, asked.deadline);
  bench<oktopk::tcp_communicator>(over, asked, note).run();
}

} // namespace oktopk_bench
#endif
