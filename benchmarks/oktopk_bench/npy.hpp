// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <istream>
#include <span>
#include <string>

namespace oktopk_bench {

/// Where the values of a NumPy file (.npy) lie, and of which type they are.
struct npy_layout {
  int value_bytes = 4; ///< 2, 4 or 8, as of float16, float32 and float64
  bool big_endian = false;
  std::int64_t length = 0; ///< number of values, of all dimensions together
  std::int64_t begin = 0;  ///< bytes before the first value
};

/// Reads the header of a NumPy file of `bytes` bytes, as numpy.save writes it. Throws `local_fault` with one sentence,
/// which names the file, for one that does not fit, another type, Fortran order, and a shape of another size.
npy_layout read_npy_layout(std::istream& file, std::int64_t bytes, std::string const& name);

/// Reads `layout.length` values as float32; what it cannot hold becomes infinite. Throws `local_fault`.
void read_npy_values(std::istream& file, npy_layout const& layout, std::span<float> values, std::string const& name);

} // namespace oktopk_bench
