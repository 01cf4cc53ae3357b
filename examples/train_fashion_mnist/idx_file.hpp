// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

// The file format of MNIST and its kin: a magic number, the dimensions (big endian), the bytes; gzipped.
namespace fashion {

/// The contents of an idx file of unsigned bytes.
struct idx_data {
  std::vector<std::int64_t> dimensions;
  std::vector<std::uint8_t> bytes; ///< as many as the product of the dimensions
};

/// Reads a gzipped (or plain) idx file of unsigned bytes with `rank` dimensions.
///
/// Throws std::runtime_error with one sentence that names the file and the fault: missing, not gzip, another magic
/// number, cut short, damaged, or longer than its header says.
idx_data read_idx(std::filesystem::path const& file, int rank);

} // namespace fashion
