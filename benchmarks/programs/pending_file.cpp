// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pending_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace oktopk_programs {

namespace {

// Waits until a file, or what a folder says of its files, is on the disk. Zero, or the reason why not.
int sync_to_disk(std::filesystem::path const& path) {
  int const file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return errno;
  }
  int const reason = fsync(file) == 0 ? 0 : errno;
  close(file);
  // Some file systems keep no order of names and refuse to wait for them.
  return reason == EINVAL ? 0 : reason;
}

} // namespace

pending_file::pending_file(std::filesystem::path name) : name_(std::move(name)) {
  std::error_code ignored;
  if (std::filesystem::is_symlink(name_, ignored)) {
    name_ = std::filesystem::weakly_canonical(name_); // what it names is replaced, and it stays
  }
  auto const found = std::filesystem::status(name_, ignored);
  if (std::filesystem::is_directory(found)) {
    fail("cannot be written: it is a folder");
  }
  if (std::filesystem::exists(found) && !std::filesystem::is_regular_file(found)) {
    fail("cannot be written: it is no regular file, which another one could replace");
  }
  temporary_ = name_;
  temporary_ += ending;
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

void pending_file::commit_to_disk() {
  auto const sync = [this](std::filesystem::path const& path) {
    if (int const reason = sync_to_disk(path); reason != 0) {
      fail(std::string("could not be brought to the disk: ") + std::strerror(reason));
    }
  };
  sync(temporary_);
  commit();
  sync(name_.has_parent_path() ? name_.parent_path() : std::filesystem::path("."));
}

void pending_file::fail(std::string const& what) const {
  throw std::runtime_error("the file " + name_.string() + " " + what);
}

} // namespace oktopk_programs
