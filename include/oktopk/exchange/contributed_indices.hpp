// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/call_context.hpp>
#include <oktopk/core/sparse.hpp>
#include <oktopk/core/workspace.hpp>
#include <oktopk/sparse/sorted_sets.hpp>

#include <cstdint>

namespace oktopk {

/// Indices that a rank selected and that made it into the result (Algorithm 1, line 14). Sends nothing.
template <execution_space E, gradient_index Index>
class contributed_indices {
public:
  using indices_type = array_ref<Index const, typename E::memory_space>;

  /// Both lists ascend; so does the result, which is valid until the next run.
  template <communicator Comm>
  indices_type run(call_context<E, Comm>& call, indices_type const& selected, indices_type const& result) {
    found_.reserve(call.exec, static_cast<std::int64_t>(selected.extent(0)));
    std::int64_t const count = intersection<E, Index>(call.exec, selected, result, found_.data(), room_);
    return indices_type(found_.data(), static_cast<std::size_t>(count));
  }

private:
  buffer<Index, typename E::memory_space> found_{"oktopk::contributed"};
  detail::order_room<E> room_;
};

} // namespace oktopk
