// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "idx_file.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace fashion {

namespace {

struct close_gz {
  void operator()(gzFile_s* file) const { gzclose_r(file); }
};

/// A gzipped file being read, with its name at hand for messages.
class gz_reader {
public:
  explicit gz_reader(std::filesystem::path const& path) : name_(path.string()) {
    errno = 0;
    file_.reset(gzopen(path.c_str(), "rb"));
    if (!file_) {
      throw std::runtime_error(name_ + ": cannot be opened: " + (errno != 0 ? std::strerror(errno) : "out of memory"));
    }
  }

  /// Reads up to `out.size()` bytes; fewer only at the end of the data, or where the file was cut short.
  std::size_t read(std::span<std::uint8_t> out) {
    int const got = gzread(file_.get(), out.data(), static_cast<unsigned>(out.size()));
    int code = Z_OK;
    char const* const words = gzerror(file_.get(), &code);
    if (code == Z_ERRNO) {
      throw std::runtime_error(name_ + ": cannot be read: " + std::strerror(errno));
    }
    if (got < 0 && code != Z_BUF_ERROR) {
      std::string why = words;
      if (why.starts_with(name_ + ": ")) {
        why.erase(0, name_.size() + 2);
      }
      throw std::runtime_error(name_ + ": damaged gzip data (" + why + ")");
    }
    return static_cast<std::size_t>(std::max(got, 0));
  }

  /// To be called where the data should end.
  void finish() {
    std::array<std::uint8_t, 1> beyond{};
    if (read(beyond) != 0) {
      throw std::runtime_error(name_ + ": longer than its header says");
    }
    // Only closing tells whether the gzip checksum behind the data was there.
    if (gzclose_r(file_.release()) != Z_OK) {
      throw std::runtime_error(name_ + ": cut short: the gzip checksum at its end is missing");
    }
  }

  [[noreturn]] void cut_short(std::int64_t expected, std::int64_t found) const {
    throw std::runtime_error(name_ + ": cut short: " + std::to_string(expected) + " bytes expected after unpacking, " +
                             std::to_string(found) + " found");
  }

  std::string const& name() const { return name_; }

private:
  std::string name_;
  std::unique_ptr<gzFile_s, close_gz> file_;
};

std::uint32_t big_endian(std::span<std::uint8_t const, 4> bytes) {
  return std::uint32_t(bytes[0]) << 24 | std::uint32_t(bytes[1]) << 16 | std::uint32_t(bytes[2]) << 8 | bytes[3];
}

std::string hexadecimal(std::uint32_t x) {
  std::array<char, 11> text{};
  std::snprintf(text.data(), text.size(), "0x%08x", x);
  return text.data();
}

} // namespace

idx_data read_idx(std::filesystem::path const& file, int rank) {
  gz_reader in(file);

  std::vector<std::uint8_t> header(4 * (static_cast<std::size_t>(rank) + 1));
  std::size_t const header_found = in.read(header);
  auto const word = [&header](int which) {
    return big_endian(std::span(header).subspan(4 * static_cast<std::size_t>(which)).first<4>());
  };
  // Two zero bytes, 0x08 for unsigned bytes, the number of dimensions. Told before the length: a file of another kind
  // may well be shorter than the header.
  std::uint32_t const magic = 0x00000800U | static_cast<std::uint32_t>(rank);
  if (header_found >= 4 && word(0) != magic) {
    throw std::runtime_error(in.name() + ": magic number " + hexadecimal(word(0)) +
                             ", but an idx file of unsigned bytes with " + std::to_string(rank) +
                             " dimension(s) begins with " + hexadecimal(magic));
  }
  if (header_found < header.size()) {
    in.cut_short(static_cast<std::int64_t>(header.size()), static_cast<std::int64_t>(header_found));
  }

  idx_data data;
  std::int64_t total = 1;
  for (int d = 0; d < rank; ++d) {
    std::int64_t const extent = word(d + 1);
    data.dimensions.push_back(extent);
    if (__builtin_mul_overflow(total, extent, &total)) {
      throw std::runtime_error(in.name() + ": dimensions in the header are out of all bounds");
    }
  }

  // Piece by piece, so that a header that promises too much costs no memory.
  std::int64_t const piece = std::int64_t(1) << 20;
  std::int64_t found = 0;
  while (found < total) {
    auto const chunk = static_cast<std::size_t>(std::min(piece, total - found));
    data.bytes.resize(static_cast<std::size_t>(found) + chunk);
    std::size_t const got = in.read(std::span(data.bytes).subspan(static_cast<std::size_t>(found)));
    found += static_cast<std::int64_t>(got);
    if (got < chunk) {
      in.cut_short(total + static_cast<std::int64_t>(header.size()), found + static_cast<std::int64_t>(header.size()));
    }
  }
  in.finish();
  return data;
}

} // namespace fashion
