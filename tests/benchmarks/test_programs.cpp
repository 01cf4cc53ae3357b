// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <programs/pending_file.hpp>
#include <programs/progress.hpp>

#include "support/catch.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <thread>

using oktopk_programs::progress;
using std::chrono::milliseconds;

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

std::string fault_of_opening(std::filesystem::path const& name) {
  try {
    oktopk_programs::pending_file{name};
  } catch (std::runtime_error const& fault) {
    return fault.what();
  }
  return {};
}

/// What goes to the standard error stream, which is a file meanwhile, and so no terminal.
std::string said(std::function<void()> const& action) {
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  std::fflush(stderr);
  int const before = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  action();
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  std::rewind(file);
  std::array<char, 4096> bytes{};
  std::string const text(bytes.data(), std::fread(bytes.data(), 1, bytes.size(), file));
  std::fclose(file);
  return text;
}

std::ptrdiff_t lines(std::string const& text) {
  return std::count(text.begin(), text.end(), '\n');
}

std::string steps(bool wanted, std::int64_t total, milliseconds between_lines) {
  return said([&] {
    progress bar(wanted, total, between_lines);
    for (int step = 0; step < 8; ++step) {
      std::this_thread::sleep_for(milliseconds(20));
      bar.advance("loss " + std::to_string(step));
    }
  });
}

} // namespace

TEST_CASE("a pending file has its name only when it is committed, and leaves nothing where it is given up") {
  scratch_folder const folder;
  std::ofstream(folder / "file") << "old";
  oktopk_programs::pending_file(folder / "file").write(std::string("given up"));
  CHECK(folder.files() == 1);
  oktopk_programs::pending_file first(folder / "file");
  oktopk_programs::pending_file moved(std::move(first));
  moved.write("whole");
  moved.close();
  CHECK(contents(folder / "file") == "old");
  moved.commit();
  CHECK(contents(folder / "file") == "whole");
  CHECK(folder.files() == 1);
}

TEST_CASE("a whole file takes the place of what was there, and leaves nothing beside it") {
  bool const to_disk = GENERATE(false, true);
  scratch_folder const folder;
  auto const before = std::filesystem::current_path();
  std::filesystem::current_path(folder / ".");
  for (std::filesystem::path const& name : {folder / "file", std::filesystem::path("file")}) {
    std::ofstream(name) << "old";
    std::ofstream("file.part") << "of a crash";
    auto const write =
        to_disk ? oktopk_programs::write_whole_to_disk<std::string> : oktopk_programs::write_whole<std::string>;
    write(name, "new");
    CHECK(contents(folder / "file") == "new");
    CHECK(folder.files() == 1);
  }
  std::filesystem::current_path(before);
}

TEST_CASE("a pending file says why it cannot be opened") {
  scratch_folder const folder;
  CHECK(fault_of_opening(folder / "absent/file").find("absent/file") != std::string::npos);
  CHECK(fault_of_opening(folder / ".").find("is a folder") != std::string::npos);
  CHECK(folder.files() == 0);
}

TEST_CASE("a link stays, and the file that it names is replaced") {
  scratch_folder const folder;
  std::ofstream(folder / "file") << "old";
  std::filesystem::create_symlink("file", folder / "link");
  oktopk_programs::write_whole(folder / "link", std::string("new"));
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(contents(folder / "file") == "new");
  CHECK(folder.files() == 2);
}

TEST_CASE("what is no file, such as a device, is not replaced") {
  scratch_folder const folder;
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(fault_of_opening(folder / "pipe").find("no regular file") != std::string::npos);
  CHECK(std::filesystem::is_fifo(folder / "pipe"));
  CHECK(folder.files() == 1);
}

TEST_CASE("a file that vanishes before it is on the disk is an error that names it") {
  scratch_folder const folder;
  oktopk_programs::pending_file file(folder / "file");
  file.write("new");
  file.close();
  std::filesystem::remove(folder / "file.part");
  std::string said;
  try {
    file.commit_to_disk();
  } catch (std::runtime_error const& fault) {
    said = fault.what();
  }
  CHECK(said.find("file could not be brought to the disk") != std::string::npos);
  CHECK(folder.files() == 0);
}

TEST_CASE(
    "without a terminal progress is a line for each pause that has passed, with what is left where that is known") {
  auto const total = GENERATE(std::int64_t(8), std::int64_t(0));
  std::string const text = steps(true, total, milliseconds(50));
  CHECK((lines(text) >= 2 && lines(text) < 8));
  CHECK(text.find(total > 0 ? "/8 loss " : "] loss ") != std::string::npos);
  CHECK((text.find(" s left\n") != std::string::npos) == (total > 0));
  CHECK(text.find('\r') == std::string::npos);
}

TEST_CASE("what takes less time than a pause says nothing, nor does another rank") {
  CHECK(steps(true, 8, std::chrono::seconds(30)).empty());
  CHECK(steps(false, 8, milliseconds(1)).empty());
}

TEST_CASE("time that passes within a step is told as well") {
  std::string const text = said([] {
    progress bar(true, 8, milliseconds(20));
    bar.advance("trained");
    for (int part = 0; part < 4; ++part) {
      std::this_thread::sleep_for(milliseconds(15));
      bar.show("evaluating");
    }
  });
  CHECK(lines(text) >= 1);
  CHECK(text.find("1/8 evaluating") != std::string::npos);
}
