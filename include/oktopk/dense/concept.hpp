// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/core/options.hpp>

namespace oktopk {

/// Base of every dense allreduce: what one may tell beyond what `dense_allreduce` asks for. An algorithm that tells it
/// hides the member here, which says what it means not to. With `options` of its own, a plain struct that it is made from,
/// it has `describe()`, a text that the ranks compare, and `problem()`, a sentence about options that are wrong.
struct dense_reduce_base : detail::without_options {
  /// True if it leaves all messages to the communicator, so that it runs over one that orders groups by the instance.
  /// Without: false.
  static constexpr bool starts_no_messages = false;

  /// Of one that is not `lossless`: the name of the code that rounds, with its options. Without: "other".
  static std::string rounding() { return "other"; }

  /// Messages that a rank sends in all, where these are more than `expected_messages`. Without: they are not.
  static double sent_messages(std::int64_t, int) { return 0; }

  /// True if its options let ranks end with different results. Without: false.
  static bool ranks_may_differ() { return false; }

  /// True if `lost` may hold values that are not finite though inputs and sums are; the same on all ranks. Without:
  /// false.
  static bool losses_may_overflow(int) { return false; }
};

namespace detail {

template <class D>
concept derives_from_dense_reduce_base =
    std::derived_from<D, dense_reduce_base> && requires(D const& algorithm, std::int64_t count) {
      typename D::options;
      { algorithm.problem() } -> std::convertible_to<std::string>;
      { D::starts_no_messages } -> std::convertible_to<bool>;
      { algorithm.sent_messages(count, 1) } -> std::same_as<double>;
      { algorithm.ranks_may_differ() } -> std::same_as<bool>;
      { algorithm.losses_may_overflow(1) } -> std::same_as<bool>;
    };

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

} // namespace detail

/// A collective that sums dense vectors, one algorithm a header.
///
/// 1. `run(exec, comm, values, lost, count)` is collective and in place. `values` is in the memory of `exec`, and
///    `count` is the same on all ranks. The result is the same to the bit on all ranks, and NaN where a rank had NaN.
///    The call waits for the work of `exec` that it needs.
/// 2. `lossless` tells whether the sum is exact except for the rounding of its additions. A lossy algorithm writes what
///    it rounded off on this rank to `lost`, unless `lost` is null: the sum of `lost` over ranks plus the result is the
///    sum of the inputs; `rounding()` is the name of its code, with options. A lossless algorithm clears `lost`, or leaves
///    it as it is.
/// 3. `name()` tells the algorithm and its wire, the same on all ranks.
/// 4. `bound_words(count, ranks)` bounds the words of 4 bytes that one rank sends.
/// 5. `expected_messages(count, ranks)` is the number of messages of a rank that follow one another.
///
/// Its class derives from `dense_reduce_base`.
///
/// See tests/dense/suite.hpp for the tests that every model passes.
template <class D, class E, class Comm, class Value>
concept dense_allreduce = std::default_initializable<D> && detail::derives_from_dense_reduce_base<D> &&
                          requires(D& algorithm, E const& exec, Comm& comm, Value* values, std::int64_t count) {
                            { algorithm.run(exec, comm, values, values, count) } -> std::same_as<void>;
                            { algorithm.name() } -> std::convertible_to<std::string_view>;
                            { D::lossless } -> std::convertible_to<bool>;
                            { algorithm.bound_words(count, 1) } -> std::same_as<double>;
                            { algorithm.expected_messages(count, 1) } -> std::same_as<double>;
                          };

namespace detail {

/// A dense allreduce that can read its input from another vector than the result's.
///
/// 1. `run_from(exec, comm, own, values, lost, count)` does what `run` does with a copy of `own` in `values`. `own` is
///    only read; it is `values`, or does not overlap it.
template <class D, class E, class Comm, class Value>
concept dense_allreduce_out_of_place =
    dense_allreduce<D, E, Comm, Value> &&
    requires(D& algorithm, E const& exec, Comm& comm, Value const* own, Value* values, std::int64_t count) {
      { algorithm.run_from(exec, comm, own, values, values, count) } -> std::same_as<void>;
    };

/// A dense allreduce that forms maxima and minima as well.
///
/// 1. A last argument of `run` is the operation, the same on all ranks.
/// 2. `lost` is null where the operation is not the sum.
template <class D, class E, class Comm, class Value>
concept dense_reduction =
    dense_allreduce<D, E, Comm, Value> &&
    requires(D& algorithm, E const& exec, Comm& comm, Value* values, std::int64_t count, reduction op) {
      { algorithm.run(exec, comm, values, values, count, op) } -> std::same_as<void>;
    };

} // namespace detail
} // namespace oktopk
