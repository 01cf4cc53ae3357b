// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/memory.hpp>

#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h> // Open MPI says there what of its extensions it has
#endif

#include <array>
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
    if (bytes / largest > largest_mpi_count) {
      throw error(fault::communication, std::to_string(bytes / largest) + " exceeds what MPI can count");
    }
    std::array<int, 2> const counts{static_cast<int>(bytes / largest), static_cast<int>(bytes % largest)};
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

/// Whether this MPI library takes pointers to memory of such devices. Asked when the program runs, for a library that
/// was built for a device may run without; one that cannot be asked is taken to say no. MPI must be initialised.
inline bool mpi_takes_memory_of([[maybe_unused]] device_family family) {
#if defined(MPIX_GPU_SUPPORT_CUDA)
  if (int yes = 0; family == device_family::cuda) {
    return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &yes) == MPI_SUCCESS && yes != 0;
  }
#elif defined(MPIX_CUDA_AWARE_SUPPORT)
  if (family == device_family::cuda) {
    return MPIX_Query_cuda_support() == 1;
  }
#endif
#if defined(MPIX_GPU_SUPPORT_HIP)
  if (int yes = 0; family == device_family::hip) {
    return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_HIP, &yes) == MPI_SUCCESS && yes != 0;
  }
#elif defined(MPIX_ROCM_AWARE_SUPPORT)
  if (family == device_family::hip) {
    return MPIX_Query_rocm_support() == 1;
  }
#endif
  return false;
}

} // namespace oktopk::detail
