// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "options.hpp"
#include "programs.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace {

// Ranks in one process are not ranks of MPI: several such processes would write the same files.
bool started_on_several_ranks() {
  for (char const* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    char const* const size = std::getenv(name);
    if (size != nullptr && std::atoi(size) > 1) {
      return true;
    }
  }
  return false;
}

} // namespace

int main(int argc, char** argv) {
  oktopk_bench::arguments given;
  given.kokkos.push_back(argv[0]);
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]).starts_with("--kokkos-")) {
      given.kokkos.push_back(argv[i]);
    } else {
      given.own.emplace_back(argv[i]);
    }
  }
  // Not from the parsed options: a command line with a fault in it has to be reported by all ranks together as well.
  bool const in_process = std::any_of(given.own.begin(), given.own.end(), [](std::string const& argument) {
    return argument == "--in-process" || argument.starts_with("--in-process=");
  });
  auto const known = oktopk_bench::known_algorithms();
  auto read = oktopk_bench::read_command_line(given.own, known);
  if (in_process && started_on_several_ranks()) {
    read.fault = "--in-process makes its ranks in one process, but MPI started several";
  }
#ifdef OKTOPK_BENCH_WITH_MPI
  if (!in_process || started_on_several_ranks()) {
    return oktopk_bench::run_with_mpi(read, given);
  }
#else
  if (read.fault.empty() && read.help.empty() && !in_process) {
    read.fault = "this program was built without MPI; run it with --in-process P";
  }
#endif
  return oktopk_bench::run_in_process(read, given);
}
