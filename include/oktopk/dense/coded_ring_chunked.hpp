// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/dense/coded_wire.hpp>
#include <oktopk/dense/concept.hpp>
#include <oktopk/dense/ring_chunked.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace oktopk {

/// `ring_chunked` with coded messages (Zhou et al., collective-level compression, Algorithm 1).
///
/// In place (or not: `run_from`), on any number of ranks; `count`, `op` and the options are the same on all. A rank
/// encodes each piece of P-1 partial sums, and once the block that it finishes, which goes round the ring as it was
/// encoded: each rank sends 2s(P-1) messages for blocks of s pieces, 2n(P-1)/P values at the codec's size. Every value
/// is rounded once by each rank, and `lost` takes the difference. Where the codec has lost a value that was not finite,
/// all ranks see NaN or infinity in its place. With `codec_level::message` each of the 2(P-1) steps encodes anew: the
/// form to compare with.
///
/// Vectors of less than `cutoff_bytes` go through `ring_chunked` as they are, for there coding costs more than it
/// saves. Keeps the coded vector and three coded pieces beside the caller's; one decoded piece at the level of
/// messages.
template <execution_space E, communicator Comm, gradient_value Value, collective_codec<Value, E> Codec>
class coded_ring_chunked {
public:
  static constexpr bool lossless = Codec::lossless;

  struct options {
    typename detail::options_of<Codec>::type codec = {};
    codec_level level = codec_level::collective;
    std::int64_t segment = std::int64_t(1) << 19;      ///< values that are coded and sent at once, at least 1
    std::int64_t cutoff_bytes = std::int64_t(1) << 19; ///< of values: vectors below are not coded
    /// Lets a codec that is not stable code each message: to measure it, for results differ between ranks then, and
    /// `lost` knows of the first rounding of a value only.
    bool ranks_may_differ = false;
  };

  coded_ring_chunked() : coded_ring_chunked(options{}) {}
  explicit coded_ring_chunked(options how)
      : options_(how), codec_(detail::configured<Codec>(how.codec)), name_("ring_chunked of " + codec_.name()) {}

  std::string name() const { return name_; }

  std::string describe() const {
    return codec_.name() + " (level " + detail::name_of(options_.level) + ", segment " +
           std::to_string(options_.segment) + ", cutoff_bytes " + std::to_string(options_.cutoff_bytes) + ")";
  }

  std::string fault() const {
    std::string of_codec = detail::fault_of_policy(codec_);
    if (!of_codec.empty()) {
      return of_codec;
    }
    return options_.segment < 1 ? "segment = " + std::to_string(options_.segment) + " of ring_chunked is not positive"
                                : detail::fault_of_level(codec_, options_.level, options_.ranks_may_differ);
  }

  /// Whether one rank's result may be other than another's.
  bool ranks_may_differ() const {
    return options_.ranks_may_differ && options_.level == codec_level::message && !Codec::stable;
  }

  /// Every value is rounded once by each rank.
  bool losses_may_overflow(int) const { return detail::losses_may_overflow<Value>(codec_, 1); }

  /// 2(P-1) messages for every piece of a block, each no longer than the codec makes the longest.
  double bound_words(std::int64_t count, int ranks) const {
    if (is_short(count)) {
      return raw_.bound_words(count, ranks);
    }
    std::int64_t const each = pieces(count, ranks);
    std::int64_t const longest = cut(count, ranks).longest();
    return 2.0 * (ranks - 1) * static_cast<double>(each * codec_.template encoded_bytes<Value>(longest)) / 4;
  }

  void run(E const& exec, Comm& comm, Value* values, Value* lost, std::int64_t count, reduction op = reduction::sum) {
    run_from(exec, comm, values, values, lost, count, op);
  }

  /// The same from `own` to `values`, which are the same vector or do not overlap. At the level of the collective, of a
  /// codec that recodes, `own` is read once and needs no copy, for partial sums exist as coded pieces only.
  void run_from(E const& exec, Comm& comm, Value const* own, Value* values, Value* lost, std::int64_t count,
                reduction op = reduction::sum) {
    detail::refuse_losses_of(op, lost);
    bool const coded = !is_short(count) && comm.size() > 1;
    if (own != values && !(coded && wire::leaves_own_values(options_.level))) {
      detail::copy_values(exec, own, count, values);
      own = values;
    }
    if (!coded) {
      raw_.run(exec, comm, values, lost, count, op);
      return;
    }
    detail::cut_vector const vector = cut(count, comm.size());
    std::int64_t const slots = detail::ring_walk<Comm>::slots(ahead(), comm.size(), pieces(count, comm.size()));
    wire_.bind(exec, comm, codec_, options_.level, own, values, lost, vector.longest(), op, vector.pieces(), slots);
    walk_.run(exec, comm, wire_, vector, ahead());
  }

private:
  using wire = detail::coded_wire<E, Value, Codec>;

  // Receives posted: two more are under way while one that has arrived is coded again.
  std::int64_t ahead() const { return options_.level == codec_level::collective ? 3 : 2; }

  bool is_short(std::int64_t count) const { return count * std::int64_t(sizeof(Value)) < options_.cutoff_bytes; }

  // Of a block: at least the two of `ring_chunked`.
  std::int64_t pieces(std::int64_t count, std::int64_t ranks) const {
    std::int64_t const block = (count + ranks - 1) / ranks;
    // Rounded up in a way that no segment is too long for.
    return std::max<std::int64_t>(2, block / options_.segment + (block % options_.segment != 0 ? 1 : 0));
  }

  detail::cut_vector cut(std::int64_t count, std::int64_t ranks) const {
    return detail::cut_vector(count, ranks * pieces(count, ranks), Codec::grain);
  }

  options options_;
  Codec codec_;
  std::string name_;
  ring_chunked<E, Comm, Value> raw_;
  wire wire_;
  detail::ring_walk<Comm> walk_;
};

} // namespace oktopk
