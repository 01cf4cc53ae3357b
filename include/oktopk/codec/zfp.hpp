// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The codec of libzfp, for host memory; the only header that includes <zfp.h>, and `allreduce.hpp` does not include
/// it. A program that includes it links libzfp (the target oktopk::zfp, where CMake finds it).

#include <oktopk/codec/concept.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>

#include <zfp.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <new>

namespace oktopk {

/// ZFP at a fixed rate (Lindstrom 2014): blocks of 64 values, taken for 4 x 4 x 4, in 64 x rate bits each.
///
/// A gradient has no third dimension, but in a large block more values share one exponent and the other costs of a
/// block: normal values at rate 8 have an error of 1.6 % (root mean square); with blocks of 4 values they have one of
/// 5.5 % and take 1.8 times as long. The error of a value is at most 2^(11-rate) times the largest magnitude of its
/// block: in the worst case the exponent, the tests that find the first set bits and the guard bits of the transform
/// take that many bits; in most cases far fewer. If all 64 values are below 2^-98 (binary64: 2^-962), they are encoded
/// as zeros: libzfp 1.0 scales them by a factor that overflows. A value within the bound of the largest finite value
/// may become infinite. Encoding decoded values may lose again. ZFP has no NaN: a word in front of the blocks tells if
/// some value is not finite; then all values decode to NaN. Runs on the calling thread, which waits for `exec` first.
struct zfp : detail::fixed_rate_codec<zfp> {
  static constexpr char const* scheme = "zfp";
  static constexpr bool stable = false; ///< see `codec`
  using fixed_rate_codec::fixed_rate_codec;

  /// The word in front, and `rate` words of 8 bytes a block.
  template <gradient_value>
  std::int64_t encoded_bytes(std::int64_t count) const {
    return count == 0 ? 0 : word_bytes + blocks(count) * options_.rate * word_bytes;
  }

  template <gradient_value Value>
  double error_bound(double largest) const {
    double const bound = largest * 2048 / static_cast<double>(std::int64_t(1) << options_.rate);
    auto const tiny = static_cast<double>(least<Value>);
    return bound > tiny ? bound : tiny;
  }

  template <execution_space E, gradient_value Value>
  void encode(E const& exec, Value const* values, std::int64_t count, std::byte* out, Value* lost) const {
    static_assert(!detail::is_device<E>, "zfp codes in host memory");
    if (count == 0) {
      return;
    }
    detail::fence(exec, "oktopk::zfp::encode");
    detail::bits_of<Value> largest = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      auto const magnitude = detail::magnitude_bits(values[i]);
      largest = magnitude > largest ? magnitude : largest;
    }
    std::uint64_t const finite = largest < detail::infinity_bits<Value> ? 1 : 0;
    std::memcpy(out, &finite, sizeof(finite));
    if (finite == 0) {
      std::memset(out + word_bytes, 0, static_cast<std::size_t>(encoded_bytes<Value>(count) - word_bytes));
      return;
    }
    {
      constexpr Value zeros[block_size] = {};
      stream<Value> const to(out + word_bytes, encoded_bytes<Value>(count) - word_bytes, options_.rate);
      for (std::int64_t begin = 0; begin < count; begin += block_size) {
        Value block[block_size] = {};
        std::copy(values + begin, values + std::min(begin + block_size, count), block);
        to.encode(is_tiny(block) ? zeros : block);
      }
      to.flush();
    }
    if (lost != nullptr) {
      each_block<Value>(out, count, [&](std::int64_t begin, std::int64_t width, Value const* decoded) {
        for (std::int64_t i = 0; i < width; ++i) {
          lost[begin + i] = values[begin + i] - decoded[i];
        }
      });
    }
  }

  template <execution_space E, class Operation, gradient_value Value>
  void decode_and_reduce(E const& exec, Operation, std::byte const* in, std::int64_t count, Value* values) const {
    detail::fence(exec, "oktopk::zfp::decode");
    each_block<Value>(in, count, [&](std::int64_t begin, std::int64_t width, Value const* decoded) {
      for (std::int64_t i = 0; i < width; ++i) {
        values[begin + i] = Operation::of(values[begin + i], decoded[i]);
      }
    });
  }

private:
  static constexpr std::int64_t word_bytes = 8;

  // The factor that scales smaller values to integers of the same width overflows.
  template <class Value>
  static constexpr Value least = static_cast<Value>(sizeof(Value) == sizeof(float) ? 0x1p-98 : 0x1p-962);

  template <class Value>
  static bool is_tiny(Value const* values) {
    return std::all_of(values, values + block_size,
                       [](Value each) { return each < least<Value> && each > -least<Value>; });
  }

  // One pass over a block of bytes; libzfp reads and writes them in place and does not own them.
  template <class Value>
  class stream {
  public:
    stream(std::byte* bytes, std::int64_t size, int rate)
        : bits_(stream_open(bytes, static_cast<std::size_t>(size)), stream_close),
          coder_(zfp_stream_open(bits_.get()), zfp_stream_close) {
      if (!bits_ || !coder_) {
        throw std::bad_alloc();
      }
      zfp_stream_set_rate(coder_.get(), rate, type, 3, zfp_false);
    }

    void encode(Value const* values) const {
      if constexpr (std::is_same_v<Value, float>) {
        zfp_encode_block_float_3(coder_.get(), values);
      } else {
        zfp_encode_block_double_3(coder_.get(), values);
      }
    }

    void decode(Value* values) const {
      if constexpr (std::is_same_v<Value, float>) {
        zfp_decode_block_float_3(coder_.get(), values);
      } else {
        zfp_decode_block_double_3(coder_.get(), values);
      }
    }

    void flush() const { zfp_stream_flush(coder_.get()); }

  private:
    static constexpr zfp_type type = std::is_same_v<Value, float> ? zfp_type_float : zfp_type_double;

    std::unique_ptr<bitstream, void (*)(bitstream*)> bits_;
    std::unique_ptr<zfp_stream, void (*)(zfp_stream*)> coder_;
  };

  template <class Value, class Body>
  void each_block(std::byte const* in, std::int64_t count, Body const& body) const {
    if (count == 0) {
      return;
    }
    std::uint64_t finite = 0;
    std::memcpy(&finite, in, sizeof(finite));
    auto* const bytes = const_cast<std::byte*>(in) + word_bytes; // only read
    stream<Value> const from(bytes, encoded_bytes<Value>(count) - word_bytes, options_.rate);
    Value decoded[block_size];
    std::fill_n(decoded, block_size, std::numeric_limits<Value>::quiet_NaN());
    for (std::int64_t begin = 0; begin < count; begin += block_size) {
      if (finite != 0) {
        from.decode(decoded);
      }
      body(begin, count - begin < block_size ? count - begin : block_size, static_cast<Value const*>(decoded));
    }
  }
};

} // namespace oktopk
