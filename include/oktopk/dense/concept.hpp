// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/core/concepts.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace oktopk {

namespace detail {

struct no_options {};

template <class T>
struct options_of {
  using type = no_options;
};

template <class T>
  requires requires { typename T::options; }
struct options_of<T> {
  using type = typename T::options;
};

/// A policy made from its options, where it has some.
template <class T>
T configured(typename options_of<T>::type const& how) {
  if constexpr (requires { typename T::options; }) {
    return T(how);
  } else {
    return T();
  }
}

/// Whether what `roundings` of a codec lose of one value can overflow, though the value and what is decoded do not.
template <gradient_value Value, class Codec>
bool losses_may_overflow(Codec const& codec, int roundings) {
  auto const largest = static_cast<double>(std::numeric_limits<Value>::max());
  return codec.template error_bound<Value>(largest) > largest / roundings;
}

/// What is wrong with a policy's options; empty where it has none.
template <class T>
std::string fault_of_policy(T const& policy) {
  if constexpr (requires { policy.fault(); }) {
    return policy.fault();
  } else {
    return {};
  }
}

} // namespace detail

/// A collective that sums dense vectors, one algorithm a header.
///
/// * `run(exec, comm, values, lost, count)` — collective, in place; `values` is
/// in the memory of `exec`, `count` the same on all ranks, the result the same to the bit on all ranks, NaN where some
/// rank had NaN. Waits for what it needs of `exec`. A lossy one writes to `lost`, unless it is null, what it rounded
/// off on this rank: the sum of `lost` over ranks plus the result is the sum of what went in.
/// * `name()`, `lossless` — the same on ranks that are to understand each other.
/// * `bound_words(count, ranks)` — documented bound on the words of 4 bytes
/// that one rank sends.
///
/// A lossy one that may write what is not finite to `lost`, although values and sums are finite, says so with
/// `losses_may_overflow(ranks)`, the same on all ranks.
///
/// One that has choices to make has `options`, a plain struct that it is made from; `describe()` writes them down for
/// the ranks to compare, `fault()` says what is wrong with them.
template <class D, class E, class Comm, class Value>
concept dense_allreduce = std::default_initializable<D> &&
                          requires(D& algorithm, E const& exec, Comm& comm, Value* values, std::int64_t count) {
                            { algorithm.run(exec, comm, values, values, count) } -> std::same_as<void>;
                            { algorithm.name() } -> std::convertible_to<std::string_view>;
                            { D::lossless } -> std::convertible_to<bool>;
                            { algorithm.bound_words(count, 1) } -> std::same_as<double>;
                          };

/// A dense allreduce that need not find what it sums where the result will be: `run_from(exec, comm, own, values, lost,
/// count)` leaves `own` as it is, which saves copying it; `own` is `values` or does not overlap it.
template <class D, class E, class Comm, class Value>
concept dense_allreduce_out_of_place =
    dense_allreduce<D, E, Comm, Value> &&
    requires(D& algorithm, E const& exec, Comm& comm, Value const* own, Value* values, std::int64_t count) {
      { algorithm.run_from(exec, comm, own, values, values, count) } -> std::same_as<void>;
    };

/// A dense allreduce that forms maxima and minima as well: a last argument of `run` says which, the same on all ranks.
/// `lost` is for sums and null for others.
template <class D, class E, class Comm, class Value>
concept dense_reduction =
    dense_allreduce<D, E, Comm, Value> &&
    requires(D& algorithm, E const& exec, Comm& comm, Value* values, std::int64_t count, reduction op) {
      { algorithm.run(exec, comm, values, values, count, op) } -> std::same_as<void>;
    };

} // namespace oktopk
