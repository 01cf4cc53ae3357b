// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/seeded.hpp"

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/format/concept.hpp>

#include <bit>
#include <cstring>

// What every format must pass: indices come back to the bit, values too where the format loses none, and nothing beside
// them is touched.
namespace oktopk_tests {

using oktopk::region;

/// Entries on the host.
template <class Format>
struct arrays {
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;

  explicit arrays(std::size_t count, Format const& format = {})
      : indices(count), values(count * static_cast<std::size_t>(format.width())), width(format.width()) {}

  oktopk::sparse_ref<index_type, value_type, host_execution::memory_space> entries() const {
    return {indices.data(), values.data(), std::ssize(indices), width};
  }

  std::vector<index_type> indices;
  std::vector<value_type> values;
  std::int64_t width;
};

/// Ascending indices inside the region, both ends among them; finite values of any bits, zeros of both signs among
/// them.
template <class Format>
arrays<Format> some_entries(std::int64_t count, region where, Format const& format = {}) {
  using value = typename Format::value_type;
  arrays<Format> made(static_cast<std::size_t>(count), format);
  seeded draw(9);
  for (std::size_t i = 0; i < made.indices.size(); ++i) {
    auto const place = where.width() / count * static_cast<std::int64_t>(i);
    made.indices[i] = static_cast<typename Format::index_type>(where.begin + place);
  }
  for (std::size_t i = 0; i < made.values.size(); ++i) {
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

template <class Value>
bool same_bits(std::vector<Value> const& these, std::vector<Value> const& those) {
  return these.size() == those.size() &&
         (these.empty() || std::memcmp(these.data(), those.data(), these.size() * sizeof(Value)) == 0);
}

/// Encodes into bytes aligned to 8 and to no more, decodes, and compares everything to the bit; values only where the
/// format loses none: otherwise they must be finite, and the same each time.
template <class Format>
void round_trip(arrays<Format> const& sent, region where, Format const& format = {}) {
  using value = typename Format::value_type;
  auto const count = static_cast<std::int64_t>(sent.indices.size());
  std::int64_t const most = format.max_encoded_bytes(count, where);
  std::vector<value> first_values;
  constexpr std::byte untouched{0xab};
  std::vector<std::uint64_t> storage(static_cast<std::size_t>(most) / 8 + 4);
  std::memset(storage.data(), 0xab, storage.size() * 8);
  for (std::size_t const skip : {std::size_t(1), std::size_t(2)}) { // one of the two is not aligned to 16
    auto* const wire = reinterpret_cast<std::byte*>(storage.data() + skip);
    host_execution const exec;
    std::int64_t const bytes = format.encode(exec, sent.entries(), where, wire);
    exec.fence();
    CHECK((Format::exact_size ? bytes == most : bytes <= most));
    CHECK(wire[bytes] == untouched);
    CHECK(wire[-1] == untouched);

    arrays<Format> received(static_cast<std::size_t>(count), format);
    received.indices.push_back(77);
    received.values.push_back(77);
    format.decode(exec, static_cast<std::byte const*>(wire), bytes, count, where, received.indices.data(),
                  received.values.data());
    exec.fence();
    CHECK(received.indices.back() == 77);
    CHECK(received.values.back() == 77);
    received.indices.pop_back();
    CHECK(received.indices == sent.indices);
    received.values.pop_back();
    if (!oktopk::detail::is_lossy(format)) {
      CHECK(same_bits(received.values, sent.values));
    } else {
      CHECK(std::all_of(received.values.begin(), received.values.end(), [](value x) { return std::isfinite(x); }));
      CHECK((first_values.empty() || same_bits(received.values, first_values)));
      first_values = received.values;
    }
    std::memset(storage.data(), 0xab, storage.size() * 8);
  }
}

template <class Format>
void round_trip(std::int64_t count, region where, Format const& format = {}) {
  round_trip(some_entries<Format>(count, where, format), where, format);
}

/// The encoded bytes of a message.
template <class Format>
std::vector<std::byte> encoded(arrays<Format> const& sent, region where, Format const& format = {}) {
  auto const count = static_cast<std::int64_t>(sent.indices.size());
  std::vector<std::uint64_t> storage(static_cast<std::size_t>(format.max_encoded_bytes(count, where)) / 8 + 1);
  auto* const wire = reinterpret_cast<std::byte*>(storage.data());
  std::int64_t const bytes = format.encode(host_execution(), sent.entries(), where, wire);
  host_execution().fence();
  return {wire, wire + bytes};
}

/// The entries of a message, of which so many bytes have come; all where it is not said.
template <class Format>
arrays<Format> decoded(std::vector<std::byte> const& message, std::int64_t count, region where,
                       std::int64_t bytes = std::numeric_limits<std::int64_t>::max(), Format const& format = {}) {
  arrays<Format> received(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)), format);
  format.decode(host_execution(), message.data(), std::min(bytes, static_cast<std::int64_t>(message.size())), count,
                where, received.indices.data(), received.values.data());
  host_execution().fence();
  return received;
}

/// What a format says of so many bytes of a message of zeros.
template <class Format>
oktopk::fault fault_of_zeros(std::int64_t bytes, std::int64_t count, region where) {
  std::vector<std::byte> const zeros(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0)));
  return outcome_of([&] { decoded<Format>(zeros, count, where, bytes); }).code;
}

/// The bound grows with the count, which the room for messages relies on.
template <class Format>
void check_bound_grows(region where, std::int64_t most, Format const& format = {}) {
  for (std::int64_t count = 0; count < most; ++count) {
    REQUIRE(format.max_encoded_bytes(count, where) <= format.max_encoded_bytes(count + 1, where));
  }
}

/// A message that is cut takes no more than `bytes_per_cut` tells.
template <class Format>
void check_bound_of_cuts(Format const& format = {}) {
  seeded draw(77);
  for (int repeat = 0; repeat < 2000; ++repeat) {
    auto const width = static_cast<std::int64_t>(draw.next() % (std::uint64_t(1) << (1 + draw.next() % 30))) + 2;
    auto const count = static_cast<std::int64_t>(draw.next() % static_cast<std::uint64_t>(width)) + 1;
    auto const at = static_cast<std::int64_t>(draw.next() % static_cast<std::uint64_t>(width + 1));
    std::int64_t const least = std::max<std::int64_t>(0, count - (width - at)); // entries that must lie before the cut
    std::int64_t const most = std::min(count, at);
    std::int64_t const before =
        least + static_cast<std::int64_t>(draw.next() % static_cast<std::uint64_t>(most - least + 1));
    CAPTURE(width, count, at, before);
    REQUIRE(format.max_encoded_bytes(before, {0, at}) + format.max_encoded_bytes(count - before, {at, width}) <=
            format.max_encoded_bytes(count, {0, width}) + Format::bytes_per_cut);
  }
}

/// All of this, for messages of any count in regions of any width and place.
template <class Format>
void check_format(Format const& format = {}) {
  std::int64_t const last = std::numeric_limits<typename Format::index_type>::max();
  for (std::int64_t const count : {0, 1, 2, 3, 7, 8, 9, 100, 101, 255, 256, 257, 511, 512, 1000, 2049}) {
    for (std::int64_t const width :
         {count, count + 1, 3 * count / 2, 2 * count, 3 * count, 100 * count + 5, 70000 * (count + 1)}) {
      CAPTURE(count, width);
      round_trip(count, {0, width}, format);
      round_trip(count, {123457, 123457 + width}, format);
      round_trip(count, {last - width, last}, format);
    }
    round_trip(count, {0, std::min(last, std::int64_t(1) << 40)}, format);
  }
  round_trip(3, {std::int64_t(1) << 24, (std::int64_t(1) << 24) + 4}, format); // where a float would round
  check_bound_grows({1000, 1700}, 700, format);
  check_bound_grows({0, 1000000}, 3000, format);
  check_bound_of_cuts(format);
}

} // namespace oktopk_tests
