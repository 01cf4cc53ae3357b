// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>

namespace oktopk_bench {

/// Of a file of `bytes` bytes that is no NumPy file: what it is, "an HDF5 file", by its first 64 KiB and the places that
/// these name; empty where nothing speaks against raw values.
std::string kind_of_file(std::istream& file, std::int64_t bytes);

/// What raw values of these first bytes are, if no float32: "float64"; else empty.
std::string_view other_type_of_values(std::string_view head);

/// The first 64 KiB of a file.
std::string head_of(std::istream& file);

} // namespace oktopk_bench
