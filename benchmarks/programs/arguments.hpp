// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

namespace oktopk_programs {

/// The arguments of a program, without its name: those for Kokkos (--kokkos-...) apart from its own.
class arguments {
public:
  arguments(int argc, char** argv);

  std::vector<std::string> const& own() const { return own_; }

  /// Gives Kokkos its arguments; a sentence where Kokkos does not know one. Kokkos must be finalized afterwards.
  std::string initialize_kokkos();

private:
  std::vector<std::string> own_;
  std::vector<char*> kokkos_; // begins with the program's name
};

/// The line that `--version` prints, without its end: the program, the version of oktopk and that of Kokkos.
std::string version_text(std::string const& program);

/// One line on the standard error stream.
void complain(std::string const& program, std::string const& sentence);

/// The status of a program that ends with this one: 1, and a word, where what it has printed could not be written whole, as
/// on a full disk.
int status_of_output(std::string const& program, int status);

} // namespace oktopk_programs
