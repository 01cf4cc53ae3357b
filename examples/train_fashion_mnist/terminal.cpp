// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "terminal.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace fashion {

namespace {

struct process {
  long parent = 0;
  std::string name;
};

// From /proc/PID/stat: "PID (NAME) STATE PARENT ...".
process look_up(long pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  auto const open = line.find('(');
  auto const close = line.rfind(')');
  process found;
  if (open != std::string::npos && close != std::string::npos) {
    found.name = line.substr(open + 1, close - open - 1);
    std::istringstream rest(line.substr(close + 1));
    char state = ' ';
    rest >> state >> found.parent;
  }
  return found;
}

bool is_launcher(std::string const& name) {
  for (char const* prefix : {"mpirun", "mpiexec", "orterun", "orted", "prterun", "prted", "hydra_"}) {
    if (name.starts_with(prefix)) {
      return true;
    }
  }
  return false;
}

bool is_terminal(std::filesystem::path const& descriptor) {
  std::error_code failure;
  std::string const target = std::filesystem::read_symlink(descriptor, failure).string();
  return !failure && (target.starts_with("/dev/pts/") || target.starts_with("/dev/tty"));
}

bool launched_by_mpi() {
  for (char const* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "PMI_FD"}) {
    if (std::getenv(name) != nullptr) {
      return true;
    }
  }
  return false;
}

} // namespace

bool output_is_a_terminal() {
  if (!launched_by_mpi()) {
    return isatty(STDOUT_FILENO) != 0;
  }
  // Launchers put a pipe or a terminal of their own between a rank and the user (Open MPI always the latter, even when
  // its own output goes to a file), so it is the outermost launcher that has to be asked.
  long launcher = 0;
  process ancestor = look_up(getppid());
  for (long pid = getppid(); pid > 1 && is_launcher(ancestor.name); ancestor = look_up(pid)) {
    launcher = pid;
    pid = ancestor.parent;
  }
  return launcher != 0 && is_terminal("/proc/" + std::to_string(launcher) + "/fd/1");
}

} // namespace fashion
