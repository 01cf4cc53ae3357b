// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/dense/wire.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace oktopk {

namespace detail {

/// The vectors of one reduction, in the memory of kernels: `own` is read and `values` written. They are the same vector
/// or do not overlap. `lost`, which may be null, takes what this rank rounds off.
template <gradient_value Value>
struct reduction_call {
  Value const* own;
  Value* values;
  Value* lost;
  std::int64_t count;
  reduction op;
};

/// Room that an algorithm needs on the wire. A wire that sends the values from where they are needs no images.
struct wire_room {
  std::int64_t images = 0;       ///< number of pieces that have an image at one time
  std::int64_t image_values = 0; ///< values of the longest of them
  std::int64_t slots = 0;        ///< number of pieces that may have arrived and wait to be reduced
  std::int64_t slot_values = 0;  ///< values of the longest of them
};

} // namespace detail

/// A wire of the dense algorithms: the form in which values travel. A policy with plain options.
///
/// 1. `lossless` tells whether values arrive with the bits that they were sent with.
/// 2. `is_plain` tells whether nothing is coded. The wire is then used for vectors of every length.
/// 3. `options` is a plain struct that a wire is made from. `describe()` writes the wire down for the ranks to compare;
///    `problem()` is a sentence about options that cannot be, empty where there is none.
/// 4. `name_after(algorithm)` is the name of an algorithm on this wire.
/// 5. `codes(bytes)` tells whether a vector of so many bytes is coded. One that is not goes over the plain wire.
/// 6. `encoded_bytes<Value>(count)` is the size of a message of `count` values.
/// 7. `grain` is the number of values that are coded together. Algorithms cut vectors at multiples of it. `segment()`
/// is
///    the largest number of values that rings send at once.
/// 8. `loses_again()` tells whether coding what was decoded may lose more. `fault_of_coding_anew()` is a sentence where
///    that would let ranks end with different results and the options do not allow it. `ranks_may_differ()` tells
///    whether results of an algorithm that codes finished values once may differ between ranks.
/// 9. `losses_may_overflow<Value>(roundings)` tells whether the losses of so many roundings of one value may overflow.
/// 10. `bound_to<E, Value>` is the wire with its buffers: a model of `detail::bound_wire`. `bind` makes it ready for a
///     call: `bind(exec, comm, policy, call, room)`.
template <class W, class E, class Value>
concept dense_wire = std::default_initializable<W> && std::constructible_from<W, typename W::options const&> &&
                     requires(W const& wire, std::int64_t count, std::string const& algorithm) {
                       { W::lossless } -> std::convertible_to<bool>;
                       { W::is_plain } -> std::convertible_to<bool>;
                       { W::grain } -> std::convertible_to<std::int64_t>;
                       typename W::template bound_to<E, Value>;
                       { wire.describe() } -> std::convertible_to<std::string>;
                       { wire.problem() } -> std::convertible_to<std::string>;
                       { wire.name_after(algorithm) } -> std::convertible_to<std::string>;
                       { wire.codes(count) } -> std::same_as<bool>;
                       { wire.template encoded_bytes<Value>(count) } -> std::same_as<std::int64_t>;
                       { wire.segment() } -> std::same_as<std::int64_t>;
                       { wire.ranks_may_differ() } -> std::same_as<bool>;
                       { wire.loses_again() } -> std::same_as<bool>;
                       { wire.fault_of_coding_anew() } -> std::convertible_to<std::string>;
                       { wire.template losses_may_overflow<Value>(1) } -> std::same_as<bool>;
                     };

namespace detail {

/// A vector of kernels' as messages see it, piece by piece. Every function but `unfold` and `adopt_rounding` waits for
/// the work that it enqueues: a message may start, or a slot may be filled anew, when the function returns.
///
/// 1. `image(p)` is the place that a piece is sent from, and the place where its final values arrive. `keeps_images`
///    tells whether it is apart from the values, so that it stays as it is while they are reduced.
/// 2. `slot(i, p)` is the place where a piece arrives that is to be reduced.
/// 3. `prepare(exec, p, note)` makes the image of a piece from this rank's values. `note` is false where the piece was
///    coded before, so that no new loss is noted.
/// 4. `prepare_share(exec, p, place, sharing)` does the same for values that `sharing` ranks have alike: this rank
/// notes
///    the losses of its share of them, number `place % sharing`.
/// 5. `absorb(exec, i, p)` reduces what has arrived in slot i into the values.
/// 6. `pass_on(exec, i, p)` does the same and makes the image of the result. The values may be out of date after it.
/// 7. `unfold(exec, p)` enqueues the way from an image that has arrived to the values.
/// 8. `adopt_rounding(exec, p)` enqueues that the values become those that other ranks decode of the image.
/// 9. `receives_first()` tells whether receives are posted before pieces are prepared, `receives_ahead()` how many a
///    ring posts at least.
/// 10. `forwards()` tells whether an image that has arrived is sent on as it is. `joins_images` tells whether images of
///     neighbouring pieces make up the image of both.
/// 11. `result_messages()` is the number of messages that hold a result of two partners: 2 where each has coded its
///     half of the sum and no message has the whole.
template <class B, class E>
concept bound_wire = requires(B& wire, B const& ready, E const& exec, piece p) {
  { ready.image(p) } -> std::same_as<std::span<std::byte>>;
  { ready.slot(std::int64_t(0), p) } -> std::same_as<std::span<std::byte>>;
  { wire.prepare(exec, p, true) } -> std::same_as<void>;
  { wire.prepare_share(exec, p, 0, 1) } -> std::same_as<void>;
  { wire.absorb(exec, std::int64_t(0), p) } -> std::same_as<void>;
  { wire.pass_on(exec, std::int64_t(0), p) } -> std::same_as<void>;
  { wire.unfold(exec, p) } -> std::same_as<void>;
  { wire.adopt_rounding(exec, p) } -> std::same_as<void>;
  { ready.receives_first() } -> std::same_as<bool>;
  { ready.receives_ahead() } -> std::same_as<std::int64_t>;
  { ready.forwards() } -> std::same_as<bool>;
  { ready.result_messages() } -> std::same_as<int>;
  { B::keeps_images } -> std::convertible_to<bool>;
  { B::joins_images } -> std::convertible_to<bool>;
};

} // namespace detail

} // namespace oktopk
