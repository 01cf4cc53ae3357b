// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <filesystem>
#include <fstream>
#include <span>
#include <string>

namespace oktopk_programs {

/// A file that appears under its name only when it is complete; until then it has another one, and vanishes with this
/// object. Every function throws `std::runtime_error` with one sentence where it fails.
class pending_file {
public:
  /// Opens the file for writing. A link stays, and the file that it names is replaced; a device is refused.
  explicit pending_file(std::filesystem::path name);
  pending_file(pending_file&& other) noexcept;
  pending_file& operator=(pending_file&&) = delete;
  ~pending_file();

  void write(std::span<std::byte const> bytes);
  void write(std::string const& text) { write(std::as_bytes(std::span(text))); }
  void close();
  /// Gives the closed file its name, in place of what had it before.
  void commit();
  /// The same so that it outlives a crash of the machine: the name is given once the content is on the disk, and this
  /// returns once the name is there, too. At any moment a reader finds the old file or the new one, whole.
  void commit_to_disk();

  /// The ending that a file has until it is complete.
  static constexpr char const* ending = ".part";

private:
  [[noreturn]] void fail(std::string const& what) const;

  std::filesystem::path name_;
  std::filesystem::path temporary_;
  std::ofstream stream_;
  bool exists_ = false;
};

/// Writes a whole file, bytes or a text.
template <class Content>
void write_whole(std::filesystem::path const& name, Content const& content) {
  pending_file file(name);
  file.write(content);
  file.close();
  file.commit();
}

/// The same for a file that somebody relies on after a crash.
template <class Content>
void write_whole_to_disk(std::filesystem::path const& name, Content const& content) {
  pending_file file(name);
  file.write(content);
  file.close();
  file.commit_to_disk();
}

} // namespace oktopk_programs
