// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/codec/concept.hpp>
#include <oktopk/comm/staging.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/dense/combine.hpp>
#include <oktopk/dense/pieces.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace oktopk {

/// Where a collective codes what it sends.
enum class codec_level : std::uint8_t {
  collective, ///< blocks are coded once, and what is finished travels on as it was coded
  message,    ///< each message by itself, as a communication layer that knows nothing of collectives would
};

namespace detail {

inline std::string name_of(codec_level level) {
  return level == codec_level::collective ? "collective" : "message";
}

/// What is wrong with coding at a level; empty where nothing is.
template <class Codec>
std::string fault_of_level(Codec const& codec, codec_level level, bool ranks_may_differ) {
  return level == codec_level::message && !Codec::stable && !ranks_may_differ
             ? codec.name() + " cannot code each message by itself: it loses more each time that a block is coded "
                              "again, and ranks would end with different results"
             : std::string();
}

/// A vector of kernels' as messages see it, coded: in place of `plain_wire`, where every piece has an image of its own.
///
/// At the level of the collective a piece that arrives is decoded, reduced and encoded in one kernel (in two where the
/// codec has none for it), finished pieces go on as they came, and receives are posted before anything is encoded. At
/// the level of messages sending encodes and receiving decodes, into a vector that a second kernel reduces from, and a
/// receive waits until what is to be sent is encoded.
template <execution_space E, gradient_value Value, collective_codec<Value, E> Codec>
class coded_wire {
public:
  bool receives_first() const { return level_ == codec_level::collective; }
  bool forwards() const { return level_ == codec_level::collective; }

  /// Whether partial sums exist as images only, so that what goes in need not lie where the result comes out.
  static constexpr bool leaves_own_values(codec_level level) {
    return recoding_codec<Codec, Value, E> && level == codec_level::collective;
  }

  /// Room for `images` pieces of at most `longest` values, and for `slots` that arrive to be reduced. `own` is what
  /// this rank contributes: `values`, unless `leaves_own_values`.
  template <communicator Comm>
  void bind(E const& exec, Comm const& comm, Codec const& codec, codec_level level, Value const* own, Value* values,
            Value* lost, std::int64_t longest, reduction op, std::int64_t images, std::int64_t slots) {
    codec_ = &codec;
    level_ = level;
    own_ = own;
    values_ = values;
    lost_ = lost;
    op_ = op;
    stride_ = detail::round_up_to_8(bytes(longest));
    images_.reserve(exec, comm, images * stride_);
    slots_.reserve(exec, comm, slots * stride_);
    if (level == codec_level::message) {
      scratch_.reserve(exec, longest);
    }
  }

  std::span<std::byte> image(piece p) const { return images_.wire(p.index * stride_, bytes(p.count)); }
  std::span<std::byte> slot(std::int64_t index, piece p) const { return slots_.wire(index * stride_, bytes(p.count)); }

  /// Encodes a piece, and notes what is lost unless it was coded before.
  void prepare(E const& exec, piece p, bool note = true) const {
    prepare_noting(exec, p, note && lost_ != nullptr ? lost_ + p.begin : nullptr);
  }

  void prepare_noting(E const& exec, piece p, Value* lost) const {
    if (p.count > 0) {
      codec_->encode(exec, own_ + p.begin, p.count, images_.data() + p.index * stride_, lost);
      images_.push(exec, p.index * stride_, bytes(p.count));
    }
    fence(exec, "oktopk::dense::encoded");
  }

  void absorb(E const& exec, std::int64_t index, piece p) const {
    if (p.count == 0) {
      return;
    }
    slots_.pull(exec, index * stride_, bytes(p.count));
    std::byte const* const from = slots_.data() + index * stride_;
    if (level_ == codec_level::message) {
      codec_->decode(exec, from, p.count, scratch_.data());
      combine(exec, op_, static_cast<Value const*>(scratch_.data()), p.count, values_ + p.begin);
    } else {
      with_reduction(
          op_, [&](auto operation) { codec_->decode_and_reduce(exec, operation, from, p.count, values_ + p.begin); });
    }
    fence(exec, "oktopk::dense::absorbed");
  }

  /// Reduces what has arrived in a slot with a piece, and makes the image of the result: in one kernel where the codec
  /// can, which leaves the values behind; `settle` brings them up to date.
  void pass_on(E const& exec, std::int64_t index, piece p) const {
    if constexpr (recoding_codec<Codec, Value, E>) {
      if (level_ == codec_level::collective) {
        recode(exec, index, p);
        return;
      }
    }
    absorb(exec, index, p);
    prepare(exec, p);
  }

  /// Enqueues decoding what has arrived in a slot, as the values.
  void take_slot(E const& exec, std::int64_t index, piece p) const {
    slots_.pull(exec, index * stride_, bytes(p.count));
    codec_->decode(exec, static_cast<std::byte const*>(slots_.data() + index * stride_), p.count, values_ + p.begin);
  }

  /// Enqueues decoding a piece whose image has arrived.
  void unfold(E const& exec, piece p) const {
    images_.pull(exec, p.index * stride_, bytes(p.count));
    decode_image(exec, p);
  }

  /// The values become what others decode of a piece that was prepared here.
  void settle(E const& exec, piece p) const {
    if constexpr (!Codec::lossless) {
      decode_image(exec, p);
    }
  }

private:
  void recode(E const& exec, std::int64_t index, piece p) const {
    if (p.count > 0) {
      slots_.pull(exec, index * stride_, bytes(p.count));
      with_reduction(op_, [&](auto operation) {
        codec_->recode(exec, operation, static_cast<std::byte const*>(slots_.data() + index * stride_), p.count,
                       own_ + p.begin, images_.data() + p.index * stride_,
                       lost_ == nullptr ? nullptr : lost_ + p.begin);
      });
      images_.push(exec, p.index * stride_, bytes(p.count));
    }
    fence(exec, "oktopk::dense::recoded");
  }

  std::int64_t bytes(std::int64_t count) const { return codec_->template encoded_bytes<Value>(count); }

  void decode_image(E const& exec, piece p) const {
    if (p.count > 0) {
      codec_->decode(exec, static_cast<std::byte const*>(images_.data() + p.index * stride_), p.count,
                     values_ + p.begin);
    }
  }

  Codec const* codec_ = nullptr;
  codec_level level_ = codec_level::collective;
  Value const* own_ = nullptr;
  Value* values_ = nullptr;
  Value* lost_ = nullptr;
  reduction op_ = reduction::sum;
  std::int64_t stride_ = 0;
  message_buffer<E> images_{"oktopk::dense::images"};
  message_buffer<E> slots_{"oktopk::dense::coded_slots"};
  buffer<Value, typename E::memory_space> scratch_{"oktopk::dense::decoded"};
};

} // namespace detail

} // namespace oktopk
