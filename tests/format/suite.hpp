// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/catch.hpp"
#include "support/seeded.hpp"

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/format/concept.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

// What every lossless format must pass: entries come back to the bit, and nothing beside them is touched.
namespace oktopk_tests {

using oktopk::region;

/// Entries on the host.
template <class Format>
struct arrays {
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;

  explicit arrays(std::size_t count) : indices(count), values(count) {}

  std::vector<index_type> indices;
  std::vector<value_type> values;
};

/// Ascending indices inside the region, both ends among them; finite values of any bits, zeros of both signs among
/// them.
template <class Format>
arrays<Format> some_entries(std::int64_t count, region where) {
  using value = typename Format::value_type;
  arrays<Format> made(static_cast<std::size_t>(count));
  seeded draw(9);
  for (std::size_t i = 0; i < made.indices.size(); ++i) {
    auto const place = where.width() / count * static_cast<std::int64_t>(i);
    made.indices[i] = static_cast<typename Format::index_type>(where.begin + place);
    made.values[i] = std::bit_cast<value>(static_cast<oktopk::detail::bits_of<value>>(draw.next()));
    if (!std::isfinite(made.values[i])) {
      made.values[i] = static_cast<value>(i);
    }
  }
  std::vector<value> const special = {-value(0), std::numeric_limits<value>::max(), value(0),
                                      -std::numeric_limits<value>::denorm_min()};
  for (std::size_t i = 0; i < std::min(special.size(), made.values.size()); ++i) {
    made.values[i] = special[i];
  }
  if (count > 1) {
    made.indices.back() = static_cast<typename Format::index_type>(where.end - 1);
  }
  return made;
}

/// Encodes into bytes aligned to 8 and to no more, decodes, and compares everything to the bit.
template <class Format>
void round_trip(std::int64_t count, region where) {
  using value = typename Format::value_type;
  auto const sent = some_entries<Format>(count, where);
  std::int64_t const most = Format::max_encoded_bytes(count, where);
  constexpr std::byte untouched{0xab};
  std::vector<std::uint64_t> room(static_cast<std::size_t>(most) / 8 + 4);
  std::memset(room.data(), 0xab, room.size() * 8);
  for (std::size_t const skip : {std::size_t(1), std::size_t(2)}) { // one of the two is not aligned to 16
    auto* const wire = reinterpret_cast<std::byte*>(room.data() + skip);
    host_execution const exec;
    std::int64_t const bytes = Format::encode(exec, {sent.indices.data(), sent.values.data(), count}, where, wire);
    exec.fence();
    CHECK((Format::exact_size ? bytes == most : bytes <= most));
    CHECK(wire[bytes] == untouched);
    CHECK(wire[-1] == untouched);

    arrays<Format> received(static_cast<std::size_t>(count) + 1);
    received.indices.back() = 77;
    received.values.back() = 77;
    Format::decode(exec, static_cast<std::byte const*>(wire), bytes, count, where, received.indices.data(),
                   received.values.data());
    exec.fence();
    CHECK(received.indices.back() == 77);
    CHECK(received.values.back() == 77);
    received.indices.pop_back();
    CHECK(received.indices == sent.indices);
    CHECK((count == 0 || std::memcmp(received.values.data(), sent.values.data(),
                                     static_cast<std::size_t>(count) * sizeof(value)) == 0));
    std::memset(room.data(), 0xab, room.size() * 8);
  }
}

/// The bound grows with the count, which the room for messages relies on.
template <class Format>
void check_bound_grows(region where, std::int64_t most) {
  for (std::int64_t count = 0; count < most; ++count) {
    REQUIRE(Format::max_encoded_bytes(count, where) <= Format::max_encoded_bytes(count + 1, where));
  }
}

} // namespace oktopk_tests
