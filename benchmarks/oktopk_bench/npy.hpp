// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <istream>
#include <span>
#include <string>

namespace oktopk_bench {

enum class npy_type : std::uint8_t { float16, float32, float64 };

/// The values of a NumPy file (.npy).
struct npy_layout {
  npy_type type = npy_type::float32;
  bool big_endian = false;
  std::int64_t length = 0; ///< number of values, of all dimensions together
  std::int64_t begin = 0;  ///< bytes before the first value
};

/// Whether a file with these first bytes is a NumPy file.
bool begins_as_npy(std::span<unsigned char const> head);

/// Reads the header of a NumPy file of `bytes` bytes, from its start, versions 1.0 to 3.0 of the format.
///
/// Throws `local_fault` with one sentence, which names the file `name`, for a damaged header, another type than
/// float16, float32 and float64, Fortran order, no values, and a shape that does not fit the size of the file.
npy_layout read_npy_layout(std::istream& file, std::int64_t bytes, std::string const& name);

/// Reads `layout.length` values; float64 is rounded to float32. Throws `local_fault` for a file that ends too early and
/// for a finite value that float32 cannot hold. NaN and infinities are passed on.
void read_npy_values(std::istream& file, npy_layout const& layout, std::span<float> values, std::string const& name);

/// "float16", "float32" or "float64".
std::string name_of(npy_type type);

} // namespace oktopk_bench
