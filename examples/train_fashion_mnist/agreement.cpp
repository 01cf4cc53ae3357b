// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "agreement.hpp"

#include <vector>

namespace fashion {

void agree(MPI_Comm comm, std::string const& complaint) {
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);

  int const failed = complaint.empty() ? 0 : 1;
  int const candidate = failed != 0 ? rank : size;
  int failures = 0;
  int speaker = size;
  MPI_Allreduce(&failed, &failures, 1, MPI_INT, MPI_SUM, comm);
  MPI_Allreduce(&candidate, &speaker, 1, MPI_INT, MPI_MIN, comm);
  if (failures == 0) {
    return;
  }

  std::string sentence = complaint;
  int length = static_cast<int>(sentence.size());
  MPI_Bcast(&length, 1, MPI_INT, speaker, comm);
  sentence.resize(static_cast<std::size_t>(length));
  MPI_Bcast(sentence.data(), length, MPI_CHAR, speaker, comm);

  if (failures < size) {
    std::string who = "rank " + std::to_string(speaker);
    if (failures > 1) {
      who += " and " + std::to_string(failures - 1) + " more of " + std::to_string(size);
    }
    sentence = who + ": " + sentence;
  }
  throw agreed_failure(sentence);
}

void require_same(MPI_Comm comm, std::string const& text, std::string const& what) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  int length = static_cast<int>(text.size());
  MPI_Bcast(&length, 1, MPI_INT, 0, comm);
  std::vector<char> first(static_cast<std::size_t>(length));
  if (rank == 0) {
    first.assign(text.begin(), text.end());
  }
  MPI_Bcast(first.data(), length, MPI_CHAR, 0, comm);
  std::string const expected(first.begin(), first.end());
  agree(comm, text == expected ? std::string()
                               : what + " differ from those of rank 0: '" + text + "', not '" + expected + "'");
}

} // namespace fashion
