// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/workspace.hpp>

namespace oktopk::detail {

/// Room for entries, as two arrays that only grow.
template <gradient_index Index, gradient_value Value, execution_space E>
struct entries_buffer {
  using memory_space = typename E::memory_space;
  using entries_type = sparse_ref<Index, Value, memory_space>;

  explicit entries_buffer(char const* label) : indices(label), values(label) {}

  buffer<Index, memory_space> indices;
  buffer<Value, memory_space> values;

  /// May lose the entries that are there.
  void reserve(E const& exec, std::int64_t count) {
    indices.reserve(exec, count);
    values.reserve(exec, count);
  }

  entries_type entries(std::int64_t count) const { return {indices.data(), values.data(), count}; }
};

} // namespace oktopk::detail
