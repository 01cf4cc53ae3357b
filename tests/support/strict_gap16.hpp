// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/format/gap16.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>

namespace oktopk_tests {

/// `gap16` with the size of the message in front: it complains where the library gives it room that is not aligned, or
/// another number of bytes than was encoded. The formats of the library accept more bytes than they need.
struct strict_gap16 : oktopk::gap16<> {
  static constexpr std::int64_t bytes_per_cut = 8;

  static std::string name() { return "strict_gap16"; }

  static std::int64_t max_encoded_bytes(std::int64_t count, oktopk::region where) {
    return count == 0 ? 0 : size_bytes + oktopk::gap16<>::max_encoded_bytes(count, where);
  }

  template <oktopk::execution_space E>
  static std::int64_t encode(E const& exec,
                             oktopk::sparse_ref<index_type, value_type, typename E::memory_space> entries,
                             oktopk::region where, std::byte* out) {
    complain_unless(reinterpret_cast<std::uintptr_t>(out) % 8 == 0, "encode: the room is not aligned to 8 bytes");
    if (entries.size() == 0) {
      return 0;
    }
    auto const bytes = size_bytes + oktopk::gap16<>::encode(exec, entries, where, out + size_bytes);
    Kokkos::deep_copy(exec, one<typename E::memory_space>(reinterpret_cast<std::int64_t*>(out)), bytes);
    return bytes;
  }

  template <oktopk::execution_space E>
  static void decode(E const& exec, std::byte const* in, std::int64_t bytes, std::int64_t count, oktopk::region where,
                     index_type* indices, value_type* values) {
    complain_unless(reinterpret_cast<std::uintptr_t>(in) % 8 == 0, "decode: the bytes are not aligned to 8");
    if (count == 0) {
      complain_unless(bytes == 0, "decode: bytes without entries");
      return;
    }
    std::int64_t encoded = 0;
    Kokkos::deep_copy(exec, encoded,
                      one<typename E::memory_space, std::int64_t const>(reinterpret_cast<std::int64_t const*>(in)));
    exec.fence();
    complain_unless(bytes == encoded, "decode: the number of bytes is not that of the message");
    oktopk::gap16<>::decode(exec, in + size_bytes, bytes - size_bytes, count, where, indices, values);
  }

private:
  static constexpr std::int64_t size_bytes = bytes_per_cut;

  template <class MemorySpace, class Size = std::int64_t>
  using one = Kokkos::View<Size, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  static void complain_unless(bool good, char const* sentence) {
    if (!good) {
      throw oktopk::error(oktopk::fault::communication, std::string("strict_gap16: ") + sentence);
    }
  }
};

} // namespace oktopk_tests
