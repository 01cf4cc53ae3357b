// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Pieces of encoded entries follow each other in a message: each is rounded up to 8 bytes, all of which are written.

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/collect.hpp"
#include "support/unreachable.hpp"

#include <oktopk/comm/self.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/exchange/balance.hpp>
#include <oktopk/format/coo_or_dense.hpp>
#include <oktopk/format/packed.hpp>

using namespace oktopk_tests;

namespace {

template <class Format, class Comm>
void check_pieces(Comm const& comm) {
  execution const exec;
  oktopk::detail::encoded_pieces<execution, Format> const pieces{Format()};
  oktopk::region const where{0, 7};
  for (std::int64_t count = 0; count <= 7; ++count) {
    CAPTURE(count);
    Kokkos::View<std::int32_t*, memory> const indices("indices", static_cast<std::size_t>(count));
    Kokkos::View<float*, memory> const values("values", static_cast<std::size_t>(count));
    Kokkos::parallel_for(
        "oktopk::tests::entries", oktopk::detail::index_range<execution>(exec, 0, count),
        KOKKOS_LAMBDA(std::int64_t i) {
          indices(i) = static_cast<std::int32_t>(i);
          values(i) = 1.0F + 0.3F * static_cast<float>(i * i);
        });
    oktopk::detail::message_buffer<execution> message("oktopk::tests::message");
    std::int64_t const capacity = pieces.capacity(count, where) + 32;
    message.reserve(exec, comm, capacity);
    Kokkos::View<std::byte*, memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>> const all(
        message.data(), static_cast<std::size_t>(capacity));
    Kokkos::parallel_for(
        "oktopk::tests::mark", oktopk::detail::index_range<execution>(exec, 0, capacity),
        KOKKOS_LAMBDA(std::int64_t i) { all(i) = std::byte(0xff); });
    message.push(exec, 0, capacity);
    exec.fence();
    std::int64_t const bytes = pieces.encode(
        exec, oktopk::entries_of<Format, execution>(indices.data(), values.data(), count), where, message, 8);
    CHECK(bytes % 8 == 0);
    CHECK(bytes <= pieces.capacity(count, where));
    if (count > 0) {
      std::int64_t const own = pieces.encoded_bytes(exec, count, where, message, 8, bytes);
      std::int64_t const end = 8 + pieces.header_bytes + own;
      auto const byte_at = [&](std::int64_t place) {
        return message.get(exec, place - place % 8) >> place % 8 * 8 & 255;
      };
      for (std::int64_t place = end; place < 8 + bytes; ++place) {
        CHECK(byte_at(place) == 0);
      }
      CHECK(byte_at(0) == 255);
      CHECK(byte_at(8 + bytes) == 255);
    }
  }
}

template <class Format>
void check_near_and_far() {
  check_pieces<Format>(oktopk::self_communicator());
  check_pieces<Format>(unreachable<oktopk::self_communicator>(oktopk::self_communicator()));
}

} // namespace

TEST_CASE("pieces in any format end with zeros up to a multiple of 8 bytes") {
  check_near_and_far<oktopk::coo<>>();
  check_near_and_far<oktopk::coo_or_dense<>>();
  check_near_and_far<oktopk::packed<>>();
}

TEST_CASE("encoded pieces that cannot be as long as they say are an error") {
  using packed = oktopk::packed<>;
  execution const exec;
  oktopk::detail::message_buffer<execution> buffer("buffer");
  buffer.reserve(exec, oktopk::self_communicator(), 64);
  oktopk::detail::encoded_pieces<execution, packed> const pieces{packed()};
  oktopk::region const where{0, 1000};
  auto const heard = [&](std::uint64_t stated, std::int64_t available) {
    buffer.put(exec, 0, stated);
    return outcome_of([&] { pieces.encoded_bytes(exec, 2, where, buffer, 0, available); }).code;
  };
  auto const damaged = oktopk::fault::damaged_message;
  CHECK(heard(24, 32) == oktopk::fault::none);
  CHECK(heard(25, 32) == damaged);                // the message is shorter
  CHECK(heard(~std::uint64_t(0), 64) == damaged); // no size at all
  CHECK(heard(static_cast<std::uint64_t>(packed().max_encoded_bytes(2, where)) + 1, 64) == damaged); // two take less
  CHECK(heard(0, 4) == damaged); // no room for the header
}
