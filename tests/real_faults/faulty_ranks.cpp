// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Ranks of MPI, or over TCP (OKTOPK_TESTS_OVER_TCP), that call an algorithm again and again and write down what happens to
// them, for real_faults.py, which kills, stops and slows them. Each event is a line of its own in the file of its rank.

#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/collectives.hpp>
#include <oktopk/core/integers.hpp>
#ifdef OKTOPK_TESTS_OVER_TCP
#include <oktopk/tcp.hpp>
#else
#include <oktopk/mpi.hpp>
#endif

#ifdef OKTOPK_TESTS_WITH_XXHASH
#include <oktopk/comm/checked.hpp>
#endif

#include <CLI/CLI.hpp>
#include <Kokkos_Core.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <new>
#include <sstream>
#include <thread>

namespace {

using E = Kokkos::DefaultHostExecutionSpace;
using vector_type = Kokkos::View<float*, Kokkos::HostSpace>;

struct requests {
  std::string algorithm = "ok_topk";
  std::string log;
  std::int64_t length = 100'000;
  double density = 0.01;
  double deadline = 2;
  int calls = 100;
  int pause_ms = 5; ///< between two calls
  int culprit = -1; ///< the rank that misbehaves by itself
  int at_call = -1;
  std::string fault; ///< exit, memory or slow
  std::string csv;   ///< for the emulated cluster, which wants a row
  bool is_checked = false;
};

// Whole lines, so that nothing is lost or cut when the process dies.
class diary {
public:
  diary(std::string const& folder, int rank)
      : file_(::open((folder + "/rank." + std::to_string(rank)).c_str(), O_CREAT | O_WRONLY | O_APPEND, 0644)) {}

  // Without memory of its own: this rank may have none.
  void write(std::string const& line) const {
    using std::chrono::microseconds;
    auto const now =
        std::chrono::duration_cast<microseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    std::array<char, 2048> text{};
    char* at = std::to_chars(text.begin(), text.end(), now).ptr;
    *at++ = ' ';
    auto const kept = static_cast<std::size_t>(
        std::copy_n(line.data(), std::min(line.size(), static_cast<std::size_t>(text.end() - at) - 1), at) -
        text.begin());
    std::replace(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(kept), '\n',
                 ' '); // MPI's sentences have some
    text[kept] = '\n';
    if (::write(file_, text.data(), kept + 1) != static_cast<ssize_t>(kept + 1)) {
      std::_Exit(4);
    }
  }

private:
  int file_;
};

std::string digest(void const* data, std::size_t bytes) {
  oktopk::detail::fnv1a hash;
  hash.add(data, bytes);
  return std::to_string(hash.value());
}

// Deterministic numbers, new in each call.
void fill(vector_type const& accumulator, int rank, int call) {
  std::uint64_t state = (static_cast<std::uint64_t>(call) << 20U) + static_cast<std::uint64_t>(rank) + 1;
  for (std::size_t i = 0; i < accumulator.extent(0); ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    accumulator(i) = static_cast<float>(static_cast<std::int32_t>(state >> 32U)) * 0x1p-31F;
  }
}

std::string bytes_of_state(oktopk::any_allreduce<E> const& allreduce) {
  std::ostringstream out;
  oktopk::save(out, allreduce.state());
  return out.str();
}

// No more than what the process has, so that the next allocation fails.
void take_all_memory() {
  rlimit const none{1, 1};
  setrlimit(RLIMIT_AS, &none);
}

void misbehave(requests const& how, int call, double seconds_of_a_call) {
  if (how.fault == "exit" && call == how.at_call) {
    std::_Exit(7);
  }
  if (how.fault == "memory" && call == how.at_call) {
    take_all_memory();
  }
  if (how.fault == "slow") {
    // Slower than the deadline would be another fault.
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(100 * seconds_of_a_call, how.deadline / 3)));
  }
}

// Gives whether all calls went well.
bool call_again_and_again(requests const& how, oktopk::any_communicator comm, diary const& log) {
  auto allreduce = oktopk::make_allreduce(E(), comm, how.algorithm, {.length = how.length, .density = how.density});
  vector_type const accumulator("accumulator", static_cast<std::size_t>(how.length));
  std::size_t const bytes = accumulator.extent(0) * sizeof(float);
  std::string before;
  std::string accumulated;
  double seconds = 0;
  auto const attempt = [&](auto const& work) {
    try {
      work();
      return std::string();
    } catch (oktopk::error const& caught) {
      return std::string(oktopk::name(caught.code())) + " " + caught.what();
    } catch (std::bad_alloc const&) {
      return std::string("bad_alloc this rank has no memory");
    } catch (std::exception const& caught) {
      return std::string("exception ") + caught.what();
    }
  };
  log.write("ready");
  for (int call = 0; call <= how.calls; ++call) {
    fill(accumulator, comm.rank(), call);
    before = bytes_of_state(allreduce);
    accumulated = digest(accumulator.data(), bytes);
    if (comm.rank() == how.culprit) {
      misbehave(how, call, seconds);
    }
    auto const begun = std::chrono::steady_clock::now();
    std::string const heard = attempt([&] {
      if (call == how.calls) { // who has all its messages hears of faults here
        oktopk::detail::barrier_all_to_all(comm);
        return;
      }
      auto const& update = allreduce(accumulator);
      log.write("call " + std::to_string(call) + " " +
                digest(update.values().data(), update.values().extent(0) * sizeof(float)));
    });
    if (!heard.empty()) {
      log.write("error " + heard);
      rlimit const all{RLIM_INFINITY, RLIM_INFINITY};
      setrlimit(RLIMIT_AS, &all);
      bool const same = bytes_of_state(allreduce) == before && digest(accumulator.data(), bytes) == accumulated;
      log.write(same ? "unchanged" : "changed");
      auto const again = std::chrono::steady_clock::now();
      std::string const later = attempt([&] { allreduce(accumulator); });
      std::chrono::duration<double> const took = std::chrono::steady_clock::now() - again;
      log.write("again " + std::to_string(took.count()) + " " + (later.empty() ? "nothing" : later));
      return false;
    }
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    std::this_thread::sleep_for(std::chrono::milliseconds(how.pause_ms));
  }
  return true;
}

} // namespace

int main(int argc, char** argv) {
  requests how;
  CLI::App app("Ranks that call an algorithm again and again; for real_faults.py.");
  app.add_option("--algorithm", how.algorithm, "its text");
  app.add_option("--log", how.log, "folder of the ranks' diaries")->required();
  app.add_option("--length", how.length)->check(CLI::PositiveNumber);
  app.add_option("--density", how.density);
  app.add_option("--deadline", how.deadline, "seconds")->check(CLI::PositiveNumber);
  app.add_option("--calls", how.calls)->check(CLI::PositiveNumber);
  app.add_option("--pause-ms", how.pause_ms);
  app.add_option("--culprit", how.culprit, "the rank with --fault");
  app.add_option("--at-call", how.at_call);
  app.add_option("--fault", how.fault)->check(CLI::IsMember({"exit", "memory", "slow"}));
  app.add_option("--csv", how.csv, "a row for the emulated cluster, where all goes well");
  app.add_flag("--checked", how.is_checked, "with a digest of each message");
  CLI11_PARSE(app, argc, argv);

#ifndef OKTOPK_TESTS_OVER_TCP
  MPI_Init(&argc, &argv);
#endif
  Kokkos::initialize(argc, argv);
  bool good = false;
  {
#ifdef OKTOPK_TESTS_OVER_TCP
    auto comm =
        oktopk::tcp_communicator::rendezvous(std::filesystem::path(std::getenv("STORE")).parent_path(), "faulty",
                                             std::atoi(std::getenv("RANK")), std::atoi(std::getenv("WORLD_SIZE")));
#else
    auto comm = oktopk::mpi_communicator::duplicate(MPI_COMM_WORLD);
#endif
    diary const log(how.log, comm.rank());
    log.write("pid " + std::to_string(getpid()));
    comm.set_time_limit(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(how.deadline)));
    if (how.is_checked) {
#ifdef OKTOPK_TESTS_WITH_XXHASH
      good = call_again_and_again(how, oktopk::checked(comm), log);
#else
      log.write("error option_out_of_range this program is without xxHash");
#endif
    } else {
      good = call_again_and_again(how, comm, log);
    }
    log.write(good ? "done" : "end");
    if (good && comm.rank() == 0 && !how.csv.empty()) {
      std::ofstream(how.csv) << "algorithm,ranks\n" << how.algorithm << ',' << comm.size() << '\n';
    }
  }
  if (!good) {
    std::_Exit(3); // MPI would wait for the dead in MPI_Finalize
  }
#ifdef MPICH
  std::_Exit(0); // MPICH 4.0 over UCX may wait in MPI_Finalize for connections that were never used
#endif
  Kokkos::finalize();
#ifndef OKTOPK_TESTS_OVER_TCP
  MPI_Finalize();
#endif
}
