// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "arguments.hpp"
#include "numbers.hpp"
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <benchmark/benchmark.h>
#include <oktopk/core/kokkos_ext/execution.hpp>

#include <cstdint>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

// What programs of Google Benchmark have in common.
namespace oktopk_programs {

inline void add_selection_options(CLI::App& app, std::int64_t& length, std::vector<double>& densities) {
  app.add_option("--n", length, "Length of the gradient")
      ->transform(whole(1, std::numeric_limits<std::int32_t>::max()))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--density", densities, "Shares of the entries to select, in (0, 1]")
      ->delimiter(',')
      ->check(fault_of_density)
      ->type_name("D[,D...]")
      ->capture_default_str();
}

/// Reads the options of `app`, and leaves those of the benchmark library and of Kokkos in `app.remaining()`. False where
/// only a text was asked for, which is printed.
inline bool reads_options(CLI::App& app, int argc, char** argv) {
  app.set_version_flag("--version", version_text(app.get_name()), "Print the version");
  app.allow_extras();
  try {
    app.parse(argc, argv);
    return true;
  } catch (CLI::CallForHelp const&) {
    std::fputs(app.help().c_str(), stdout);
    benchmark::PrintDefaultHelp();
  } catch (CLI::CallForVersion const& version) {
    std::printf("%s\n", version.what());
  }
  return false;
}

/// Gives the benchmark library its options, the last of which count; throws where it leaves one that is not for Kokkos.
inline void initialize_benchmarks(char* program, std::vector<std::string> arguments, std::string const& space) {
  std::vector<char*> pointers = {program};
  for (std::string& each : arguments) {
    pointers.push_back(each.data());
  }
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  for (int i = 1; i < count; ++i) {
    std::string const left = pointers[static_cast<std::size_t>(i)];
    if (!left.starts_with("--kokkos")) {
      throw std::runtime_error("unknown argument " + left);
    }
  }
  benchmark::AddCustomContext("space", space);
  benchmark::AddCustomContext("masks", oktopk::detail::processor_has_avx2() ? "AVX2" : "plain code");
}

/// What `main` does: runs the program, and says what it throws.
inline int guarded(char const* name, int (*program)(int, char**), int argc, char** argv) {
  try {
    return status_of_output(name, program(argc, argv));
  } catch (std::exception const& fault) {
    complain(name, fault.what());
    return 1;
  }
}

} // namespace oktopk_programs
