// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Files of images and labels that train_fashion_mnist reads, compressed and not.

#include "target.hpp"

#include "train_fashion_mnist/idx_file.hpp"

#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace oktopk_fuzz {
namespace {

// The one file that is written and read over and over.
std::string const& path() {
  static std::string const name = std::filesystem::temp_directory_path() / ("oktopk_idx_" + std::to_string(getpid()));
  static bool const removed = std::atexit([] { std::filesystem::remove(name); }) == 0;
  require(removed, "a file that stays");
  return name;
}

bytes compressed(bytes const& content) {
  gzFile const out = gzopen(path().c_str(), "wb1");
  require(gzwrite(out, content.data(), static_cast<unsigned>(content.size())) >= 0 && gzclose(out) == Z_OK, "zlib");
  std::ifstream in(path(), std::ios::binary);
  std::string const read{std::istreambuf_iterator<char>(in), {}};
  return written().text(read);
}

bytes idx(std::uint8_t rank, std::vector<std::uint32_t> const& extents, std::size_t size) {
  written out;
  out.text(std::string("\0\0\x08", 3)).number(rank);
  for (std::uint32_t const extent : extents) {
    out.number(__builtin_bswap32(extent));
  }
  return out.text(std::string(size, '\x05'));
}

} // namespace

void run(std::span<std::byte const> input) {
  drawn from(input);
  int const rank = from.number<std::uint8_t>() % 2 == 0 ? 1 : 3;
  std::ofstream(path(), std::ios::binary) << from.text();
  try {
    auto const read = fashion::read_idx(path(), rank);
    std::int64_t product = 1;
    for (std::int64_t const extent : read.dimensions) {
      product *= extent;
    }
    require(read.dimensions.size() == static_cast<std::size_t>(rank), "another number of dimensions");
    require(product == static_cast<std::int64_t>(read.bytes.size()), "another number of bytes");
  } catch (std::runtime_error const&) {
  }
}

std::vector<bytes> seeds() {
  bytes const labels = idx(1, {20}, 20);
  bytes const images = idx(3, {2, 28, 28}, 2 * 28 * 28);
  return {written().number(std::uint8_t(0)).rest(labels),
          written().number(std::uint8_t(0)).rest(compressed(labels)),
          written().number(std::uint8_t(1)).rest(images),
          written().number(std::uint8_t(1)).rest(compressed(images)),
          written().number(std::uint8_t(1)).rest(idx(3, {0, 28, 28}, 0)),
          written().number(std::uint8_t(1)).rest(idx(3, {0xffffffffU, 0xffffffffU, 0xffffffffU}, 9))};
}

} // namespace oktopk_fuzz
