// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/codec/identity.hpp>
#include <oktopk/comm/collectives.hpp>
#include <oktopk/comm/staging.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/core/kokkos_ext/range.hpp>
#include <oktopk/dense/concept.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace oktopk {

/// Sum of dense vectors by Rabenseifner's algorithm (Thakur et al. 2005): reduce-scatter by recursive halving,
/// allgather by recursive doubling.
///
/// In place, on any number of ranks. Where P is a power of two each rank sends 2n(P-1)/P values in 2 log2 P messages.
/// Where it is not, 2^m being the largest power of two below, the first 2(P - 2^m) ranks fold in pairs: the odd one of
/// a pair sends n values in one message, the even one n values in one message more than the others. Every block of n /
/// 2^m is summed by one rank in a fixed order and sent to the rest, so the result is the same to the bit everywhere.
///
/// With a lossy codec each rank rounds every element once: what it sends away as a partial sum, or the sum it owns.
/// `lost` takes the difference, so that the sum over ranks of `lost` plus the result is what went in.
template <execution_space E, class Comm, gradient_value Value, class Codec = identity>
  requires communicator<Comm> && codec<Codec, Value, E>
class rabenseifner {
public:
  static constexpr bool lossless = Codec::lossless;

  static std::string_view name() {
    static std::string const text =
        "dense_" + (std::is_same_v<Codec, identity> ? std::string("rabenseifner") : std::string(Codec::name()));
    return text;
  }

  /// 2n(P-1)/P values with the largest power of two for P, n more where P is none, and the rounding of halves.
  static double bound_words(std::int64_t count, int ranks) {
    detail::folded_ranks const at(0, ranks);
    double const values = 2 * static_cast<double>(count) * (at.core - 1) / at.core + 2.0 * detail::ceil_log2(at.core) +
                          (at.folded > 0 ? static_cast<double>(count) : 0.0);
    return values * static_cast<double>(Codec::template encoded_bytes<Value>(1)) / 4;
  }

  /// Collective; `count` is the same on all ranks. `lost` may be null.
  void run(E const& exec, Comm& comm, Value* values, Value* lost, std::int64_t count) {
    int const rank = comm.rank();
    detail::folded_ranks const at(rank, comm.size());
    std::int64_t const bytes = Codec::template encoded_bytes<Value>(count);
    outgoing_.reserve(exec, comm, bytes);
    incoming_.reserve(exec, comm, bytes);
    halves_.reserve(static_cast<std::size_t>(detail::ceil_log2(at.core)));
    if constexpr (!Codec::lossless) {
      if (lost != nullptr) {
        rounded_.reserve(exec, at.is_guest || at.core == 1 ? count : (count + 1) / 2);
      }
    }
    cancel_on_unwind const guard(comm); // also between its messages
    if (at.is_guest) {
      pack(exec, values, lost, count);
      exchange_bytes(comm, rank - 1, bytes, 0, phase::reduce);
      exchange_bytes(comm, rank - 1, 0, bytes, phase::gather);
      unpack(exec, values, count, false);
      return;
    }
    if (at.in_pair) {
      exchange_bytes(comm, rank + 1, 0, bytes, phase::reduce);
      unpack(exec, values, count, true);
    }
    // This place's part of the vector shrinks by halves; the halves given away are kept to find the way back.
    std::int64_t begin = 0;
    std::int64_t end = count;
    halves_.clear();
    for (int distance = at.core / 2; distance >= 1; distance /= 2) {
      std::int64_t const middle = begin + (end - begin) / 2;
      bool const lower = (at.place & distance) == 0;
      std::int64_t const give_begin = lower ? middle : begin;
      std::int64_t const give_count = lower ? end - middle : middle - begin;
      halves_.push_back({begin, middle, end, distance});
      begin = lower ? begin : middle;
      end = lower ? middle : end;
      pack(exec, values + give_begin, lost == nullptr ? nullptr : lost + give_begin, give_count);
      exchange_bytes(comm, at.rank_at(at.place ^ distance), Codec::template encoded_bytes<Value>(give_count),
                     Codec::template encoded_bytes<Value>(end - begin), phase::reduce);
      unpack(exec, values + begin, end - begin, true);
    }
    // The owner too must have what the others will decode.
    if constexpr (!Codec::lossless) {
      pack(exec, values + begin, lost == nullptr ? nullptr : lost + begin, end - begin);
      Codec::decode(exec, static_cast<std::byte const*>(outgoing_.data()), end - begin, values + begin);
    }
    for (auto each = halves_.rbegin(); each != halves_.rend(); ++each) {
      std::int64_t const missing_begin = begin == each->begin ? each->middle : each->begin;
      std::int64_t const missing_count = (each->end - each->begin) - (end - begin);
      pack(exec, values + begin, nullptr, end - begin);
      exchange_bytes(comm, at.rank_at(at.place ^ each->distance), Codec::template encoded_bytes<Value>(end - begin),
                     Codec::template encoded_bytes<Value>(missing_count), phase::gather);
      unpack(exec, values + missing_begin, missing_count, false);
      begin = each->begin;
      end = each->end;
    }
    if (at.in_pair) {
      pack(exec, values, nullptr, count);
      exchange_bytes(comm, rank + 1, bytes, 0, phase::gather);
    }
  }

  /// Notes what encoding loses; public because nvcc wants the function around a kernel to be.
  void note_loss(E const& exec, Value const* exact, Value* lost, std::int64_t count) {
    Value* const rounded = rounded_.data();
    Codec::decode(exec, static_cast<std::byte const*>(outgoing_.data()), count, rounded);
    Kokkos::parallel_for(
        "oktopk::rabenseifner::note_loss", detail::index_range<E>(exec, 0, count),
        KOKKOS_LAMBDA(std::int64_t i) { lost[i] = exact[i] - rounded[i]; });
  }

private:
  struct half {
    std::int64_t begin;
    std::int64_t middle;
    std::int64_t end;
    int distance;
  };

  void pack(E const& exec, Value const* values, Value* lost, std::int64_t count) {
    Codec::encode(exec, values, count, outgoing_.data());
    if constexpr (!Codec::lossless) {
      if (lost != nullptr) {
        note_loss(exec, values, lost, count);
      }
    }
    outgoing_.push(exec, 0, Codec::template encoded_bytes<Value>(count));
    detail::fence(exec, "oktopk::rabenseifner::packed");
  }

  void unpack(E const& exec, Value* values, std::int64_t count, bool add) {
    incoming_.pull(exec, 0, Codec::template encoded_bytes<Value>(count));
    auto const* const from = static_cast<std::byte const*>(incoming_.data());
    add ? Codec::decode_and_add(exec, from, count, values) : Codec::decode(exec, from, count, values);
    detail::fence(exec, "oktopk::rabenseifner::unpacked");
  }

  // One message each way, or none where there is nothing to send or to receive.
  void exchange_bytes(Comm& comm, int peer, std::int64_t out, std::int64_t in, phase use) {
    std::array<typename Comm::request, 2> requests{};
    cancel_on_unwind const guard(comm, requests);
    if (in > 0) {
      requests[0] = comm.irecv(incoming_.wire(0, in), peer, use);
    }
    if (out > 0) {
      requests[1] = comm.isend(outgoing_.wire(0, out), peer, use);
    }
    comm.wait_all(std::span<typename Comm::request>(requests));
  }

  std::vector<half> halves_;
  message_buffer<E> outgoing_{"oktopk::rabenseifner::outgoing"};
  message_buffer<E> incoming_{"oktopk::rabenseifner::incoming"};
  buffer<Value, typename E::memory_space> rounded_{"oktopk::rabenseifner::rounded"};
};

} // namespace oktopk
