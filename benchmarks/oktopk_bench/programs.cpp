// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "programs.hpp"

#include <Kokkos_Core.hpp>

#include <cstdio>

namespace oktopk_bench {

void complain(std::string const& sentence) {
  std::string const library = "oktopk: ";
  std::string const plain = sentence.starts_with(library) ? sentence.substr(library.size()) : sentence;
  std::fprintf(stderr, "oktopk_bench: %s\n", plain.c_str());
  std::fflush(stderr);
}

std::string initialize_kokkos(arguments& given) {
  auto count = static_cast<int>(given.kokkos.size());
  given.kokkos.push_back(nullptr);
  Kokkos::initialize(count, given.kokkos.data());
  // Kokkos takes away what it knows.
  return count > 1 ? "Kokkos does not know the option " + std::string(given.kokkos[1]) : std::string();
}

} // namespace oktopk_bench
