// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "report.hpp"

#include <cmath>
#include <iomanip>
#include <sstream>

namespace device_cost {

using q = quantity;

namespace {

// A number as a stream prints it, or what stands for one that nobody counted.
std::string known(double number, char const* otherwise, int digits = 10) {
  std::ostringstream text;
  text << std::setprecision(digits) << number;
  return std::isnan(number) ? otherwise : text.str();
}

} // namespace

char const* const table_heading =
    "part               launches   blocks    waits   copies   read B/n    written sectors rd sectors wr    instr/n\n";

std::string table_line(std::string_view part_name, std::int64_t length, counts const& each) {
  auto const n = static_cast<double>(length);
  std::ostringstream line;
  line << std::left << std::setw(18) << part_name << std::right;
  for (double const number : {each[q::launches], each[q::blocks], each[q::host_waits], each[q::copies]}) {
    line << std::setw(9) << known(number, "-", 4);
  }
  for (double const number : {each[q::bytes_read], each[q::bytes_written], 32 * each[q::sectors_read],
                              32 * each[q::sectors_written], each[q::instructions]}) {
    line << std::setw(11) << known(number / n, "-", 4);
  }
  line << '\n';
  return line.str();
}

char const* const csv_heading =
    "part,launches,blocks,threads,host_waits,copies,bytes_copied,bytes_read,bytes_written,"
    "sector_bytes_read,sector_bytes_written,instructions_per_element,allocations,host_seconds\n";

std::string csv_cells(std::string_view part_name, std::int64_t length, counts const& each) {
  std::ostringstream line;
  line << part_name;
  for (double const number : {each[q::launches], each[q::blocks], each[q::threads], each[q::host_waits],
                              each[q::copies], each[q::bytes_copied], each[q::bytes_read], each[q::bytes_written],
                              32 * each[q::sectors_read], 32 * each[q::sectors_written]}) {
    line << ',' << known(number, "");
  }
  line << std::setprecision(5) << ',' << known(each[q::instructions] / static_cast<double>(length), "", 5) << ','
       << each[q::allocations] << ',' << each[q::seconds] << '\n';
  return line.str();
}

} // namespace device_cost
