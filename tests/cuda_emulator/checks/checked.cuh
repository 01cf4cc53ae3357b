// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What the programs that check the emulator share.

#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using u32 = std::uint32_t;
using u64 = unsigned long long;
using i32 = std::int32_t;

inline int faults = 0;

template <typename T>
struct device_array {
  explicit device_array(std::size_t count) : size(count) { cudaMalloc(&data, size * sizeof(T)); }
  explicit device_array(std::vector<T> const& values) : device_array(values.size()) {
    cudaMemcpy(data, values.data(), size * sizeof(T), cudaMemcpyHostToDevice);
  }
  device_array(device_array const&) = delete;
  device_array& operator=(device_array const&) = delete;
  ~device_array() { cudaFree(data); }

  std::vector<T> on_host() const {
    std::vector<T> values(size);
    cudaMemcpy(values.data(), data, size * sizeof(T), cudaMemcpyDeviceToHost);
    return values;
  }

  T* data = nullptr;
  std::size_t size;
};

inline void expect(bool holds, char const* what) {
  if (!holds) {
    std::printf("%s\n", what);
    ++faults;
  }
}
