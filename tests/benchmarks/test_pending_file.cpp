// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <oktopk_bench/pending_file.hpp>

#include "support/catch.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <utility>

namespace {

class scratch_folder {
public:
  scratch_folder() : path_(std::filesystem::temp_directory_path() / ("oktopk_bench." + std::to_string(getpid()))) {
    std::filesystem::create_directory(path_);
  }
  scratch_folder(scratch_folder const&) = delete;
  scratch_folder& operator=(scratch_folder const&) = delete;
  ~scratch_folder() { std::filesystem::remove_all(path_); }

  std::filesystem::path operator/(std::string const& name) const { return path_ / name; }
  auto files() const { return std::distance(std::filesystem::directory_iterator(path_), {}); }

private:
  std::filesystem::path path_;
};

std::string contents(std::filesystem::path const& name) {
  std::ifstream file(name);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::span<std::byte const> bytes_of(std::string const& text) {
  return std::as_bytes(std::span<char const>(text));
}

} // namespace

TEST_CASE("a pending file has its name only when it is committed") {
  scratch_folder const folder;
  std::string const text = "whole";
  oktopk_bench::pending_file first(folder / "file");
  REQUIRE(first.open().empty());
  oktopk_bench::pending_file moved(std::move(first));
  REQUIRE(moved.write(bytes_of(text)).empty());
  REQUIRE(moved.close().empty());
  CHECK_FALSE(std::filesystem::exists(folder / "file"));
  REQUIRE(moved.commit().empty());
  CHECK(contents(folder / "file") == text);
  CHECK(folder.files() == 1);
}

TEST_CASE("a pending file that is given up leaves nothing, and what was there before") {
  scratch_folder const folder;
  std::ofstream(folder / "file") << "old";
  {
    oktopk_bench::pending_file file(folder / "file");
    REQUIRE(file.open().empty());
    REQUIRE(file.write(bytes_of("new")).empty());
  }
  CHECK(contents(folder / "file") == "old");
  CHECK(folder.files() == 1);
}

TEST_CASE("a pending file says why it cannot be opened") {
  scratch_folder const folder;
  CHECK(oktopk_bench::pending_file(folder / "absent/file").open().find("absent/file") != std::string::npos);
  CHECK(oktopk_bench::pending_file(folder / ".").open().find("is a folder") != std::string::npos);
  CHECK(folder.files() == 0);
}
