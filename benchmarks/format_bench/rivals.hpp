// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/sparse.hpp>

#ifdef FORMAT_BENCH_WITH_STREAMVBYTE
#include <streamvbyte.h>
#include <streamvbytedelta.h>
#endif
#ifdef FORMAT_BENCH_WITH_ZSTD
#include <zstd.h>
#endif

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

// What others would do, in the shape of our formats: indices coded, values copied behind them. They only read what they
// wrote: there are no checks. On the host.
namespace format_bench {

using entry_list = oktopk::sparse_ref<std::int32_t, float, Kokkos::HostSpace>;

/// The shape of a rival, which has `code(indices, count, begin, out)`, gives the bytes of the indices, and
/// `uncode(in, bytes, count, begin, indices)`. Room for `Rival::most_bytes(count)` is there.
template <class Rival>
struct rival {
  static constexpr bool lossless = true;

  static std::int64_t max_encoded_bytes(std::int64_t count, oktopk::region) {
    return Rival::most_bytes(count) + count * std::int64_t(sizeof(float));
  }

  template <class E>
  static std::int64_t encode(E const&, entry_list from, oktopk::region where, std::byte* out) {
    std::int64_t const count = from.size();
    std::int64_t const bytes = Rival::code(from.indices.data(), count, where.begin, out);
    auto const more = static_cast<std::size_t>(count) * sizeof(float);
    std::memcpy(out + bytes, from.values.data(), more);
    return bytes + static_cast<std::int64_t>(more);
  }

  template <class E>
  static void decode(E const&, std::byte const* in, std::int64_t bytes, std::int64_t count, oktopk::region where,
                     std::int32_t* indices, float* values) {
    auto const more = static_cast<std::size_t>(count) * sizeof(float);
    auto const of_indices = bytes - static_cast<std::int64_t>(more);
    Rival::uncode(in, of_indices, count, where.begin, indices);
    std::memcpy(values, in + of_indices, more);
  }
};

/// Both arrays as they are: what no format can beat.
struct copied : rival<copied> {
  static std::int64_t most_bytes(std::int64_t count) { return 4 * count; }

  static std::int64_t code(std::int32_t const* indices, std::int64_t count, std::int64_t, std::byte* out) {
    std::memcpy(out, indices, static_cast<std::size_t>(count) * 4);
    return 4 * count;
  }

  static void uncode(std::byte const* in, std::int64_t, std::int64_t count, std::int64_t, std::int32_t* indices) {
    std::memcpy(indices, in, static_cast<std::size_t>(count) * 4);
  }
};

/// A Rice code of the gaps, with one parameter a message (Golomb 1966, Rice 1979): the gap over 2^r in unary, and the
/// rest in r bits.
struct rice : rival<rice> {
  static constexpr int most_unary = 24; ///< as many zeros announce a gap of 32 bits

  static std::int64_t most_bytes(std::int64_t count) { return 9 * count + 24; }

  static std::int64_t code(std::int32_t const* indices, std::int64_t count, std::int64_t begin, std::byte* out) {
    int const low = parameter(count > 0 ? (indices[count - 1] - begin + 1) / count : 0);
    out[0] = static_cast<std::byte>(low);
    std::byte* to = out + 1;
    std::uint64_t waiting = 0;
    int bits = 0;
    auto const put = [&](std::uint64_t what, int width) { // up to 56 bits
      waiting |= what << bits;
      bits += width;
      std::memcpy(to, &waiting, 8);
      to += bits / 8;
      waiting >>= bits / 8 * 8;
      bits %= 8;
    };
    std::int64_t before = begin - 1;
    for (std::int64_t i = 0; i < count; ++i) {
      auto const gap = static_cast<std::uint64_t>(indices[i] - before - 1);
      before = indices[i];
      if (std::uint64_t const high = gap >> low; high < most_unary) {
        put(std::uint64_t(1) << high, static_cast<int>(high) + 1);
        put(gap & ((std::uint64_t(1) << low) - 1), low);
      } else {
        put(0, most_unary);
        put(gap, 32);
      }
    }
    return to - out + (bits > 0 ? 1 : 0);
  }

  static void uncode(std::byte const* in, std::int64_t, std::int64_t count, std::int64_t begin, std::int32_t* indices) {
    int const low = std::to_integer<int>(in[0]);
    std::uint64_t const rest = (std::uint64_t(1) << low) - 1;
    std::int64_t at = 8;    // in bits
    auto const peek = [&] { // 57 bits and more
      std::uint64_t word = 0;
      std::memcpy(&word, in + at / 8, 8);
      return word >> (at % 8);
    };
    std::int64_t before = begin - 1;
    for (std::int64_t i = 0; i < count; ++i) {
      std::uint64_t const word = peek();
      int const high = std::countr_zero(word | (std::uint64_t(1) << most_unary));
      std::uint64_t gap = 0;
      if (high < most_unary) {
        gap = (static_cast<std::uint64_t>(high) << low) | ((word >> (high + 1)) & rest);
        at += high + 1 + low;
      } else {
        gap = (word >> most_unary) & 0xffffffffU;
        at += most_unary + 32;
      }
      before += static_cast<std::int64_t>(gap) + 1;
      indices[i] = static_cast<std::int32_t>(before);
    }
  }

private:
  /// The logarithm of the mean gap times ln 2, which is right for places taken at random.
  static int parameter(std::int64_t mean_gap) {
    int low = 0;
    while (low < 30 && (std::int64_t(2) << low) <= static_cast<std::int64_t>(0.69 * static_cast<double>(mean_gap))) {
      low += 1;
    }
    return low;
  }
};

#ifdef FORMAT_BENCH_WITH_STREAMVBYTE
/// StreamVByte (Lemire, Kurz, Rupp 2018): one to four bytes a gap.
struct streamvbyte : rival<streamvbyte> {
  static std::int64_t most_bytes(std::int64_t count) {
    return static_cast<std::int64_t>(streamvbyte_max_compressedbytes(static_cast<std::uint32_t>(count))) + 16;
  }

  static std::int64_t code(std::int32_t const* indices, std::int64_t count, std::int64_t begin, std::byte* out) {
    return static_cast<std::int64_t>(
        streamvbyte_delta_encode(reinterpret_cast<std::uint32_t const*>(indices), static_cast<std::uint32_t>(count),
                                 reinterpret_cast<std::uint8_t*>(out), static_cast<std::uint32_t>(begin)));
  }

  static void uncode(std::byte const* in, std::int64_t, std::int64_t count, std::int64_t begin, std::int32_t* indices) {
    streamvbyte_delta_decode(reinterpret_cast<std::uint8_t const*>(in), reinterpret_cast<std::uint32_t*>(indices),
                             static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(begin));
  }
};
#endif

#ifdef FORMAT_BENCH_WITH_ZSTD
/// zstd, level 1, on gaps of 16 bits; a larger gap is 65,535 and two more numbers.
struct zstd : rival<zstd> {
  static std::int64_t most_bytes(std::int64_t count) {
    return static_cast<std::int64_t>(ZSTD_compressBound(static_cast<std::size_t>(count) * 6));
  }

  static std::int64_t code(std::int32_t const* indices, std::int64_t count, std::int64_t begin, std::byte* out) {
    std::vector<std::uint16_t>& gaps = scratch(3 * count);
    std::size_t const size = put_gaps(indices, count, begin, gaps.data());
    return compress(gaps.data(), 2 * size, out, most_bytes(count));
  }

  static void uncode(std::byte const* in, std::int64_t bytes, std::int64_t count, std::int64_t begin,
                     std::int32_t* indices) {
    std::vector<std::uint16_t>& gaps = scratch(3 * count);
    decompress(in, bytes, gaps.data(), 2 * gaps.size());
    take_gaps(gaps.data(), count, begin, indices);
  }

  static std::size_t put_gaps(std::int32_t const* indices, std::int64_t count, std::int64_t begin,
                              std::uint16_t* gaps) {
    std::size_t size = 0;
    std::int64_t before = begin - 1;
    for (std::int64_t i = 0; i < count; ++i) {
      auto const gap = static_cast<std::uint32_t>(indices[i] - before - 1);
      before = indices[i];
      gaps[size++] = static_cast<std::uint16_t>(gap < 0xffffU ? gap : 0xffffU);
      if (gap >= 0xffffU) {
        gaps[size++] = static_cast<std::uint16_t>(gap & 0xffffU);
        gaps[size++] = static_cast<std::uint16_t>(gap >> 16);
      }
    }
    return size;
  }

  /// Gives how many of the numbers the gaps took.
  static std::size_t take_gaps(std::uint16_t const* gaps, std::int64_t count, std::int64_t begin,
                               std::int32_t* indices) {
    std::size_t at = 0;
    std::int64_t before = begin - 1;
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t gap = gaps[at++];
      if (gap == 0xffff) {
        gap = gaps[at] | (static_cast<std::int64_t>(gaps[at + 1]) << 16);
        at += 2;
      }
      before += gap + 1;
      indices[i] = static_cast<std::int32_t>(before);
    }
    return at;
  }

  static std::int64_t compress(void const* from, std::size_t bytes, std::byte* out, std::int64_t capacity) {
    static std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> const context(ZSTD_createCCtx(), &ZSTD_freeCCtx);
    return checked(ZSTD_compressCCtx(context.get(), out, static_cast<std::size_t>(capacity), from, bytes, 1));
  }

  static void decompress(std::byte const* in, std::int64_t bytes, void* to, std::size_t capacity) {
    static std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> const context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
    checked(ZSTD_decompressDCtx(context.get(), to, capacity, in, static_cast<std::size_t>(bytes)));
  }

  static std::vector<std::uint16_t>& scratch(std::int64_t numbers) {
    static std::vector<std::uint16_t> kept;
    if (kept.size() < static_cast<std::size_t>(numbers)) {
      kept.resize(static_cast<std::size_t>(numbers));
    }
    return kept;
  }

private:
  static std::int64_t checked(std::size_t result) {
    if (ZSTD_isError(result) != 0) {
      throw std::runtime_error(std::string("zstd: ") + ZSTD_getErrorName(result));
    }
    return static_cast<std::int64_t>(result);
  }
};

/// The same of gaps and values together.
struct zstd_all {
  static constexpr bool lossless = true;

  static std::int64_t max_encoded_bytes(std::int64_t count, oktopk::region) {
    return static_cast<std::int64_t>(ZSTD_compressBound(static_cast<std::size_t>(count) * 10));
  }

  template <class E>
  static std::int64_t encode(E const&, entry_list from, oktopk::region where, std::byte* out) {
    std::int64_t const count = from.size();
    std::uint16_t* const all = zstd::scratch(5 * count).data();
    std::size_t const size = zstd::put_gaps(from.indices.data(), count, where.begin, all);
    auto const more = static_cast<std::size_t>(count) * sizeof(float);
    std::memcpy(all + size, from.values.data(), more);
    return zstd::compress(all, 2 * size + more, out, max_encoded_bytes(count, where));
  }

  template <class E>
  static void decode(E const&, std::byte const* in, std::int64_t bytes, std::int64_t count, oktopk::region where,
                     std::int32_t* indices, float* values) {
    std::vector<std::uint16_t>& all = zstd::scratch(5 * count);
    zstd::decompress(in, bytes, all.data(), 2 * all.size());
    std::size_t const size = zstd::take_gaps(all.data(), count, where.begin, indices);
    std::memcpy(values, all.data() + size, static_cast<std::size_t>(count) * sizeof(float));
  }
};
#endif

} // namespace format_bench
