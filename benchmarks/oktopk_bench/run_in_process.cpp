// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench.hpp"
#include "programs.hpp"

#include <oktopk/allreduce.hpp>

#include <cstdio>
#include <exception>

namespace oktopk_bench {

std::vector<std::string_view> known_algorithms() {
  std::vector<std::string_view> names;
  for (auto const& each : algorithms<counting_communicator<oktopk::in_process_communicator>>) {
    names.push_back(each.name);
  }
  return names;
}

int run_in_process(command_line read, arguments& given) {
  std::string const fault = initialize_kokkos(given);
  if (read.fault.empty()) {
    read.fault = fault;
  }
  int status = 0;
  try {
    oktopk::in_process::run(read.asked.in_process.value_or(1), [&](oktopk::in_process_communicator comm) {
      std::string const help = run_bench(comm, read);
      if (comm.rank() == 0) {
        std::fputs(help.c_str(), stdout);
      }
    });
  } catch (std::exception const& failure) {
    complain(failure.what());
    status = 1;
  }
  Kokkos::finalize();
  return status;
}

} // namespace oktopk_bench
