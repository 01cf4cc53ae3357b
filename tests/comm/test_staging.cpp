// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Kernels' memory and the wire's: one array where the communicator reaches it, two and copies where not.

#include "support/catch.hpp"
#include "support/seeded.hpp"
#include "support/unreachable.hpp"

#include <oktopk/comm/message_group.hpp>
#include <oktopk/comm/self.hpp>

using namespace oktopk_tests;

namespace {

using near_ranks = oktopk::self_communicator;
using far_ranks = unreachable<oktopk::self_communicator>;
using message_buffer = oktopk::detail::message_buffer<host_execution>;

constexpr std::byte blank{0};
constexpr std::byte from_kernels{1};
constexpr std::byte from_wire{2};

void fill_kernels(message_buffer const& buffer, std::int64_t bytes, std::byte with) {
  std::fill(buffer.data(), buffer.data() + bytes, with);
}

void fill_wire(message_buffer const& buffer, std::int64_t bytes, std::byte with) {
  auto const wire = buffer.wire(0, bytes);
  std::fill(wire.begin(), wire.end(), with);
}

/// Two buffers of 64 bytes, filled with these on both sides: `within` reach of the communicator and `out_of` reach.
struct near_and_far {
  near_and_far(host_execution const& exec, std::byte in_kernels, std::byte on_wire) {
    within.reserve(exec, near_ranks(), 64);
    out_of.reserve(exec, far_ranks(near_ranks()), 64);
    for (message_buffer const* buffer : {&within, &out_of}) {
      fill_kernels(*buffer, 64, in_kernels);
      fill_wire(*buffer, 64, on_wire);
    }
  }

  message_buffer within{"oktopk::tests::messages"};
  message_buffer out_of{"oktopk::tests::messages"};
};

} // namespace

TEST_CASE("within reach, kernels and messages share one array") {
  host_execution const exec;
  near_and_far const buffers(exec, blank, blank);
  message_buffer const& buffer = buffers.within;
  CHECK(buffer.wire(0, 64).data() == buffer.data());
  CHECK(buffer.wire(16, 8).data() == buffer.data() + 16);
  CHECK(buffer.wire(16, 8).size() == 8);
  fill_kernels(buffer, 64, from_kernels);
  buffer.push(exec, 0, 64);
  buffer.pull(exec, 0, 64);
  exec.fence();
  CHECK(buffer.wire(63, 1)[0] == from_kernels);
}

TEST_CASE("out of reach, push and pull copy the bytes that travel and no others") {
  host_execution const exec;
  near_and_far const buffers(exec, from_kernels, from_wire);
  message_buffer const& buffer = buffers.out_of;
  auto const wire = buffer.wire(0, 64);
  REQUIRE(wire.data() != buffer.data());
  buffer.push(exec, 8, 16);
  buffer.push(exec, 40, 0);
  buffer.pull(exec, 24, 8);
  buffer.pull(exec, 0, 0);
  exec.fence();
  for (std::size_t i = 0; i < 64; ++i) {
    CHECK(wire[i] == (i >= 8 && i < 24 ? from_kernels : from_wire));
    CHECK(buffer.data()[i] == (i >= 24 && i < 32 ? from_wire : from_kernels));
  }
}

TEST_CASE("numbers in front of messages are put and got where the wire is, at any place") {
  host_execution const exec;
  near_and_far const buffers(exec, blank, blank);
  for (message_buffer const* buffer : {&buffers.within, &buffers.out_of}) {
    buffer->put(exec, 8, 0x1122334455667788U);
    buffer->put(exec, 33, ~std::uint64_t(0));
    CHECK(buffer->get(exec, 8) == 0x1122334455667788U);
    CHECK(buffer->get(exec, 33) == ~std::uint64_t(0));
    CHECK(buffer->get(exec, 16) == 0);
    CHECK(buffer->wire(33, 1)[0] == std::byte(0xff));
    CHECK(buffer->wire(41, 1)[0] == blank);
  }
  CHECK(buffers.out_of.data()[33] == blank); // the kernels' side is not touched
}

TEST_CASE("bytes are cleared where the wire is, and no others") {
  host_execution const exec;
  near_and_far const buffers(exec, from_kernels, from_wire);
  for (message_buffer const* buffer : {&buffers.within, &buffers.out_of}) {
    buffer->clear(exec, 20, 4);
    buffer->clear(exec, 40, 0);
    exec.fence();
    for (std::int64_t i = 0; i < 64; ++i) {
      CHECK(buffer->wire(i, 1)[0] == (i >= 20 && i < 24 ? blank : from_wire));
    }
  }
  CHECK(buffers.out_of.data()[20] == from_kernels);
}

TEST_CASE("both sides grow together, and stay where they are when they are large enough") {
  host_execution const exec;
  message_buffer buffer("oktopk::tests::messages");
  far_ranks const comm{near_ranks()};
  buffer.reserve(exec, comm, 10);
  buffer.reserve(exec, comm, 1000);
  std::byte* const kernels = buffer.data();
  std::byte* const wire = buffer.wire(0, 1000).data();
  fill_kernels(buffer, 1000, from_kernels);
  fill_wire(buffer, 1000, blank);
  buffer.push(exec, 0, 1000);
  exec.fence();
  CHECK(buffer.wire(999, 1)[0] == from_kernels);
  buffer.reserve(exec, comm, 500);
  CHECK(buffer.data() == kernels);
  CHECK(buffer.wire(0, 500).data() == wire);
}
