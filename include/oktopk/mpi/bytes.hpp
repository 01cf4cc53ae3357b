// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/mpi/call.hpp>

#include <mpi.h>

#include <array>
#include <cstddef>

namespace oktopk::detail {

/// Any number of bytes as an MPI count and datatype: bytes where they can be counted, else one element that is made of
/// blocks of `largest` bytes and the rest. Messages of n bytes match whatever either side made of its bytes, for MPI
/// compares the elementary types. The datatype is freed with this; a message under way may still use it.
class mpi_bytes {
public:
  explicit mpi_bytes(std::size_t bytes, std::size_t largest = largest_mpi_count) {
    if (bytes <= largest) {
      count_ = static_cast<int>(bytes);
      return;
    }
    std::array<int, 2> const counts{to_mpi_count(bytes / largest), static_cast<int>(bytes % largest)};
    MPI_Datatype block = MPI_DATATYPE_NULL;
    check_mpi(MPI_Type_contiguous(static_cast<int>(largest), MPI_BYTE, &block), "MPI_Type_contiguous");
    std::array<MPI_Aint, 2> const places{0, static_cast<MPI_Aint>(bytes - bytes % largest)};
    std::array<MPI_Datatype, 2> const types{block, MPI_BYTE};
    int code = MPI_Type_create_struct(counts[1] > 0 ? 2 : 1, counts.data(), places.data(), types.data(), &type_);
    MPI_Type_free(&block);
    check_mpi(code, "MPI_Type_create_struct");
    code = MPI_Type_commit(&type_);
    if (code != MPI_SUCCESS) {
      MPI_Type_free(&type_);
    }
    check_mpi(code, "MPI_Type_commit");
    count_ = 1;
  }

  ~mpi_bytes() {
    if (type_ != MPI_BYTE) {
      MPI_Type_free(&type_);
    }
  }

  mpi_bytes(mpi_bytes const&) = delete;
  mpi_bytes& operator=(mpi_bytes const&) = delete;

  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }

private:
  int count_ = 0;
  MPI_Datatype type_ = MPI_BYTE;
};

} // namespace oktopk::detail
