// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "output_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace fashion {

namespace {

struct close_file {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using file_handle = std::unique_ptr<std::FILE, close_file>;

std::filesystem::path partial_name(std::filesystem::path const& path) {
  std::filesystem::path partial = path;
  partial += ".partial";
  return partial;
}

[[noreturn]] void fail(std::filesystem::path const& path, std::string const& why) {
  throw std::runtime_error(path.string() + ": cannot be written: " + why);
}

file_handle create(std::filesystem::path const& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    fail(path, "is a folder");
  }
  file_handle file(std::fopen(partial_name(path).c_str(), "wb"));
  if (!file) {
    fail(path, std::strerror(errno));
  }
  return file;
}

void discard(std::filesystem::path const& path) {
  std::error_code ignored;
  std::filesystem::remove(partial_name(path), ignored);
}

} // namespace

void require_writable(std::filesystem::path const& path) {
  create(path).reset();
  discard(path);
}

void write_whole(std::filesystem::path const& path, std::span<std::byte const> bytes) {
  file_handle file = create(path);
  errno = 0;
  bool const written = std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
  // A full disk may show only when the buffer is flushed.
  bool const closed = std::fclose(file.release()) == 0;
  std::string why = errno != 0 ? std::strerror(errno) : "unknown failure";
  if (written && closed) {
    std::error_code failure;
    std::filesystem::rename(partial_name(path), path, failure);
    if (!failure) {
      return;
    }
    why = failure.message();
  }
  discard(path);
  fail(path, why);
}

void write_whole(std::filesystem::path const& path, std::string const& text) {
  write_whole(path, std::as_bytes(std::span(text)));
}

} // namespace fashion
