// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/format/concept.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace oktopk_tests {

/// A lossless format whose size depends on the entries: gaps between indices in 7-bit groups, and the values behind
/// them.
///
/// Everything that `coo` is not: it is no multiple of 4 or 8 bytes, its size is not known before, its numbers are not
/// aligned. It codes in host memory, where all goes and from where it comes back. It complains about wrong arguments,
/// which the library must not pass.
template <oktopk::gradient_value Value = float, oktopk::gradient_index Index = std::int32_t>
struct delta_coded {
  using index_type = Index;
  using value_type = Value;

  static constexpr bool lossless = true;
  static constexpr bool exact_size = false;
  static constexpr std::int64_t bytes_per_cut = 0;

  static std::string name() {
    return "delta_coded<" + std::to_string(sizeof(Value)) + ", " + std::to_string(sizeof(Index)) + ">";
  }

  static std::int64_t max_encoded_bytes(std::int64_t count, oktopk::region where) {
    std::int64_t groups = 1;
    for (std::int64_t left = where.width(); left > 127; left /= 128) {
      groups += 1;
    }
    return count * (groups + static_cast<std::int64_t>(sizeof(Value)));
  }

  template <oktopk::execution_space E>
  static std::int64_t encode(E const& exec, oktopk::sparse_ref<Index, Value, typename E::memory_space> entries,
                             oktopk::region where, std::byte* out) {
    complain_unless(reinterpret_cast<std::uintptr_t>(out) % 8 == 0, "encode: the room is not aligned to 8 bytes");
    auto const indices = to_host<E>(exec, entries.indices.data(), entries.size());
    auto const values = to_host<E>(exec, entries.values.data(), entries.size());
    std::vector<std::byte> image;
    std::int64_t next = where.begin;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      std::int64_t const index = indices[i];
      complain_unless(index >= next && index < where.end, "encode: indices do not ascend inside the region");
      for (std::int64_t gap = index - next;; gap /= 128) {
        bool const last = gap < 128;
        image.push_back(static_cast<std::byte>((gap % 128) | (last ? 0 : 128)));
        if (last) {
          break;
        }
      }
      auto const* const value = reinterpret_cast<std::byte const*>(&values[i]);
      image.insert(image.end(), value, value + sizeof(Value));
      next = index + 1;
    }
    from_host(exec, image, out);
    return static_cast<std::int64_t>(image.size());
  }

  template <oktopk::execution_space E>
  static void decode(E const& exec, std::byte const* in, std::int64_t bytes, std::int64_t count, oktopk::region where,
                     Index* indices, Value* values) {
    complain_unless(reinterpret_cast<std::uintptr_t>(in) % 8 == 0, "decode: the bytes are not aligned to 8");
    std::vector<std::byte> const image = to_host<E>(exec, in, bytes);
    std::byte const* from = image.data();
    std::vector<Index> all_indices;
    std::vector<Value> all_values(static_cast<std::size_t>(count));
    std::int64_t next = where.begin;
    for (Value& value : all_values) {
      std::int64_t gap = 0;
      std::int64_t scale = 1;
      for (bool more = true; more; scale *= 128) {
        auto const group = static_cast<std::int64_t>(*from++);
        gap += group % 128 * scale;
        more = group >= 128;
      }
      complain_unless(next + gap < where.end, "decode: an index beyond the region");
      all_indices.push_back(static_cast<Index>(next + gap));
      std::memcpy(&value, from, sizeof(Value));
      from += sizeof(Value);
      next += gap + 1;
    }
    complain_unless(from - image.data() == bytes, "decode: the number of bytes is not that of the message");
    from_host(exec, all_indices, indices);
    from_host(exec, all_values, values);
  }

private:
  template <class T, class MemorySpace>
  using raw = Kokkos::View<T*, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  template <class E, class T>
  static std::vector<T> to_host(E const& exec, T const* from, std::int64_t count) {
    std::vector<T> copy(static_cast<std::size_t>(count));
    if (!copy.empty()) {
      Kokkos::deep_copy(exec, raw<T, Kokkos::HostSpace>(copy.data(), copy.size()),
                        raw<T const, typename E::memory_space>(from, copy.size()));
    }
    exec.fence();
    return copy;
  }

  template <class E, class T>
  static void from_host(E const& exec, std::vector<T> const& all, T* to) {
    if (!all.empty()) {
      Kokkos::deep_copy(exec, raw<T, typename E::memory_space>(to, all.size()),
                        raw<T const, Kokkos::HostSpace>(all.data(), all.size()));
    }
    exec.fence(); // before `all` ends
  }

  static void complain_unless(bool good, char const* sentence) {
    if (!good) {
      throw oktopk::error(oktopk::fault::communication, std::string("delta_coded: ") + sentence);
    }
  }
};

} // namespace oktopk_tests
