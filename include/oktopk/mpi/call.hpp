// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>

#include <mpi.h>

#include <cstddef>
#include <limits>
#include <string>

namespace oktopk::detail {

/// MPI's sentence for what a call reports.
inline std::string mpi_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return std::string(text, static_cast<std::size_t>(length));
}

/// Throws what a call of MPI reports, with the name of the call.
inline void check_mpi(int code, char const* call) {
  if (code != MPI_SUCCESS) {
    throw error(fault::communication, std::string(call) + ": " + mpi_text(code));
  }
}

/// MPI's counts are ints.
inline constexpr std::size_t largest_mpi_count = std::numeric_limits<int>::max();

/// A number that does not fit is an error, never wrapped.
inline int to_mpi_count(std::size_t count) {
  if (count > largest_mpi_count) {
    throw error(fault::communication, std::to_string(count) + " exceeds what MPI can count");
  }
  return static_cast<int>(count);
}

} // namespace oktopk::detail
