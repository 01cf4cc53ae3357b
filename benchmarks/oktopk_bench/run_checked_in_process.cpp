// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifdef OKTOPK_BENCH_WITH_XXHASH
#include "bench.hpp"

#include <oktopk/comm/checked.hpp>

#include <utility>

namespace oktopk_bench {

void run_checked(oktopk::in_process_communicator comm, options const& asked, std::string const& note) {
  bench<oktopk::in_process_communicator, oktopk::checked>(std::move(comm), asked, note).run();
}

} // namespace oktopk_bench
#endif
