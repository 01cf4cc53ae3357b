// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Files of images and labels that train_fashion_mnist reads, compressed and not.

#include "target.hpp"

#include "train_fashion_mnist/idx_file.hpp"

#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <stdexcept>

namespace oktopk_fuzz {
namespace {

// A file without a place on a disk.
class memory_file {
public:
  memory_file() : number_(memfd_create("idx", 0)) { require(number_ >= 0, "no file in memory"); }
  memory_file(memory_file const&) = delete;
  memory_file& operator=(memory_file const&) = delete;
  ~memory_file() { close(number_); }

  void write(std::span<std::byte const> content) {
    require(::write(number_, content.data(), content.size()) == static_cast<ssize_t>(content.size()), "a short write");
  }

  std::string path() const { return "/proc/self/fd/" + std::to_string(number_); }

private:
  int number_;
};

bytes compressed(std::span<std::byte const> content) {
  z_stream stream{};
  require(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "no zlib");
  bytes out(deflateBound(&stream, content.size()) + 64);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  require(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
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
  memory_file file;
  file.write(from.rest());
  try {
    auto const read = fashion::read_idx(file.path(), rank);
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
