// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/core/reduce.hpp>

namespace oktopk::detail {

template <class Operation, gradient_value Value>
struct value_combination {
  Value const* from;
  Value* into;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const { into[i] = Operation::of(into[i], from[i]); }
};

/// Calls `body` with the operation as an object, so that kernels are compiled for each.
template <class Body>
void with_reduction(reduction op, Body const& body) {
  switch (op) {
  case reduction::sum: return body(add{});
  case reduction::max: return body(larger{});
  case reduction::min: return body(smaller{});
  }
}

/// Enqueues `into = into op from`, element by element.
template <execution_space E, gradient_value Value>
void combine(E const& exec, reduction op, Value const* from, std::int64_t count, Value* into) {
  with_reduction(op, [&](auto operation) {
    Kokkos::parallel_for("oktopk::dense::combine", detail::index_range<E>(exec, 0, count),
                         value_combination<decltype(operation), Value>{from, into});
  });
}

/// Enqueues a copy within kernels' memory.
template <execution_space E, gradient_value Value>
void copy_values(E const& exec, Value const* from, std::int64_t count, Value* to) {
  copy_array("oktopk::dense::copy", exec, from, count, to);
}

/// Throws if a maximum or a minimum is given a place for losses: a residual cannot correct what one of these lost.
template <gradient_value Value>
void refuse_losses_of(reduction op, Value const* lost) {
  if (op != reduction::sum && lost != nullptr) {
    throw error(fault::option_out_of_range, "only a sum can tell what it rounded off; give no place for it");
  }
}

/// Begins a lossless reduction: clears the place for losses, if there is one.
template <execution_space E, gradient_value Value>
void begin_lossless(E const& exec, reduction op, Value* lost, std::int64_t count) {
  refuse_losses_of(op, lost);
  if (lost != nullptr) {
    fill_array("oktopk::dense::clear", exec, lost, count, Value(0));
  }
}

} // namespace oktopk::detail
