// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/codec/concept.hpp>
#include <oktopk/dense/concept.hpp>
#include <oktopk/dense/wire.hpp>

#include <limits>

namespace oktopk {

namespace detail {

/// The level at which a collective codes what it sends. The level of messages, the naive form to compare with, codes
/// values again after they were decoded; with a codec that is not stable, results may then differ between ranks.
enum class codec_level : std::uint8_t {
  collective, ///< a piece is coded once; a finished one is sent on as it was coded
  message,    ///< each message is coded by itself, as by a communication layer that knows nothing of collectives
};

inline constexpr option_names<codec_level, 2> names_of_levels{
    {{"collective", codec_level::collective}, {"message", codec_level::message}}};

/// A coded wire with its buffers. Every piece has a place of its own for its encoded form, found by its index.
///
/// At the level of the collective a piece that arrives is decoded, reduced and encoded in one kernel (in two if the
/// codec has no such kernel), finished pieces are sent on as they arrived, and receives are posted before anything is
/// encoded. At the level of messages each send encodes, and each receive decodes into a vector from which a second
/// kernel reduces; a receive is posted only after the next message is encoded.
template <execution_space E, gradient_value Value, codec<Value, E> Codec>
class bound_coded_wire {
public:
  static constexpr bool keeps_encoded = true;
  static constexpr bool joins_encoded = false;
  bool codes_each_message() const { return !by_collective(); }
  std::int64_t receives_ahead() const { return by_collective() ? 3 : 2; } // 3: two travel, one is recoded
  int result_messages() const { return by_collective() ? 2 : 1; }

  /// True if a ring keeps partial sums only as encoded pieces. Then the caller's vector need not be copied to the place
  /// of the result first.
  template <class Policy>
  static bool leaves_own_values(Policy const& policy) {
    return recoding_codec<Codec, Value, E> && policy.level() == codec_level::collective;
  }

  template <class Policy>
  void begin(reduction_call<Value> const& call, Policy const& policy) {
    codec_ = &policy.codec();
    level_ = policy.level();
    call_ = call;
  }

  template <communicator Comm>
  void bind(E const& exec, Comm const& comm, wire_capacity const& capacity) {
    encoded_bytes_ = round_up_to_8(bytes(capacity.encoded_values));
    slot_bytes_ = round_up_to_8(bytes(capacity.slot_values));
    encoded_.reserve(exec, comm, capacity.encoded_pieces * encoded_bytes_);
    slots_.reserve(exec, comm, capacity.slot_count * slot_bytes_);
    if (!by_collective()) {
      decoded_.reserve(exec, capacity.slot_values);
    }
  }

  std::span<std::byte> encoded(piece p) const { return encoded_.wire(p.index * encoded_bytes_, bytes(p.count)); }

  std::span<std::byte> slot(std::int64_t index, piece p) const {
    return slots_.wire(index * slot_bytes_, bytes(p.count));
  }

  void prepare(E const& exec, piece p, bool note = true) const { encode(exec, p, note ? lost(p) : nullptr); }

  void prepare_share(E const& exec, piece p, int place, int sharing) {
    if (call_.lost == nullptr || sharing == 1) {
      prepare(exec, p);
      return;
    }
    noted_.reserve(exec, p.count);
    encode(exec, p, noted_.data());
    piece const share = cut_vector(p.count, sharing)[place % sharing];
    value_combination<add, Value> const kernel{noted_.data() + share.begin, call_.lost + p.begin + share.begin};
    Kokkos::parallel_for("oktopk::dense::add_noted", detail::index_range<E>(exec, 0, share.count), kernel);
  }

  void reduce(E const& exec, std::int64_t index, piece p) const {
    if (p.count == 0) {
      return;
    }
    slots_.pull(exec, index * slot_bytes_, bytes(p.count));
    Value* const into = call_.values + p.begin;
    if (by_collective()) {
      with_reduction(call_.op, [&](auto operation) {
        codec_->decode_and_reduce(exec, operation, slot_data(index), p.count, into);
      });
    } else {
      codec_->decode(exec, slot_data(index), p.count, decoded_.data());
      combine(exec, call_.op, static_cast<Value const*>(decoded_.data()), p.count, into);
    }
    fence(exec, "oktopk::dense::absorbed");
  }

  /// In one kernel if the codec can recode. The values are then out of date until `adopt_rounding` is called.
  void forward(E const& exec, std::int64_t index, piece p) const {
    if constexpr (recoding_codec<Codec, Value, E>) {
      if (by_collective()) {
        if (p.count > 0) {
          slots_.pull(exec, index * slot_bytes_, bytes(p.count));
          with_reduction(call_.op, [&](auto operation) {
            codec_->recode(exec, operation, slot_data(index), p.count, call_.own + p.begin, encoded_data(p), lost(p));
          });
          encoded_.push(exec, p.index * encoded_bytes_, bytes(p.count));
        }
        return fence(exec, "oktopk::dense::recoded");
      }
    }
    reduce(exec, index, p);
    prepare(exec, p);
  }

  void decode(E const& exec, piece p) const {
    encoded_.pull(exec, p.index * encoded_bytes_, bytes(p.count));
    decode_piece(exec, p);
  }

  void adopt_rounding(E const& exec, piece p) const {
    if constexpr (!Codec::lossless) {
      decode_piece(exec, p);
    }
  }

private:
  bool by_collective() const { return level_ == codec_level::collective; }

  void encode(E const& exec, piece p, Value* noted) const {
    if (p.count > 0) {
      codec_->encode(exec, call_.own + p.begin, p.count, encoded_data(p), noted);
      encoded_.push(exec, p.index * encoded_bytes_, bytes(p.count));
    }
    fence(exec, "oktopk::dense::encoded");
  }

  void decode_piece(E const& exec, piece p) const {
    if (p.count > 0) {
      codec_->decode(exec, static_cast<std::byte const*>(encoded_data(p)), p.count, call_.values + p.begin);
    }
  }

  std::byte* encoded_data(piece p) const { return encoded_.data() + p.index * encoded_bytes_; }
  std::byte const* slot_data(std::int64_t index) const { return slots_.data() + index * slot_bytes_; }
  Value* lost(piece p) const { return call_.lost == nullptr ? nullptr : call_.lost + p.begin; }
  std::int64_t bytes(std::int64_t count) const { return codec_->template encoded_bytes<Value>(count); }

  Codec const* codec_ = nullptr;
  codec_level level_ = codec_level::collective;
  reduction_call<Value> call_{};
  std::int64_t encoded_bytes_ = 0;
  std::int64_t slot_bytes_ = 0;
  message_buffer<E> encoded_{"oktopk::dense::images"};
  message_buffer<E> slots_{"oktopk::dense::coded_slots"};
  buffer<Value, typename E::memory_space> decoded_{"oktopk::dense::decoded"};
  buffer<Value, typename E::memory_space> noted_{"oktopk::dense::noted"};
};

} // namespace detail

/// The wire that codes values (Zhou et al., collective-level compression).
///
/// Its options are the same on all ranks. Vectors of less than `cutoff_bytes` are sent as they are, because coding
/// costs more than it saves there; `DefaultCutoff` is the default of that option. If the codec cannot keep a value that
/// is not finite, all ranks see NaN or infinity in its place.
template <class Codec, std::int64_t DefaultCutoff = std::int64_t(1) << 19>
class coded_wire {
public:
  static constexpr bool lossless = Codec::lossless;
  static constexpr bool is_plain = false;
  static constexpr std::int64_t block_size = Codec::block_size;

  using codec_level = detail::codec_level;

  struct options {
    typename Codec::options codec = {};
    codec_level level = codec_level::collective;
    std::int64_t segment = std::int64_t(1) << 19; ///< values that a ring codes and sends at once, at least 1
    std::int64_t cutoff_bytes = DefaultCutoff;    ///< vectors with fewer bytes of values are not coded
    /// Lets a codec that is not stable code each message. Only for measurements: results then differ between ranks, and
    /// `lost` contains only the first rounding of a value.
    bool ranks_may_differ = false;

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("codec", how.codec, "options of the code");
      visit("codec_level", how.level, detail::names_of_levels, "code once a collective, or once a message");
      visit("segment", how.segment, "values that are coded and sent at once", at_least(1));
      visit("cutoff_bytes", how.cutoff_bytes, "bytes below which a vector is not coded");
      visit("ranks_may_differ", how.ranks_may_differ, "let an unstable codec code each message");
    }
  };

  coded_wire() : coded_wire(options{}) {}
  explicit coded_wire(options const& how) : options_(how), codec_(detail::configured<Codec>(how.codec)) {}

  Codec const& codec() const { return codec_; }
  codec_level level() const { return options_.level; }
  std::int64_t segment() const { return options_.segment; }
  bool codes(std::int64_t bytes) const { return bytes >= options_.cutoff_bytes; }
  std::string name_after(std::string const& algorithm) const { return algorithm + " of " + std::string(codec_.name()); }

  std::string describe() const { return detail::describe_options(std::string(codec_.name()), options_); }

  std::string problem() const {
    if (std::string of_codec = codec_.problem(); !of_codec.empty()) {
      return of_codec;
    }
    std::string const of_options = detail::fault_of_options("a coded wire", options_);
    return of_options.empty() && options_.level == codec_level::message ? fault_of_coding_anew() : of_options;
  }

  bool ranks_may_differ(bool anew) const {
    return !Codec::stable && (anew || (options_.level == codec_level::message && options_.ranks_may_differ));
  }

  std::string fault_of_coding_anew() const {
    return Codec::stable || options_.ranks_may_differ
               ? std::string()
               : std::string(codec_.name()) + " cannot code each message by itself: it loses more each time that a "
                                              "block is coded again, and ranks would end with different results";
  }

  template <gradient_value Value>
  std::int64_t encoded_bytes(std::int64_t count) const {
    return codec_.template encoded_bytes<Value>(count);
  }

  template <gradient_value Value>
  bool losses_may_overflow(int roundings) const {
    auto const largest = static_cast<double>(std::numeric_limits<Value>::max());
    return codec_.template error_bound<Value>(largest) > largest / roundings;
  }

  template <execution_space E, gradient_value Value>
  using bound_to = detail::bound_coded_wire<E, Value, Codec>;

private:
  options options_;
  Codec codec_;
};

} // namespace oktopk
