// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

namespace oktopk::detail {

/// FNV-1a of 64 bits (Fowler, Noll, Vo), fed piece by piece: tells texts and files apart, no defence against intent.
class fnv1a {
public:
  void add(void const* data, std::size_t bytes) {
    auto const* const begin = static_cast<unsigned char const*>(data);
    for (std::size_t i = 0; i < bytes; ++i) {
      hash_ = (hash_ ^ begin[i]) * 1099511628211U;
    }
  }

  std::uint64_t value() const { return hash_; }

private:
  std::uint64_t hash_ = 14695981039346656037U;
};

} // namespace oktopk::detail
