// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/cancel_on_unwind.hpp>
#include <oktopk/dense/concept.hpp>
#include <oktopk/dense/ring_pipeline.hpp>
#include <oktopk/dense/wire/plain.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace oktopk {

/// Reduction of dense vectors around a ring in sub-chunks, so that receiving, reducing and sending overlap (Ueno 2018,
/// PFN's allreduce prototype): the blocks of `ring_chunked`, cut into sub-chunks of at most `chunk_bytes`.
///
/// In place, on any number of ranks; `count`, `op` and the options are the same on all. With s sub-chunks to a block
/// of n/P values each rank sends 2s(P-1) messages and 2n(P-1)/P values. A block has at least two sub-chunks, so that
/// one travels while the other is reduced: up to 2P sub-chunks, a short vector is sent as `ring_chunked` sends it.
/// Keeps `ahead` sub-chunks beside the vector.
template <execution_space E, communicator Comm, gradient_value Value>
class ring_pipelined {
public:
  static constexpr bool lossless = true;

  struct options {
    std::int64_t chunk_bytes = std::int64_t(1) << 20; ///< of a sub-chunk, at least the size of a value
    std::int64_t ahead = 4;                           ///< receives under way at once, at least 1
  };

  ring_pipelined() : ring_pipelined(options{}) {}
  explicit ring_pipelined(options how) : options_(how) {}

  static std::string_view name() { return "ring_pipelined"; }

  std::string describe() const {
    return "chunks of " + std::to_string(options_.chunk_bytes) + " bytes, " + std::to_string(options_.ahead) + " ahead";
  }

  std::string problem() const {
    if (options_.chunk_bytes < std::int64_t(sizeof(Value))) {
      return "chunk_bytes = " + std::to_string(options_.chunk_bytes) + " of ring_pipelined is less than a value";
    }
    return options_.ahead < 1 ? "ahead = " + std::to_string(options_.ahead) + " of ring_pipelined is not positive"
                              : std::string();
  }

  /// 2n(P-1)/P values, and what rounding to whole sub-chunks adds.
  double bound_words(std::int64_t count, int ranks) const {
    auto const rounding = static_cast<double>(2 * (ranks - 1) * pieces(count, ranks));
    return (2 * static_cast<double>(count) * (ranks - 1) / ranks + rounding) * (sizeof(Value) / 4.0);
  }

  void run(E const& exec, Comm& comm, Value* values, Value* lost, std::int64_t count, reduction op = reduction::sum) {
    detail::begin_lossless(exec, op, lost, count);
    std::int64_t const ranks = comm.size();
    std::int64_t const each = pieces(count, comm.size());
    detail::cut_vector const vector(count, ranks * each);
    std::int64_t const slots = detail::ring_pipeline<Comm>::slots(options_.ahead, ranks, each);
    cancel_on_unwind const alone(comm); // room may be missing on one rank
    wire_.bind(exec, comm, plain_wire(), {values, values, lost, count, op},
               {vector.pieces(), vector.longest(), slots, vector.longest()});
    ring_.run(exec, comm, wire_, vector, options_.ahead);
  }

private:
  std::int64_t pieces(std::int64_t count, int ranks) const {
    std::int64_t const block = (count + ranks - 1) / ranks;
    std::int64_t const chunk = options_.chunk_bytes / std::int64_t(sizeof(Value));
    return std::max<std::int64_t>(2, block / chunk + (block % chunk != 0 ? 1 : 0));
  }

  options options_;
  detail::bound_plain_wire<E, Value> wire_;
  detail::ring_pipeline<Comm> ring_;
};

} // namespace oktopk
