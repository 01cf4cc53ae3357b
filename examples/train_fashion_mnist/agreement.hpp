// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>

// Errors that one rank meets and all must know of, so that nobody waits for a rank that has given up.
namespace fashion {

/// A failure known to every rank, with the same sentence on all of them: one rank reports it.
class agreed_failure : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Collective. Returns when `complaint` is empty on every rank; else throws the complaint of the lowest rank that has
/// one, on every rank, naming that rank unless all complain.
void agree(MPI_Comm comm, std::string const& complaint);

/// Collective. Throws on every rank unless `text` is the same on all of them.
void require_same(MPI_Comm comm, std::string const& text, std::string const& what);

/// Collective. Runs `work` on every rank and gives its result, which must have a default; if it throws on any, all
/// throw what `agree` makes of it.
template <class Work>
auto on_every_rank(MPI_Comm comm, Work&& work) {
  using result = std::invoke_result_t<Work>;
  std::string complaint;
  auto const guarded = [&complaint](auto&& body) {
    try {
      body();
    } catch (std::exception const& failure) {
      complaint = failure.what();
      if (complaint.empty()) {
        complaint = "unknown failure";
      }
    }
  };
  if constexpr (std::is_void_v<result>) {
    guarded([&] { work(); });
    agree(comm, complaint);
  } else {
    result made{};
    guarded([&] { made = work(); });
    agree(comm, complaint);
    return made;
  }
}

} // namespace fashion
