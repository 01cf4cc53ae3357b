// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/message_group.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/core/options.hpp>
#include <oktopk/dense/concept.hpp>

#include <algorithm>
#include <array>
#include <limits>

namespace oktopk {

namespace detail {

/// A range of a vector, and its number among the ranges that the vector was cut into.
struct piece {
  std::int64_t index = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

/// A vector cut into `pieces` pieces, of sizes as even as whole blocks allow. The cut is the same on all ranks.
class cut_vector {
public:
  cut_vector() = default;
  cut_vector(std::int64_t count, std::int64_t pieces, std::int64_t block_size = 1)
      : count_(count), pieces_(pieces), block_size_(block_size) {}

  std::int64_t pieces() const { return pieces_; }
  std::int64_t longest() const { return std::min(count_, blocks() / pieces_ * block_size_ + block_size_); }

  piece operator[](std::int64_t index) const {
    std::int64_t const begin = boundary(index);
    return {index, begin, boundary(index + 1) - begin};
  }

private:
  std::int64_t blocks() const { return (count_ + block_size_ - 1) / block_size_; }

  std::int64_t boundary(std::int64_t index) const {
    std::int64_t const each = blocks() / pieces_;
    std::int64_t const left = blocks() % pieces_;
    return std::min(count_, (each * index + left * index / pieces_) * block_size_);
  }

  std::int64_t count_ = 0;
  std::int64_t pieces_ = 1;
  std::int64_t block_size_ = 1;
};

/// The vectors of one reduction, in the memory of kernels: `own` is read and `values` written. They are the same vector
/// or do not overlap. `lost`, which may be null, gets what this rank rounds off.
template <gradient_value Value>
struct reduction_call {
  Value const* own;
  Value* values;
  Value* lost;
  std::int64_t count;
  reduction op;
};

/// The places that an algorithm needs on the wire. A wire that sends the values in place needs none for encoded pieces.
struct wire_capacity {
  std::int64_t encoded_pieces = 0; ///< number of pieces that are kept encoded at one time
  std::int64_t encoded_values = 0; ///< values of the longest of them
  std::int64_t slot_count = 0;     ///< number of pieces that may have arrived and wait to be reduced
  std::int64_t slot_values = 0;    ///< values of the longest of them
};

/// A wire of the dense algorithms: the form in which values travel. A policy with plain options.
///
/// 1. `lossless` tells whether values arrive with the bits that they were sent with; if not, `codec()` is what rounds them.
/// 2. `is_plain` tells whether nothing is coded. The wire is then used for vectors of every length.
/// 3. `options` is a plain struct that a wire is made from. `describe()` returns the wire as a text that the ranks
///    compare; `problem()` is the sentence that says what is wrong with the options, empty if nothing is.
/// 4. `name_after(algorithm)` is the name of an algorithm on this wire.
/// 5. `codes(bytes)` tells whether a vector of `bytes` bytes is coded. A vector that is not is sent over the plain
///    wire.
/// 6. `encoded_bytes<Value>(count)` is the size of a message of `count` values.
/// 7. `block_size` is the number of values that are coded together. Algorithms cut vectors at multiples of it.
///    `segment()` is the largest number of values that rings send at once.
/// 8. `losses_may_overflow<Value>(roundings)` tells whether the losses of `roundings` roundings of one value may
///    overflow.
/// 9. `bound_to<E, Value>` is the wire with its buffers: a model of `detail::bound_wire`.
/// 10. `ranks_may_differ(anew)` tells whether its code loses more each time that a block is coded again and its options
///     let ranks end with different results; `anew` means that the algorithm always codes finished values again.
///     `fault_of_coding_anew()` is a sentence if the options forbid that; else it is empty.
template <class W, class E, class Value>
concept dense_wire = std::default_initializable<W> && made_from_options<W> &&
                     requires(W const& wire, std::int64_t count, std::string const& algorithm) {
                       { W::lossless } -> std::convertible_to<bool>;
                       { W::is_plain } -> std::convertible_to<bool>;
                       { W::block_size } -> std::convertible_to<std::int64_t>;
                       typename W::template bound_to<E, Value>;
                       { wire.describe() } -> std::convertible_to<std::string>;
                       { wire.problem() } -> std::convertible_to<std::string>;
                       { wire.name_after(algorithm) } -> std::convertible_to<std::string>;
                       { wire.codes(count) } -> std::same_as<bool>;
                       { wire.template encoded_bytes<Value>(count) } -> std::same_as<std::int64_t>;
                       { wire.segment() } -> std::same_as<std::int64_t>;
                       { wire.template losses_may_overflow<Value>(1) } -> std::same_as<bool>;
                       { wire.ranks_may_differ(true) } -> std::same_as<bool>;
                       { wire.fault_of_coding_anew() } -> std::convertible_to<std::string>;
                     };

/// A vector in the memory of kernels, as messages see it, piece by piece. `begin(call)` gives it the vectors of a call
/// (`begin(call, policy)` of a wire that codes), `bind(exec, comm, capacity)` then makes the places. Every other function
/// but `decode` and `adopt_rounding` waits for the work that it enqueues: a message may start, or a slot may be filled
/// anew, when the function returns.
///
/// 1. `encoded(p)` is the place that a piece is sent from, and the place where its final values arrive. `keeps_encoded`
///    tells whether that place is apart from the values, so that it does not change while they are reduced.
/// 2. `slot(i, p)` is the place where a piece that is to be reduced arrives.
/// 3. `prepare(exec, p, note)` encodes a piece from this rank's values. `note` is false where the piece was
///    coded before, so that no new loss is noted.
/// 4. `prepare_share(exec, p, place, sharing)` does the same for values that are equal on `sharing` ranks: this rank
///    notes the losses of its share of them, number `place % sharing`.
/// 5. `reduce(exec, i, p)` reduces what has arrived in slot i into the values.
/// 6. `forward(exec, i, p)` does the same and encodes the result. The values may be out of date after it.
/// 7. `decode(exec, p)` enqueues the decoding of an encoded piece that has arrived to the values.
/// 8. `adopt_rounding(exec, p)` enqueues the replacement of the values by those that other ranks decode from the
///    encoded piece.
/// 9. `receives_ahead()` is the number of receives that a ring posts ahead, if it has so many pieces.
/// 10. `joins_encoded` tells whether neighbouring encoded pieces make up the encoded form of both.
/// 11. `result_messages()` is the number of messages that hold a result of two partners: 2 if each partner has coded
///     its half of the sum, so that no message has the whole sum.
/// 12. `codes_each_message()` is true where a receive waits until the next message is encoded, and what has arrived is
///     decoded, and encoded again where it is sent on.
template <class B, class E>
concept bound_wire = requires(B& wire, B const& ready, E const& exec, piece p) {
  { ready.encoded(p) } -> std::same_as<std::span<std::byte>>;
  { ready.slot(std::int64_t(0), p) } -> std::same_as<std::span<std::byte>>;
  { wire.prepare(exec, p, true) } -> std::same_as<void>;
  { wire.prepare_share(exec, p, 0, 1) } -> std::same_as<void>;
  { wire.reduce(exec, std::int64_t(0), p) } -> std::same_as<void>;
  { wire.forward(exec, std::int64_t(0), p) } -> std::same_as<void>;
  { wire.decode(exec, p) } -> std::same_as<void>;
  { wire.adopt_rounding(exec, p) } -> std::same_as<void>;
  { ready.receives_ahead() } -> std::same_as<std::int64_t>;
  { ready.result_messages() } -> std::same_as<int>;
  { ready.codes_each_message() } -> std::same_as<bool>;
  { B::keeps_encoded } -> std::convertible_to<bool>;
  { B::joins_encoded } -> std::convertible_to<bool>;
};

/// The plain wire with its buffers. An encoded piece is the values themselves where the communicator reaches them, so
/// that nothing is copied; else it is in page-locked host memory, and `prepare` and `decode` copy pieces to and from
/// it.
template <execution_space E, gradient_value Value>
class bound_plain_wire {
public:
  static constexpr bool keeps_encoded = false;
  static constexpr bool joins_encoded = true;
  static constexpr std::int64_t receives_ahead() { return 2; }
  static constexpr int result_messages() { return 1; }
  static constexpr bool codes_each_message() { return false; }

  void begin(reduction_call<Value> const& call) { call_ = call; }

  template <communicator Comm>
  void bind(E const& exec, Comm const& comm, wire_capacity const& capacity) {
    staged_ = !comm.template can_access<typename E::memory_space>();
    // Slots begin at multiples of 8 bytes, whatever the width of a value.
    slot_bytes_ = round_up_to_8(capacity.slot_values * std::int64_t(sizeof(Value)));
    slots_.reserve(exec, comm, capacity.slot_count * slot_bytes_);
    if (staged_) {
      encoded_.reserve(exec, call_.count);
    }
  }

  std::span<std::byte> encoded(piece p) const {
    Value* const begin = (staged_ ? encoded_.data() : call_.values) + p.begin;
    return std::as_writable_bytes(std::span<Value>(begin, static_cast<std::size_t>(p.count)));
  }

  std::span<std::byte> slot(std::int64_t index, piece p) const {
    return slots_.wire(index * slot_bytes_, p.count * std::int64_t(sizeof(Value)));
  }

  void prepare(E const& exec, piece p, bool = true) const {
    if (staged_ && p.count > 0) {
      Kokkos::deep_copy(exec, part<wire_space>(encoded_.data(), p), part<memory_space>(call_.values, p));
    }
    fence(exec, "oktopk::dense::prepared");
  }

  void prepare_share(E const& exec, piece p, int, int) const { prepare(exec, p); }

  void reduce(E const& exec, std::int64_t index, piece p) const {
    pull_slot(exec, index, p);
    combine(exec, call_.op, slot_values(index), p.count, call_.values + p.begin);
    fence(exec, "oktopk::dense::absorbed");
  }

  void forward(E const& exec, std::int64_t index, piece p) const {
    reduce(exec, index, p);
    if (staged_) {
      prepare(exec, p);
    }
  }

  void decode(E const& exec, piece p) const {
    if (staged_ && p.count > 0) {
      Kokkos::deep_copy(exec, part<memory_space>(call_.values, p), part<wire_space>(encoded_.data(), p));
    }
  }

  void adopt_rounding(E const&, piece) const {}

  /// The values of a slot, for kernels; call `pull_slot` first.
  Value* slot_values(std::int64_t index) const { return reinterpret_cast<Value*>(slots_.data() + index * slot_bytes_); }

  void pull_slot(E const& exec, std::int64_t index, piece p) const {
    slots_.pull(exec, index * slot_bytes_, p.count * std::int64_t(sizeof(Value)));
  }

private:
  using memory_space = typename E::memory_space;
  using wire_space = host_staging_space<E>;

  template <class Space>
  static array_ref<Value, Space> part(Value* data, piece p) {
    return array_ref<Value, Space>(data + p.begin, static_cast<std::size_t>(p.count));
  }

  reduction_call<Value> call_{};
  bool staged_ = false;
  std::int64_t slot_bytes_ = 0;
  message_buffer<E> slots_{"oktopk::dense::slots"};
  buffer<Value, wire_space> encoded_{"oktopk::dense::image"};
};

/// The wire that sends values as they are, and loses nothing.
struct plain_wire {
  static constexpr bool lossless = true;
  static constexpr bool is_plain = true;
  static constexpr std::int64_t block_size = 1;

  struct options {};

  plain_wire() = default;
  explicit plain_wire(options const&) {}

  static std::string describe() { return "plain"; }
  static std::string problem() { return {}; }
  static bool ranks_may_differ(bool) { return false; }
  static std::string fault_of_coding_anew() { return {}; }
  static std::string name_after(std::string algorithm) { return algorithm; }
  static bool codes(std::int64_t) { return false; }
  static std::int64_t segment() { return std::numeric_limits<std::int64_t>::max(); }

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

/// The base of an algorithm that codes nothing, cuts the vector into chunks and posts some receives ahead; its options
/// and their defaults.
template <class Algorithm, gradient_value Value, std::int64_t ChunkBytes, std::int64_t Ahead>
class in_chunks : public dense_reduce_base {
public:
  static constexpr bool lossless = true;

  struct options {
    std::int64_t chunk_bytes = ChunkBytes; ///< of the longest chunk, at least the size of a value
    std::int64_t ahead = Ahead;            ///< receives under way at once while reducing, at least 1

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("chunk_bytes", how.chunk_bytes, "bytes of a sub-chunk", at_least(sizeof(Value), "is less than a value"));
      visit("ahead", how.ahead, "receives under way at once", at_least(1));
    }
  };

  in_chunks() : in_chunks(options{}) {}
  explicit in_chunks(options how) : options_(how) {}

  std::string describe() const { return describe_options(std::string(Algorithm::name()), options_); }
  std::string problem() const { return fault_of_options(std::string(Algorithm::name()), options_); }

protected:
  std::int64_t values_of_chunk() const { return options_.chunk_bytes / std::int64_t(sizeof(Value)); }
  std::int64_t ahead() const { return options_.ahead; }

private:
  options options_;
};

/// The part of a folded rank, the odd one of a pair (`folded_ranks`), in a reduction of the vector `whole`: it sends
/// its values to its neighbour and receives the result, in one message or in the two of `result_messages()`.
template <execution_space E, communicator Comm, bound_wire<E> Wire>
void run_as_folded_rank(E const& exec, Comm& comm, Wire& wire, piece whole, int result_messages) {
  std::array<typename Comm::bulk_request, 2> received{};
  cancel_on_unwind const guard(comm, received); // also between its messages
  int const neighbour = comm.rank() - 1;
  wire.prepare(exec, whole);
  finish(comm, start_send(exec, comm, wire.encoded(whole), neighbour, phase::reduce));
  received[0] = start_receive(exec, comm, wire.encoded(whole), neighbour, phase::gather);
  if (result_messages == 2) {
    received[1] = start_receive(exec, comm, wire.slot(1, whole), neighbour, phase::gather);
  }
  comm.wait_all(std::span<typename Comm::bulk_request>(received));
  wire.decode(exec, whole);
  if (result_messages == 2) {
    wire.reduce(exec, 1, whole);
  }
}

/// The base class of an algorithm: its wires with their buffers. One is the policy's, the other the plain wire for
/// vectors that the policy does not code.
template <execution_space E, gradient_value Value, class Wire>
  requires dense_wire<Wire, E, Value>
class on_wires : public dense_reduce_base {
public:
  static constexpr bool lossless = Wire::lossless;

  using options = typename Wire::options;

  on_wires() = default;
  explicit on_wires(options const& how) : policy_(how) {}

  std::string describe() const { return policy_.describe(); }
  std::string problem() const { return policy_.problem(); }
  bool ranks_may_differ() const { return policy_.ranks_may_differ(false); }

  std::string rounding() const
    requires(!lossless)
  {
    return policy_.codec().name();
  }

protected:
  Wire const& policy() const { return policy_; }

  /// True if a vector of `count` values is coded.
  bool codes(std::int64_t count) const { return policy_.codes(count * std::int64_t(sizeof(Value))); }

  /// Bytes of a message of `part` values, of a vector of `count`.
  std::int64_t message_bytes(std::int64_t part, std::int64_t count) const {
    return codes(count) ? policy_.template encoded_bytes<Value>(part) : plain_wire::encoded_bytes<Value>(part);
  }

  /// Begins a call: runs `body(wire)` with the policy's wire where `coded`, else with the plain one. `body` binds the
  /// wire, and sends. Prepares the caller's vectors for all algorithms: refuses losses of a maximum or minimum, copies
  /// `own` to the place of the result unless the wire can read it in place, and clears `lost` if nothing will be noted.
  template <class Body>
  void on_wire(E const& exec, bool coded, reduction_call<Value> call, Body&& body) {
    if constexpr (!Wire::is_plain) {
      if (coded) {
        refuse_losses_of(call.op, call.lost);
        if (!coded_.leaves_own_values(policy_)) {
          move_to_result(exec, call);
        }
        coded_.begin(call, policy_);
        return body(coded_);
      }
    }
    begin_lossless(exec, call.op, call.lost, call.count);
    move_to_result(exec, call);
    plain_.begin(call);
    body(plain_);
  }

private:
  static void move_to_result(E const& exec, reduction_call<Value>& call) {
    if (call.own != call.values) {
      copy_values(exec, call.own, call.count, call.values);
      call.own = call.values;
    }
  }

  Wire policy_;
  bound_plain_wire<E, Value> plain_;
  typename Wire::template bound_to<E, Value> coded_; // unused where the wire is plain
};

} // namespace detail
} // namespace oktopk
