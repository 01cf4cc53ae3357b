// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/staging.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/dense/combine.hpp>
#include <oktopk/dense/pieces.hpp>
#include <oktopk/dense/wire/concept.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

namespace oktopk {

struct plain_wire;

namespace detail {

/// The plain wire with its buffers. An image is the values themselves where the communicator reaches them, so that
/// nothing is copied; else it is in page-locked host memory, and `prepare` and `unfold` copy pieces to and from it.
template <execution_space E, gradient_value Value>
class bound_plain_wire {
public:
  static constexpr bool keeps_images = false;
  static constexpr bool joins_images = true;
  static constexpr bool receives_first() { return true; }
  static constexpr std::int64_t receives_ahead() { return 2; }
  static constexpr bool forwards() { return true; }
  static constexpr int result_messages() { return 1; }

  template <communicator Comm>
  void bind(E const& exec, Comm const& comm, plain_wire const&, reduction_call<Value> const& call,
            wire_room const& room) {
    staged_ = !comm.template reaches<typename E::memory_space>();
    values_ = call.values;
    op_ = call.op;
    // Places for numbers of 8 bytes, whatever the width of a value.
    slot_bytes_ = round_up_to_8(room.slot_values * std::int64_t(sizeof(Value)));
    slots_.reserve(exec, comm, room.slots * slot_bytes_);
    if (staged_) {
      image_.reserve(exec, call.count);
    }
  }

  std::span<std::byte> image(piece p) const {
    Value* const data = staged_ ? image_.data() : values_;
    return std::as_writable_bytes(std::span<Value>(data + p.begin, static_cast<std::size_t>(p.count)));
  }

  std::span<std::byte> slot(std::int64_t index, piece p) const {
    return slots_.wire(index * slot_bytes_, p.count * std::int64_t(sizeof(Value)));
  }

  void prepare(E const& exec, piece p, bool = true) const {
    if (staged_ && p.count > 0) {
      Kokkos::deep_copy(exec, on_wire(p), in_kernels(p));
    }
    fence(exec, "oktopk::dense::prepared");
  }

  void prepare_share(E const& exec, piece p, int, int) const { prepare(exec, p); }

  void absorb(E const& exec, std::int64_t index, piece p) const {
    pull_slot(exec, index, p);
    combine(exec, op_, slot_values(index), p.count, values_ + p.begin);
    fence(exec, "oktopk::dense::absorbed");
  }

  void pass_on(E const& exec, std::int64_t index, piece p) const {
    absorb(exec, index, p);
    if (staged_) {
      prepare(exec, p);
    }
  }

  void unfold(E const& exec, piece p) const {
    if (staged_ && p.count > 0) {
      Kokkos::deep_copy(exec, in_kernels(p), on_wire(p));
    }
  }

  void adopt_rounding(E const&, piece) const {}

  /// The values of a slot, for kernels; `pull_slot` first.
  Value* slot_values(std::int64_t index) const { return reinterpret_cast<Value*>(slots_.data() + index * slot_bytes_); }

  void pull_slot(E const& exec, std::int64_t index, piece p) const {
    slots_.pull(exec, index * slot_bytes_, p.count * std::int64_t(sizeof(Value)));
  }

private:
  using wire_space = host_staging_space<E>;

  array_ref<Value, wire_space> on_wire(piece p) const {
    return array_ref<Value, wire_space>(image_.data() + p.begin, static_cast<std::size_t>(p.count));
  }

  array_ref<Value, typename E::memory_space> in_kernels(piece p) const {
    return array_ref<Value, typename E::memory_space>(values_ + p.begin, static_cast<std::size_t>(p.count));
  }

  Value* values_ = nullptr;
  reduction op_ = reduction::sum;
  bool staged_ = false;
  std::int64_t slot_bytes_ = 0;
  message_buffer<E> slots_{"oktopk::dense::slots"};
  buffer<Value, wire_space> image_{"oktopk::dense::image"};
};

} // namespace detail

/// The wire that sends values as they are, and loses nothing.
struct plain_wire {
  static constexpr bool lossless = true;
  static constexpr bool is_plain = true;
  static constexpr std::int64_t grain = 1;

  struct options {};

  plain_wire() = default;
  explicit plain_wire(options const&) {}

  static std::string describe() { return "plain"; }
  static std::string problem() { return {}; }
  static std::string name_after(std::string algorithm) { return algorithm; }
  static bool codes(std::int64_t) { return false; }
  static std::int64_t segment() { return std::numeric_limits<std::int64_t>::max(); }
  static bool ranks_may_differ() { return false; }
  static bool loses_again() { return false; }
  static std::string fault_of_coding_anew() { return {}; }

  template <gradient_value Value>
  static std::int64_t encoded_bytes(std::int64_t count) {
    return count * std::int64_t(sizeof(Value));
  }

  template <gradient_value>
  static bool losses_may_overflow(int) {
    return false;
  }

  template <execution_space E, gradient_value Value>
  using bound_to = detail::bound_plain_wire<E, Value>;
};

} // namespace oktopk
