// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "counts.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace device_cost {

/// The columns of the table: bytes are those that kernels read and write in global memory, per value of the gradient.
extern char const* const table_heading;
std::string table_line(std::string_view part_name, std::int64_t length, counts const& each);

/// The columns of the CSV file behind those that name the case.
extern char const* const csv_heading;
std::string csv_cells(std::string_view part_name, std::int64_t length, counts const& each);

} // namespace device_cost
