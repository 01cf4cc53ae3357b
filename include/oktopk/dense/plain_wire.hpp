// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/staging.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/dense/combine.hpp>
#include <oktopk/dense/pieces.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace oktopk::detail {

/// A vector of kernels' as messages see it: the values themselves where the communicator reaches them, so that nothing
/// is copied; else an image in page-locked host memory, which `prepare` and `unfold` copy to and from piece by piece.
///
/// Beside it are slots for what arrives to be reduced. What every function but `unfold` has enqueued is done when it
/// returns: a message may start, a slot may be filled anew.
template <execution_space E, gradient_value Value>
class plain_wire {
public:
  /// Receives are posted before pieces are prepared; what has arrived for good is sent on as it is.
  static constexpr bool receives_first() { return true; }
  static constexpr bool forwards() { return true; }

  template <communicator Comm>
  void bind(E const& exec, Comm const& comm, Value* values, std::int64_t count, reduction op, std::int64_t slots,
            std::int64_t slot_values) {
    staged_ = !comm.template reaches<typename E::memory_space>();
    values_ = values;
    op_ = op;
    // Places for numbers of 8 bytes, whatever the width of a value.
    slot_bytes_ = detail::round_up_to_8(slot_values * std::int64_t(sizeof(Value)));
    slots_.reserve(exec, comm, slots * slot_bytes_);
    if (staged_) {
      image_.reserve(exec, count);
    }
  }

  /// What is sent of the vector, and where the final values of a piece arrive.
  std::span<std::byte> image(piece p) const {
    Value* const data = staged_ ? image_.data() : values_;
    return std::as_writable_bytes(std::span<Value>(data + p.begin, static_cast<std::size_t>(p.count)));
  }

  std::span<std::byte> slot(std::int64_t index, piece p) const {
    return slots_.wire(index * slot_bytes_, p.count * std::int64_t(sizeof(Value)));
  }

  /// Makes the image of a piece.
  void prepare(E const& exec, piece p, bool = true) const {
    if (staged_ && p.count > 0) {
      Kokkos::deep_copy(exec, on_wire(p), in_kernels(p));
    }
    fence(exec, "oktopk::dense::prepared");
  }

  /// Reduces what has arrived in a slot into the vector.
  void absorb(E const& exec, std::int64_t index, piece p) const {
    slots_.pull(exec, index * slot_bytes_, p.count * std::int64_t(sizeof(Value)));
    combine(exec, op_, slot_values(index), p.count, values_ + p.begin);
    fence(exec, "oktopk::dense::absorbed");
  }

  /// Reduces what has arrived in a slot, and makes the image of the result.
  void pass_on(E const& exec, std::int64_t index, piece p) const {
    absorb(exec, index, p);
    if (staged_) {
      prepare(exec, p);
    }
  }

  /// The values of a slot, for kernels; `pull_slot` first.
  Value* slot_values(std::int64_t index) const { return reinterpret_cast<Value*>(slots_.data() + index * slot_bytes_); }

  void pull_slot(E const& exec, std::int64_t index, piece p) const {
    slots_.pull(exec, index * slot_bytes_, p.count * std::int64_t(sizeof(Value)));
  }

  /// Enqueues the way back of a piece whose image has arrived.
  void unfold(E const& exec, piece p) const {
    if (staged_ && p.count > 0) {
      Kokkos::deep_copy(exec, in_kernels(p), on_wire(p));
    }
  }

  /// What others have of a piece, this rank has too.
  void settle(E const&, piece) const {}

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

} // namespace oktopk::detail
