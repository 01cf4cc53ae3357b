// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/mpi/left_to_mpi.hpp>

#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace oktopk::detail {

/// What a rank that gives up tells the other ranks of its communicator: a message of its own tag, with the reason.
///
/// Short enough that MPI sends it whether or not it is awaited. Who waits looks for one now and then; nobody else does,
/// so it costs nothing while all goes well. Part of a communicator.
class mpi_notices {
public:
  struct notice {
    int teller = 0;
    std::string reason;
  };

  /// Tells every other rank, once; later reasons are not told. Waits for a tenth of a second at most.
  void tell(MPI_Comm comm, int rank, int size, std::string_view reason) noexcept {
    if (told_ || size == 1) {
      return;
    }
    told_ = true;
    try {
      std::size_t const length = std::min(reason.size(), longest);
      std::byte* const text = left_to_mpi().emplace_back(std::make_unique<std::byte[]>(longest)).get();
      std::memcpy(text, reason.data(), length);
      sends_.reserve(static_cast<std::size_t>(size));
      for (int step = 1; step < size; ++step) {
        MPI_Request& handle = sends_.emplace_back(MPI_REQUEST_NULL);
        if (MPI_Isend(text, static_cast<int>(length), MPI_CHAR, (rank + step) % size, tag, comm, &handle) !=
            MPI_SUCCESS) {
          sends_.pop_back();
        }
      }
    } catch (std::exception const&) { // who has heard nothing has a time limit
    }
    auto const end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    while (under_way() && std::chrono::steady_clock::now() < end) {
    }
  }

  /// What another rank has told, if anything.
  static std::optional<notice> look(MPI_Comm comm) {
    int there = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, tag, comm, &there, &status) != MPI_SUCCESS || there == 0) {
      return std::nullopt;
    }
    notice heard;
    heard.teller = status.MPI_SOURCE;
    std::array<char, longest> text{};
    int length = 0;
    if (MPI_Recv(text.data(), static_cast<int>(text.size()), MPI_CHAR, heard.teller, tag, comm, &status) ==
            MPI_SUCCESS &&
        MPI_Get_count(&status, MPI_CHAR, &length) == MPI_SUCCESS && length > 0) {
      heard.reason.assign(text.data(), static_cast<std::size_t>(length));
    }
    return heard;
  }

private:
  static constexpr int tag = phase_count;
  static constexpr std::size_t longest = 1024;

  bool under_way() noexcept {
    bool some = false;
    for (MPI_Request& each : sends_) {
      int done = 1;
      if (each != MPI_REQUEST_NULL && MPI_Test(&each, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
        each = MPI_REQUEST_NULL;
        done = 1;
      }
      some = some || done == 0;
    }
    return some;
  }

  std::vector<MPI_Request> sends_;
  bool told_ = false;
};

} // namespace oktopk::detail
