// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "result.hpp"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <system_error>

namespace oktopk_bench {
namespace {

template <class T>
std::vector<std::byte> little_endian(std::vector<T> const& values) {
  auto const bytes = std::as_bytes(std::span<T const>(values));
  std::vector<std::byte> result(bytes.begin(), bytes.end());
  if constexpr (std::endian::native == std::endian::big) {
    for (auto at = result.begin(); at != result.end(); at += sizeof(T)) {
      std::reverse(at, at + sizeof(T));
    }
  }
  return result;
}

template <class T>
void write_array(std::filesystem::path const& name, std::vector<T> const& values,
                 std::vector<oktopk_programs::pending_file>& pending) {
  oktopk_programs::pending_file& file = pending.emplace_back(name);
  file.write(little_endian(values));
  file.close();
}

} // namespace

void check_dump_folder(std::string const& folder) {
  std::error_code failure;
  auto const status = std::filesystem::status(folder, failure);
  if (std::filesystem::exists(status) && !std::filesystem::is_directory(status)) {
    throw std::runtime_error("--dump " + folder + " is no folder");
  }
}

void write_dump(std::string const& folder, std::string const& algorithm, int rank, host_result const& result,
                std::vector<oktopk_programs::pending_file>& pending) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) {
    throw std::runtime_error("the folder " + folder + " cannot be made: " + failure.message());
  }
  auto const name = [&](char const* kind) {
    return std::filesystem::path(folder) / (algorithm + "." + std::to_string(rank) + "." + kind);
  };
  write_array(name("indices.i64"), result.indices, pending);
  write_array(name("values.f32"), result.values, pending);
  write_array(name("contributed.i64"), result.contributed, pending);
}

} // namespace oktopk_bench
