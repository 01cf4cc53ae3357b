// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace oktopk_programs {

/// What is wrong with a density on a command line; nothing where it is one.
inline std::string fault_of_density(std::string const& text) {
  double density = 0; // NaN is in each of CLI11's own ranges
  bool const good = CLI::detail::lexical_cast(text, density) && density > 0 && density <= 1;
  return good ? "" : text + " is not a number over 0 and at most 1";
}

} // namespace oktopk_programs
