// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

namespace oktopk_bench {

/// A file that appears under its name only when it is complete; until then it has another one, and vanishes with this
/// object. Every function gives a sentence where it fails, and an empty string where not.
class pending_file {
public:
  explicit pending_file(std::filesystem::path name);
  pending_file(pending_file&& other) noexcept;
  pending_file& operator=(pending_file&&) = delete;
  ~pending_file();

  std::string open();
  std::string write(std::span<std::byte const> bytes);
  std::string close();
  /// Gives the closed file its name, in place of what had it before.
  std::string commit();

private:
  std::string fault(std::string const& what) const;

  std::filesystem::path name_;
  std::filesystem::path temporary_;
  std::ofstream stream_;
  bool exists_ = false;
};

} // namespace oktopk_bench
