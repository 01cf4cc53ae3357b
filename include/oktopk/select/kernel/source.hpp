// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/core/sparse.hpp>
#include <oktopk/core/workspace.hpp>
#include <oktopk/sparse/arithmetic.hpp>
#include <oktopk/sparse/directions.hpp>

#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

// The only place that uses vector instructions. The processor is asked for them when the program runs; compiler flags
// are not used. So translation units with different -m flags have the same definitions and may be linked together.
// Compilers for a device get the portable code: for them these would be calls of host functions from functions for host
// and device. Registers wider than those of AVX2 gain nothing, because memory is slower.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define OKTOPK_MASKS_BY_PROCESSOR
#endif

namespace oktopk {

namespace detail {

/// Number of values in one mask.
inline constexpr int mask_width = 64;

/// The masks of `count` blocks of 64 values, with instructions that every processor of its kind has: a bit for each
/// value, set where the pattern of its magnitude is at least `reach`, itself the pattern of a magnitude; value i of a
/// block is bit i.
///
/// Patterns of magnitudes leave the sign bit free, so they compare as signed integers do, the only ones that older
/// vector instructions compare. Not as floating-point numbers: NaN must reach everything, and denormals count.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION void plain_masks(Value const* from, int count, bits_of<Value> reach, std::uint64_t* masks) {
  auto const least = static_cast<signed_bits_of<Value>>(reach);
  for (int block = 0; block < count; ++block, from += mask_width) {
    std::uint64_t mask = 0;
    for (int eight = 0; eight < mask_width; eight += 8) {
      // One byte for each value, because compilers vectorise that; the product collects the eight lowest bits in the
      // highest byte.
      unsigned char flags[8];
      for (int i = 0; i < 8; ++i) {
        flags[i] =
            static_cast<unsigned char>(static_cast<signed_bits_of<Value>>(magnitude_bits(from[eight + i])) >= least);
      }
      std::uint64_t bytes = 0;
      for (int i = 0; i < 8; ++i) {
        bytes |= static_cast<std::uint64_t>(flags[i]) << (8 * i);
      }
      mask |= ((bytes * 0x0102040810204080U) >> 56) << eight;
    }
    masks[block] = mask;
  }
}

/// Forms `count` blocks of 64 values, accumulator = residual + rate * gradient, and their masks (`magnitude_masks`).
/// The arrays do not overlap. With instructions that every processor of its kind has.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION void plain_accumulate_masks(Value const* __restrict residual, Value const* __restrict gradient,
                                                   Value rate, Value* __restrict accumulator, int count,
                                                   bits_of<Value> reach, std::uint64_t* masks) {
  for (int i = 0; i < count * mask_width; ++i) {
    accumulator[i] = residual[i] + rate * gradient[i];
  }
  plain_masks<Value>(accumulator, count, reach, masks);
}

#if defined(OKTOPK_MASKS_BY_PROCESSOR)

// The compiler's own vectors and functions, because <immintrin.h> would take a fifth of the compiler's memory.
template <class Element>
struct avx2_vector {
  using type [[gnu::vector_size(32)]] = Element;
};

/// The masks of `count` blocks of 64 values, which lie in memory, or are formed as accumulators if `gradient` is given:
/// then each is formed and compared in one register. AVX2 has no fused multiply-add, so the values have the same bits
/// as those of the plain code, unless the compiler's flags allow it there: see `accumulation`.
template <bool Forms, gradient_value Value>
[[gnu::target("avx2")]] inline void avx2_masks(Value const* from, [[maybe_unused]] Value const* gradient,
                                               [[maybe_unused]] Value rate, [[maybe_unused]] Value* accumulator,
                                               int count, bits_of<Value> reach, std::uint64_t* masks) {
  using values = typename avx2_vector<Value>::type;
  using lane = std::conditional_t<sizeof(Value) == 4, int, long long>; // the builtin functions take no other integers
  using integers = typename avx2_vector<lane>::type;
  constexpr int lanes = 32 / sizeof(Value);
  constexpr int line = 64 / sizeof(Value); // of the cache
  for (int block = 0; block < count; ++block) {
    // The prefetcher of the processor stops at the end of a page and while the candidates of some blocks are written. A
    // prefetch two pages ahead hides that; past the end of an array it does no harm.
    for (int at = 0; !Forms && at < mask_width; at += line) {
      __builtin_prefetch(from + std::ptrdiff_t(8192 / sizeof(Value)) + at);
    }
    std::uint64_t mask = 0;
    for (int part = 0; part < mask_width; part += lanes) {
      values x;
      __builtin_memcpy(&x, from + part, sizeof x);
      if constexpr (Forms) {
        values change;
        __builtin_memcpy(&change, gradient + part, sizeof change);
        x = x + rate * change;
        __builtin_memcpy(accumulator + part, &x, sizeof x);
      }
      // There is only a comparison for "greater", so values are compared with `reach - 1`; for `reach` 0 that is -1,
      // below all magnitudes.
      integers const over =
          (reinterpret_cast<integers>(x) & std::numeric_limits<lane>::max()) > static_cast<lane>(reach - 1);
      std::uint32_t bits = 0;
      if constexpr (sizeof(Value) == 4) {
        bits = static_cast<std::uint32_t>(__builtin_ia32_movmskps256(reinterpret_cast<values>(over)));
      } else {
        bits = static_cast<std::uint32_t>(__builtin_ia32_movmskpd256(reinterpret_cast<values>(over)));
      }
      mask |= std::uint64_t(bits) << part;
    }
    masks[block] = mask;
    from += mask_width;
    gradient += Forms ? mask_width : 0;
    accumulator += Forms ? mask_width : 0;
  }
}

#endif

/// The masks of `count` blocks of 64 values, with the best instructions of the processor.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION void magnitude_masks(Value const* from, int count, bits_of<Value> reach, std::uint64_t* masks) {
#if defined(OKTOPK_MASKS_BY_PROCESSOR)
  if (processor_has_avx2()) {
    return avx2_masks<false, Value>(from, nullptr, 0, nullptr, count, reach, masks);
  }
#endif
  plain_masks(from, count, reach, masks);
}

/// The same for accumulators, which are formed as in `plain_accumulate_masks`.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION void accumulate_masks(Value const* residual, Value const* gradient, Value rate,
                                             Value* accumulator, int count, bits_of<Value> reach,
                                             std::uint64_t* masks) {
#if defined(OKTOPK_MASKS_BY_PROCESSOR)
  if (processor_has_avx2()) {
    return avx2_masks<true, Value>(residual, gradient, rate, accumulator, count, reach, masks);
  }
#endif
  plain_accumulate_masks(residual, gradient, rate, accumulator, count, reach, masks);
}

template <class Source>
using index_of = typename Source::index_type;

template <class Source>
using value_of = typename Source::value_type;

/// The values to select from, and the index each of them stands for.
///
/// A local selection reads the whole accumulator, where the position is the index (`indices` is empty); a global one
/// reads the sums of this rank's region, which have their indices beside them.
template <gradient_index Index, gradient_value Value, class MemorySpace>
struct candidates {
  using index_type = Index;
  using value_type = Value;

  array_ref<Value const, MemorySpace> values;
  array_ref<Index const, MemorySpace> indices;

  candidates() = default;
  candidates(array_ref<Value const, MemorySpace> some_values, array_ref<Index const, MemorySpace> their_indices)
      : values(some_values), indices(their_indices) {}
  explicit candidates(sparse_ref<Index, Value, MemorySpace> entries)
      : values(entries.values), indices(entries.indices) {}

  std::int64_t size() const { return static_cast<std::int64_t>(values.extent(0)); }

  KOKKOS_INLINE_FUNCTION Index index(std::int64_t position) const {
    return indices.data() == nullptr ? static_cast<Index>(position) : indices.data()[position];
  }

  KOKKOS_INLINE_FUNCTION Value peek(std::int64_t position) const { return values.data()[position]; }
  KOKKOS_INLINE_FUNCTION Value load(std::int64_t position) const { return values.data()[position]; }
  KOKKOS_INLINE_FUNCTION Value loaded(std::int64_t position) const { return values.data()[position]; }

  KOKKOS_INLINE_FUNCTION void load_blocks(std::int64_t begin, int count, bits_of<Value> reach,
                                          std::uint64_t* masks) const {
    magnitude_masks(values.data() + begin, count, reach, masks);
  }

  candidates materialized() const { return *this; }

  template <execution_space E>
  void materialize(E const&) const {}
};

/// An accumulator that is formed while a selection reads it: `accumulator = residual + rate * gradient` (Algorithm 2,
/// lines 4 and 5, in one pass over memory), or of directions, where there are terms of them.
///
/// The three arrays have one length and do not overlap. A selection from it must write the whole accumulator.
///
/// The compiler chooses whether product and sum are rounded once or twice: flags that allow fused multiply-add, as
/// `-march=native` does, may change the last bit of an accumulator, and `-ffp-contract=off` forbids it. So results are
/// the same to the bit for the same build, not for builds with other flags; all ranks must run one build.
template <gradient_index Index, gradient_value Value, class MemorySpace>
struct accumulation {
  using index_type = Index;
  using value_type = Value;

  array_ref<Value const, MemorySpace> residual;
  array_ref<Value const, MemorySpace> gradient;
  array_ref<Value, MemorySpace> accumulator;
  Value rate = 0;
  direction_terms<Value> directions{};

  std::int64_t size() const { return static_cast<std::int64_t>(accumulator.extent(0)); }

  KOKKOS_INLINE_FUNCTION Index index(std::int64_t position) const { return static_cast<Index>(position); }

  KOKKOS_INLINE_FUNCTION Value peek(std::int64_t position) const {
    Value const change = rate * gradient.data()[position];
    Value const waiting = residual.data()[position];
    return directions.places == nullptr ? waiting + change : directions.formed(position, waiting, change);
  }

  KOKKOS_INLINE_FUNCTION Value load(std::int64_t position) const {
    return accumulator.data()[position] = peek(position);
  }

  KOKKOS_INLINE_FUNCTION Value loaded(std::int64_t position) const { return accumulator.data()[position]; }

  KOKKOS_INLINE_FUNCTION void load_blocks(std::int64_t begin, int count, bits_of<Value> reach,
                                          std::uint64_t* masks) const {
    if (directions.places != nullptr) {
      directions.form(residual.data(), gradient.data(), rate, accumulator.data(), begin,
                      begin + std::int64_t(count) * mask_width);
      magnitude_masks<Value>(accumulator.data() + begin, count, reach, masks);
      return;
    }
    accumulate_masks<Value>(residual.data() + begin, gradient.data() + begin, rate, accumulator.data() + begin, count,
                            reach, masks);
  }

  candidates<Index, Value, MemorySpace> materialized() const { return {accumulator, {}}; }

  /// Enqueues the accumulation by itself, where nothing is selected in the same pass.
  template <execution_space E>
  void materialize(E const& exec) const {
    Kokkos::parallel_for("oktopk::select::accumulate", index_range<E>(exec, 0, size()), *this);
  }

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const { load(i); }
};

} // namespace detail

/// The values that a selection reads: they lie in memory, or are formed as they are read.
///
/// Positions run from 0 to `size()`. 2 to 5 are called from kernels.
///
/// 1. `size()` — the number of values.
/// 2. `index(i)` — the index that the value at a position stands for; indices ascend.
/// 3. `peek(i)` — the value at a position, at any time; changes nothing.
/// 4. `load(i)` — the same value, and leaves it in memory. `load_blocks(i, count, reach, masks)` — loads `count` blocks
///    of 64 values from i on, and marks in one mask a block the values that have `magnitude_bits` of at least `reach`:
///    value b of a block in bit b.
/// 5. `loaded(i)` — a value that was loaded.
/// 6. `materialize(exec)` — loads all values. `materialized()` — the values as candidates in memory, once all were
///    loaded.
template <class S>
concept selection_source = gradient_index<typename S::index_type> && gradient_value<typename S::value_type> &&
                           requires(S const& source, std::int64_t position, std::uint64_t* masks) {
                             { source.size() } -> std::same_as<std::int64_t>;
                             { source.index(position) } -> std::same_as<typename S::index_type>;
                             { source.peek(position) } -> std::same_as<typename S::value_type>;
                             { source.load(position) } -> std::same_as<typename S::value_type>;
                             { source.loaded(position) } -> std::same_as<typename S::value_type>;
                             {
                               source.load_blocks(position, 1, detail::bits_of<typename S::value_type>{}, masks)
                             } -> std::same_as<void>;
                             source.materialized();
                           };

} // namespace oktopk

namespace oktopk::detail {

// The buffers of a selection.

/// Neighbouring candidates that one warp reads, as positions in an array.
struct candidate_run {
  std::int64_t begin = 0;
  std::int64_t size = 0;
};

/// More entries than there can be.
inline constexpr std::int64_t every_entry = std::numeric_limits<std::int64_t>::max();

/// The results that a device's kernels pass to each other in a selection, so that none must ask the host. All zero
/// before and after it.
struct selection_record {
  std::int64_t arrived = 0;    ///< teams of the running kernel
  std::int64_t count = 0;      ///< candidates that pass the first filter
  std::int64_t wanted = 0;     ///< of those that share the digits found, how many belong to the k largest
  std::int64_t prefix = 0;     ///< the digits found, of the place in the range
  std::int64_t below_last = 0; ///< 1 where the place is not the last one of the range
  std::int64_t kept = 0;       ///< entries of the selection
  std::int64_t not_finite = 0; ///< `every_entry` less the least index of such an entry of the selection
};

/// The result of a selection that was written to a workspace.
template <gradient_value Value>
struct written_selection {
  std::int64_t count = 0;       ///< candidates that reach the guess
  bool found = false;           ///< the k-th magnitude is near the guess, and few enough candidates reach it
  bits_of<Value> threshold = 0; ///< the k-th magnitude, where found
  std::int64_t kept = 0;        ///< entries that were written
  bool checked = false;         ///< the entries were looked at for what is not finite, as kernels of a device do
  std::int64_t not_finite = -1; ///< the least index of such an entry, if there is one
};

/// The buffers of kernels on a device for each other and the host; empty where there is no device.
template <execution_space E>
struct device_selection_workspace {
  using memory_space = typename E::memory_space;

  buffer<candidate_run, memory_space> pieces{"oktopk::select::pieces"};
  buffer<std::int64_t, memory_space> numbers{"oktopk::select::piece_numbers"}; ///< two a piece, and two a team
  buffer<std::int64_t, memory_space> sums{"oktopk::select::sums", true};       ///< of a digit; zero between kernels
  buffer<std::uint32_t, memory_space> sums_u32{"oktopk::select::sums", true};  ///< where they are below 2^32
  buffer<selection_record, memory_space> record{"oktopk::select::record", true};
  shared_numbers<selection_record, E> host_copy{"oktopk::select::told"};

  void reserve(E const& exec, std::int64_t most_pieces) {
    pieces.reserve(exec, most_pieces);
    numbers.reserve(exec, 4 * most_pieces);
    record.reserve(exec, 1);
    host_copy.reserve(exec, 1);
  }
};

/// The buffers of one selector, used again in each of its selections.
///
/// 1. The result of a selection lies in it until the next selection in the same workspace.
/// 2. It grows and never shrinks: selections of like sizes allocate nothing after the first few.
/// 3. It belongs to one execution-space instance and one selection at a time.
template <gradient_index Index, gradient_value Value, execution_space E>
struct selection_workspace {
  using memory_space = typename E::memory_space;
  using entries_type = sparse_ref<Index, Value, memory_space>;

  buffer<Index, memory_space> indices{"oktopk::select::indices"}; ///< of the entries that are being written
  buffer<Value, memory_space> values{"oktopk::select::values"};
  buffer<Index, memory_space> previous_indices{"oktopk::select::indices"}; ///< of the entries that are read from
  buffer<Value, memory_space> previous_values{"oktopk::select::values"};
  buffer<Index, memory_space> chunk_indices{"oktopk::select::chunk_indices"}; ///< what each thread wrote, to be joined
  buffer<Value, memory_space> chunk_values{"oktopk::select::chunk_values"};
  buffer<std::int64_t, memory_space> chunk_counts{"oktopk::select::chunk_counts"};
  shared_numbers<std::int64_t, E> numbers{"oktopk::select::numbers"}; ///< from kernels to the host
  device_selection_workspace<E> on_device;
  buffer<std::int64_t, memory_space> histograms{"oktopk::select::histograms"};
  std::vector<std::int64_t> row;       ///< what this rank sends to the others of its undecided candidates
  std::vector<std::int64_t> undecided; ///< the magnitude patterns that all ranks have sent

  /// Makes room for the entries of a selection; may lose those that are there.
  void reserve(E const& exec, std::int64_t count) {
    indices.reserve(exec, count);
    values.reserve(exec, count);
  }

  entries_type entries(std::int64_t count) const { return {indices.data(), values.data(), count}; }

  /// Makes the entries that were written the previous ones, so that a selection from them has room to write.
  void swap_buffers() {
    std::swap(indices, previous_indices);
    std::swap(values, previous_values);
  }

  entries_type previous(std::int64_t count) const { return {previous_indices.data(), previous_values.data(), count}; }
};

template <class Source, execution_space E>
using workspace_for = selection_workspace<typename Source::index_type, typename Source::value_type, E>;

} // namespace oktopk::detail
