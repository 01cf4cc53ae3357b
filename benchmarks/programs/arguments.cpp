// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "arguments.hpp"

#include <Kokkos_Core.hpp>

#include <cstdio>
#include <iostream>
#include <string_view>

namespace oktopk_programs {

arguments::arguments(int argc, char** argv) : kokkos_{argv[0]} {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]).starts_with("--kokkos-")) {
      kokkos_.push_back(argv[i]);
    } else {
      own_.emplace_back(argv[i]);
    }
  }
}

std::string arguments::initialize_kokkos() {
  auto count = static_cast<int>(kokkos_.size());
  kokkos_.push_back(nullptr);
  Kokkos::initialize(count, kokkos_.data());
  // Kokkos takes away what it knows.
  return count > 1 ? "Kokkos does not know the option " + std::string(kokkos_[1]) : std::string();
}

std::string version_text(std::string const& program) {
  return program + " " + OKTOPK_PROGRAM_VERSION + " (Kokkos " + std::to_string(KOKKOS_VERSION / 10000) + "." +
         std::to_string(KOKKOS_VERSION / 100 % 100) + "." + std::to_string(KOKKOS_VERSION % 100) + ")";
}

void complain(std::string const& program, std::string const& sentence) {
  std::string const library = "oktopk: ";
  std::string const plain = sentence.starts_with(library) ? sentence.substr(library.size()) : sentence;
  std::fprintf(stderr, "%s: %s\n", program.c_str(), plain.c_str());
  std::fflush(stderr);
}

int status_of_output(std::string const& program, int status) {
  bool const is_written = static_cast<bool>(std::cout.flush()) && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!is_written) {
    complain(program, "cannot write to the standard output");
  }
  return is_written ? status : 1;
}

} // namespace oktopk_programs
