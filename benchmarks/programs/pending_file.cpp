// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pending_file.hpp"

#include <stdexcept>
#include <system_error>
#include <utility>

namespace oktopk_programs {

pending_file::pending_file(std::filesystem::path name) : name_(std::move(name)), temporary_(name_) {
  temporary_ += ".part";
  std::error_code ignored;
  if (std::filesystem::is_directory(name_, ignored)) {
    fail("cannot be written: it is a folder");
  }
  stream_.open(temporary_, std::ios::binary | std::ios::trunc);
  exists_ = stream_.is_open();
  if (!exists_) {
    fail("cannot be written; does its folder exist, and may you write there?");
  }
}

pending_file::pending_file(pending_file&& other) noexcept
    : name_(std::move(other.name_)), temporary_(std::move(other.temporary_)), stream_(std::move(other.stream_)),
      exists_(std::exchange(other.exists_, false)) {
}

pending_file::~pending_file() {
  if (exists_) {
    stream_.close();
    std::error_code ignored;
    std::filesystem::remove(temporary_, ignored);
  }
}

void pending_file::write(std::span<std::byte const> bytes) {
  stream_.write(reinterpret_cast<char const*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!stream_) {
    fail("could not be written whole; is the disk full?");
  }
}

void pending_file::close() {
  stream_.close();
  if (!stream_) {
    fail("could not be written whole; is the disk full?");
  }
}

void pending_file::commit() {
  std::error_code failure;
  std::filesystem::rename(temporary_, name_, failure);
  if (failure) {
    fail("could not be given its name: " + failure.message());
  }
  exists_ = false;
}

void pending_file::fail(std::string const& what) const {
  throw std::runtime_error("the file " + name_.string() + " " + what);
}

} // namespace oktopk_programs
