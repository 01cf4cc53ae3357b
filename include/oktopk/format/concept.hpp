// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/core/sparse.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace oktopk {

/// Base of every sparse format: what one may tell beyond what `sparse_format` asks for. A format that tells it hides the
/// function here, which says what it means not to.
struct format_base {
  /// Values of an entry. Without: 1, which is what gradients have.
  static constexpr std::int64_t width() { return 1; }

  /// Of a format that is not `lossless`: whether it may change values with these options. Without: true.
  static constexpr bool is_lossy() { return true; }

  /// Of a format that is not `lossless`: the name of the code that rounds. Without: "other".
  static std::string rounding() { return "other"; }

  /// Bytes that `count` entries take if they are spread at random over a region of `width` places; `bound` is the most
  /// that they may take. Without: that.
  static double expected_bytes(double, double, double bound) { return bound; }

  /// Whether a message of an entry for every place of its region is their values, in order, and nothing else. Without: false.
  static constexpr bool sends_full_as_values = false;

  /// True if `count` entries of a region are coded as a dense array of all of its places. Without: false.
  static bool is_dense(std::int64_t, region) { return false; }
};

namespace detail {

template <class F>
concept derives_from_format_base =
    std::derived_from<F, format_base> && requires(F const& format, double number, std::int64_t count, region where) {
      { format.width() } -> std::same_as<std::int64_t>;
      { format.is_lossy() } -> std::same_as<bool>;
      { format.expected_bytes(number, number, number) } -> std::same_as<double>;
      { format.is_dense(count, where) } -> std::same_as<bool>;
      { F::sends_full_as_values } -> std::convertible_to<bool>;
    };

template <class F>
concept names_its_types =
    gradient_index<typename F::index_type> && wire_value<typename F::value_type> && requires(F const& format) {
      { format.name() } -> std::convertible_to<std::string>;
    };

template <class F>
concept bounds_its_size = requires(F const& format, std::int64_t count, region where) {
  { F::lossless } -> std::convertible_to<bool>;
  { F::exact_size } -> std::convertible_to<bool>;
  { F::bytes_per_cut } -> std::convertible_to<std::int64_t>;
  { format.max_encoded_bytes(count, where) } -> std::same_as<std::int64_t>;
};

template <class F, class E>
concept encodes_on =
    requires(F const& format, E const& exec,
             sparse_ref<typename F::index_type, typename F::value_type, typename E::memory_space> entries, region where,
             std::byte* out, std::byte const* in, std::int64_t number, typename F::index_type* indices,
             typename F::value_type* values) {
      { format.encode(exec, entries, where, out) } -> std::same_as<std::int64_t>;
      { format.decode(exec, in, number, number, where, indices, values) } -> std::same_as<void>;
    };

} // namespace detail

/// The form of the entries of one region on the wire.
///
/// A small object that algorithms copy into their steps; a format without options is an empty class, and its functions
/// may be static. Its class derives from `format_base`.
///
/// 1. `index_type`, `value_type` — what users of the algorithm see; integers stay integers on the wire. An entry is an
///    index and `width()` values: counts are of entries, arrays of values have `width()` times as many.
/// 2. `name()` — the same on all ranks that exchange messages.
/// 3. `lossless` — true if `decode` always gives back the bits that `encode` got, the sign of a zero included. Values
///    of gradients are finite: nothing else is ever encoded. What a lossy format rounds off returns to the residual of the rank that
///    encoded the entries.
/// 4. `max_encoded_bytes(count, region)` — an upper bound that does not depend on the entries; a receiver makes this
///    much room. Grows with `count`.
/// 5. `bytes_per_cut` — the most additional bytes when a message is cut in two, each with its part of the region: with
///    it the bound of one message becomes a bound of several.
/// 6. `exact_size` — true if `encode` always takes exactly the bound.
/// 7. `encode(exec, entries, region, out)` — encodes ascending entries inside the region, and returns the bytes that
///    they take; `out` is aligned to 8 bytes and in the memory of `exec`. May leave kernels running if the size is
///    exact.
/// 8. `decode(exec, in, bytes, count, region, indices, values)` — enqueues decoding; the count travels apart from the
///    bytes. The same bytes give the same bits on every rank, and finite values wherever `encode` wrote them. Bytes
///    that no `encode` wrote cause no access out of bounds either: every index lies in the region (it may repeat), and
///    an entry that cannot be decoded gets a value that is not finite, or is an `error` (damaged_message). More entries
///    than the region has places are that `error`, too. The caller makes sure that `count` entries fit the arrays.
template <class F>
concept sparse_format = std::copy_constructible<F> && std::default_initializable<F> && detail::names_its_types<F> &&
                        detail::derives_from_format_base<F> && detail::bounds_its_size<F> &&
                        detail::encodes_on<F, Kokkos::DefaultHostExecutionSpace>;

namespace detail {

/// The type of the number of values of an entry: a constant for formats of gradients, so that kernels have no loop over it.
template <class Format>
using width_of = std::conditional_t<requires { requires std::bool_constant<Format::width() == 1>::value; },
                                    width_of_one, std::int64_t>;

/// "float32", "int64"
template <wire_value Value>
std::string value_name() {
  return (std::floating_point<Value>      ? "float"
          : std::unsigned_integral<Value> ? "uint"
                                          : "int") +
         std::to_string(8 * sizeof(Value));
}

/// True if a format may change the values that it encodes.
template <sparse_format Format>
bool is_lossy(Format const& format) {
  return !Format::lossless && format.is_lossy();
}

/// Bytes that `count` entries take if they are spread at random over a region of `width` places.
template <sparse_format Format>
double expected_bytes(Format const& format, double count, double width) {
  if (count <= 0 || width <= 0) {
    return 0;
  }
  auto const whole = static_cast<std::int64_t>(std::ceil(count));
  region const where{0, std::max(whole, static_cast<std::int64_t>(width))};
  double const bound = static_cast<double>(format.max_encoded_bytes(whole, where)) * count / static_cast<double>(whole);
  return format.expected_bytes(count, width, bound);
}

/// The number of elements that coding these entries reads: the entries, or all places if the format has a dense array.
template <sparse_format Format>
double expected_places(Format const& format, double count, double width) {
  return format.is_dense(std::llround(count), {0, std::llround(width)}) ? width : count;
}

// The answer of decoders to bytes that no encoder wrote.

/// The value of an entry that cannot be decoded: a NaN, which every algorithm of gradients reports; of integers the
/// largest.
template <wire_value Value>
KOKKOS_INLINE_FUNCTION Value spoilt_value() {
  return __builtin_bit_cast(Value, static_cast<bits_of<Value>>(~bits_of<Value>(0) >> 1));
}

/// Throws `damaged_message` unless a message has the bytes that its entries take, and the region has a place for each.
inline void expect_bytes(std::int64_t bytes, std::int64_t expected, std::int64_t count, region where) {
  if (count < 0 || count > where.width()) {
    throw error(fault::damaged_message,
                "a message has " + std::to_string(count) + " entries of a region of " + std::to_string(where.width()));
  }
  if (bytes < expected) {
    throw error(fault::damaged_message, std::to_string(bytes) + " bytes arrived for " + std::to_string(count) +
                                            " entries, which take " + std::to_string(expected));
  }
}

} // namespace detail

/// Entries of a format's types in the memory of an execution space.
template <sparse_format Format, execution_space E>
using entries_of = sparse_ref<typename Format::index_type, typename Format::value_type, typename E::memory_space>;

/// Bytes that start every message of a schedule: room for what the receiver must know besides the entries.
inline constexpr std::int64_t message_header_bytes = 8;

} // namespace oktopk
