// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dump.hpp"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <span>
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
std::string write_array(std::filesystem::path const& name, std::vector<T> const& values,
                        std::vector<pending_file>& pending) {
  pending_file& file = pending.emplace_back(name);
  std::string fault = file.open();
  if (fault.empty()) {
    fault = file.write(little_endian(values));
  }
  return fault.empty() ? file.close() : fault;
}

} // namespace

std::string fault_of_dump_folder(std::string const& folder) {
  std::error_code failure;
  auto const status = std::filesystem::status(folder, failure);
  if (std::filesystem::exists(status) && !std::filesystem::is_directory(status)) {
    return "--dump " + folder + " is no folder";
  }
  return {};
}

std::string write_dump(std::string const& folder, std::string const& algorithm, int rank, host_result const& result,
                       std::vector<pending_file>& pending) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) {
    return "the folder " + folder + " cannot be made: " + failure.message();
  }
  auto const name = [&](char const* kind) {
    return std::filesystem::path(folder) / (algorithm + "." + std::to_string(rank) + "." + kind);
  };
  std::string fault = write_array(name("indices.i64"), result.indices, pending);
  if (fault.empty()) {
    fault = write_array(name("values.f32"), result.values, pending);
  }
  return fault.empty() ? write_array(name("contributed.i64"), result.contributed, pending) : fault;
}

} // namespace oktopk_bench
