// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "programs/together.hpp"

#include <oktopk/mpi.hpp>

namespace fashion {

/// `oktopk_programs::together` for files, data and memory.
template <class Action>
auto together(oktopk::mpi_communicator& world, char const* what, Action const& action) {
  return oktopk_programs::together(world, what, oktopk::fault::bad_file, action);
}

} // namespace fashion
