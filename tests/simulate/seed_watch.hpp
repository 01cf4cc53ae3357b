// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/processor_time.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>

namespace oktopk_simulate {

/// What is said should a seed never end; ready beforehand, for a signal handler may not make it.
inline char last_words[1024];

/// Ends the program should the seed take more processor time; `command` runs it again.
inline void watch_seed(std::uint64_t seed, double seconds, std::string const& command) {
  std::snprintf(last_words, sizeof(last_words), "seed %llu: [hang] more than %g s of processor time\n  %s\n",
                static_cast<unsigned long long>(seed), seconds, command.c_str());
  std::signal(SIGPROF, [](int) {
    ssize_t const written = write(STDOUT_FILENO, last_words, __builtin_strlen(last_words));
    _exit(written < 0 ? 4 : 3);
  });
  oktopk_tests::limit_processor_time(seconds);
}

/// The seed has ended.
inline void end_watch() {
  oktopk_tests::limit_processor_time(0);
}

} // namespace oktopk_simulate
