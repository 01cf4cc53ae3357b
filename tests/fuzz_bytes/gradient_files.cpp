// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Files of gradients that the benchmarks read.

#include "target.hpp"

#include "oktopk_bench/input.hpp"
#include "oktopk_bench/npy.hpp"

#include <sstream>

namespace oktopk_fuzz {

void run(std::span<std::byte const> input) {
  auto const size = static_cast<std::int64_t>(input.size());
  std::istringstream file(drawn(input).text());
  try {
    auto const layout = oktopk_bench::read_npy_layout(file, size, "gradient.npy");
    require(layout.length > 0 && layout.length <= size, "a NumPy file with more values than bytes");
    std::vector<float> values(static_cast<std::size_t>(layout.length));
    oktopk_bench::read_npy_values(file, layout, values, "gradient.npy");
  } catch (oktopk_bench::local_fault const&) {
  }
}

std::vector<bytes> seeds() {
  std::vector<bytes> made;
  struct {
    char const* type;
    char const* shape;
    std::size_t size;
  } const files[] = {
      {"<f2", "(5,)", 10}, {"<f4", "(2, 3)", 24}, {">f4", "(1,)", 4}, {"<f8", "()", 8}, {">f8", "(4,)", 32}};
  for (auto const& file : files) {
    for (char const version : {'\x01', '\x02', '\x03'}) {
      std::string const header = std::string("{'descr': '") + file.type +
                                 "', 'fortran_order': False, 'shape': " + file.shape + ", }          \n";
      written out;
      out.text("\x93NUMPY").number(version).number('\0');
      if (version == '\x01') {
        out.number(static_cast<std::uint16_t>(header.size()));
      } else {
        out.number(static_cast<std::uint32_t>(header.size()));
      }
      out.text(header).text(std::string(file.size, '\x01'));
      made.push_back(out);
    }
  }
  return made;
}

} // namespace oktopk_fuzz
