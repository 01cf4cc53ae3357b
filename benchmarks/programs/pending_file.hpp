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
  /// Opens the file for writing.
  explicit pending_file(std::filesystem::path name);
  pending_file(pending_file&& other) noexcept;
  pending_file& operator=(pending_file&&) = delete;
  ~pending_file();

  void write(std::span<std::byte const> bytes);
  void write(std::string const& text) { write(std::as_bytes(std::span(text))); }
  void close();
  /// Gives the closed file its name, in place of what had it before.
  void commit();

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

} // namespace oktopk_programs
