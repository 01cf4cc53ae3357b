// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench.hpp"
#include "run.hpp"

#include "programs/options.hpp"

#include <oktopk/comm/in_process.hpp>

#include <exception>

namespace oktopk_bench {

std::string list_text() {
  return oktopk::catalogue_text(oktopk_programs::added_codecs());
}

int run_in_process(command_line const& read) {
  try {
    oktopk::in_process::run(read.asked.in_process.value_or(1), [&](oktopk::in_process_communicator comm) {
      oktopk_programs::set_deadline(comm, read.asked.deadline);
      run_bench(comm, read);
    });
    return 0;
  } catch (std::exception const& failure) {
    oktopk_programs::complain("oktopk_bench", failure.what());
    return 1;
  }
}

} // namespace oktopk_bench
