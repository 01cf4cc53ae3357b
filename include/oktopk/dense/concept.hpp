// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/core/concepts.hpp>

#include <concepts>
#include <cstdint>
#include <string_view>

namespace oktopk {

/// A collective that sums dense vectors, one algorithm a header.
///
/// * `run(exec, comm, values, lost, count)` — collective, in place; `values` is
/// in the memory of `exec`, `count` the same on all ranks, the result the same to the bit on all ranks, NaN where some
/// rank had NaN. Waits for what it needs of `exec`. A lossy one writes to `lost`, unless it is null, what it rounded
/// off on this rank: the sum of `lost` over ranks plus the result is the sum of what went in.
/// * `bound_words(count, ranks)` — documented bound on the words of 4 bytes
/// that one rank sends.
template <class D, class E, class Comm, class Value>
concept dense_allreduce = std::default_initializable<D> &&
                          requires(D& algorithm, E const& exec, Comm& comm, Value* values, std::int64_t count) {
                            { algorithm.run(exec, comm, values, values, count) } -> std::same_as<void>;
                            { D::name() } -> std::convertible_to<std::string_view>;
                            { D::lossless } -> std::convertible_to<bool>;
                            { D::bound_words(count, 1) } -> std::same_as<double>;
                          };

} // namespace oktopk
