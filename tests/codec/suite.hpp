// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/generators.hpp"

#include <oktopk/codec/concept.hpp>
#include <oktopk/core/reduce.hpp>
#include <oktopk/dense/wire.hpp>

// What every codec of a collective is put through.
namespace oktopk_tests::codecs {

/// A block through the wire and back.
template <class Value>
struct trip {
  std::vector<std::byte> wire;
  std::vector<Value> decoded;
  std::vector<Value> lost;
};

template <class Codec, class Value>
trip<Value> travel(Codec const& codec, std::vector<Value> const& values) {
  execution const exec;
  auto const count = static_cast<std::int64_t>(values.size());
  std::int64_t const bytes = codec.template encoded_bytes<Value>(count);
  auto const from = to_view(values);
  // One guard of a word behind each array shows what writes too far.
  auto const wire =
      to_view(std::vector<std::uint64_t>(static_cast<std::size_t>((bytes + 7) / 8 + 1), 0x5a5a5a5a5a5a5a5a));
  auto const to = to_view(std::vector<Value>(values.size() + 1, Value(-7)));
  auto const lost = to_view(std::vector<Value>(values.size() + 1, Value(-7)));
  auto* const out = reinterpret_cast<std::byte*>(wire.data());
  codec.encode(exec, static_cast<Value const*>(from.data()), count, out, lost.data());
  codec.decode(exec, static_cast<std::byte const*>(out), count, to.data());
  exec.fence();
  auto const words = to_vector(wire);
  trip<Value> made{{}, to_vector(to), to_vector(lost)};
  auto const* const begin = reinterpret_cast<std::byte const*>(words.data());
  made.wire.assign(begin, begin + bytes);
  CHECK(std::all_of(begin + bytes, begin + 8 * words.size(), [](std::byte b) { return b == std::byte(0x5a); }));
  CHECK((made.decoded.back() == -7 && made.lost.back() == -7));
  made.decoded.pop_back();
  made.lost.pop_back();
  return made;
}

/// Values of every kind that a gradient may have, a name to each.
template <class Value>
std::vector<std::pair<std::string, std::vector<Value>>> finite_blocks() {
  using limits = std::numeric_limits<Value>;
  std::vector<std::pair<std::string, std::vector<Value>>> all;
  auto const make = [&](std::string const& name, std::size_t size, auto const& of) {
    std::vector<Value> values(size);
    for (std::size_t i = 0; i < size; ++i) {
      values[i] = static_cast<Value>(of(i, fraction(noise(9, i, size))));
    }
    all.emplace_back(name, values);
  };
  for (int const size : {0, 1, 3, 4, 7, 8, 63, 64, 65, 127, 1000}) {
    make("random " + std::to_string(size), static_cast<std::size_t>(size),
         [](std::size_t, double u) { return 2 * u - 1; });
  }
  make("zeros", 100, [](std::size_t i, double) { return i % 2 == 0 ? 0.0 : -0.0; });
  make("constant", 100, [](std::size_t, double) { return -3.14159; });
  make("subnormal", 100, [](std::size_t, double u) { return (2 * u - 1) * static_cast<double>(limits::min()) / 64; });
  make("least subnormal", 70, [](std::size_t i, double) {
    return (static_cast<double>(i % 3) - 1) * static_cast<double>(limits::denorm_min());
  });
  make("around the least normal", 100,
       [](std::size_t, double u) { return (8 * u - 4) * static_cast<double>(limits::min()); });
  for (int exponent = limits::min_exponent; exponent < -80; exponent += limits::max_exponent / 128) {
    make("2^" + std::to_string(exponent), 12, [&](std::size_t, double u) { return std::ldexp(2 * u - 1, exponent); });
  }
  make("huge", 100, [](std::size_t, double u) { return (2 * u - 1) * static_cast<double>(limits::max()); });
  make("largest", 70, [](std::size_t i, double) { return (i % 2 == 0 ? 1 : -1) * static_cast<double>(limits::max()); });
  make("just below a power of two", 64, [](std::size_t i, double u) { return i == 5 ? 1.9999999 : u; });
  make("mixed magnitudes", 1000, [](std::size_t i, double u) {
    return (i % 2 == 0 ? 1 : -1) * std::exp2(static_cast<double>(limits::max_exponent - 4) * (2 * u - 1));
  });
  make("one outlier", 200, [](std::size_t i, double u) { return i == 100 ? 1e20 : u; });
  return all;
}

/// Whether one kernel gives what two give: the bytes, and what is lost.
template <class Codec, class Value, class Wire>
bool recodes_alike(Codec const& codec, std::vector<Value> const& values, Wire const& wire, trip<Value> const& made) {
  execution const exec;
  std::vector<Value> other(values.size());
  std::vector<Value> sums(values.size());
  for (std::size_t i = 0; i < other.size(); ++i) {
    other[i] = made.decoded[i] * static_cast<Value>(fraction(noise(23, i)) - Value(0.5));
    sums[i] = other[i] + made.decoded[i];
  }
  trip<Value> const expected = travel(codec, sums);
  auto const mine = to_view(other);
  auto const out = to_view(std::vector<std::byte>(made.wire.size() + 8, std::byte(0x5a)));
  auto const lost = to_view(std::vector<Value>(values.size() + 1, Value(-7)));
  for (Value* const note : {static_cast<Value*>(nullptr), lost.data()}) {
    codec.recode(exec, oktopk::detail::add(), static_cast<std::byte const*>(wire.data()),
                 static_cast<std::int64_t>(values.size()), static_cast<Value const*>(mine.data()), out.data(), note);
  }
  exec.fence();
  auto bytes = to_vector(out);
  auto noted = to_vector(lost);
  bool const kept = bytes.back() == std::byte(0x5a) && noted.back() == -7 && to_vector(mine) == other;
  bytes.resize(made.wire.size());
  noted.pop_back();
  return kept && bytes == expected.wire && bits(noted) == bits(expected.lost);
}

/// Error within the bound, `lost` what is missing, reductions those of the decoded values, sizes kept, and nothing more
/// lost the second time where the codec says so. What rounds to more than `most` may become infinite.
template <class Value, class Codec>
std::string fault_on_finite(Codec const& codec, double most = std::numeric_limits<double>::infinity()) {
  static_assert(oktopk::codec<Codec, Value, execution>);
  execution const exec;
  for (auto const& block : finite_blocks<Value>()) {
    std::string const& name = block.first;
    std::vector<Value> const& values = block.second; // clang captures no structured bindings
    trip<Value> const made = travel(codec, values);
    double largest = 0; // of the block
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto const block_size = static_cast<std::size_t>(Codec::block_size);
      if (i % block_size == 0) {
        largest = 0;
        for (std::size_t j = i; j < std::min(i + block_size, values.size()); ++j) {
          largest = std::max(largest, std::fabs(static_cast<double>(values[j])));
        }
      }
      double const error = std::fabs(static_cast<double>(values[i]) - static_cast<double>(made.decoded[i]));
      if (std::isinf(made.decoded[i]) &&
          std::fabs(static_cast<double>(values[i])) + codec.template error_bound<Value>(largest) > most) {
        continue;
      }
      if (!(error <= codec.template error_bound<Value>(largest))) {
        return name + ": off by " + std::to_string(error / codec.template error_bound<Value>(largest)) + " bounds at " +
               std::to_string(i);
      }
      if (made.lost[i] != values[i] - made.decoded[i]) {
        return name + ": lost is not what is missing at " + std::to_string(i);
      }
      if (Codec::lossless && error != 0) {
        return name + ": not lossless at " + std::to_string(i);
      }
    }
    auto const count = static_cast<std::int64_t>(values.size());
    auto const wire = to_view(made.wire);
    auto const reduced = [&](auto operation) {
      std::vector<Value> other(values.size());
      for (std::size_t i = 0; i < other.size(); ++i) {
        other[i] = static_cast<Value>(2 * fraction(noise(17, i)) - 1);
      }
      auto const into = to_view(other);
      codec.decode_and_reduce(exec, operation, static_cast<std::byte const*>(wire.data()), count, into.data());
      exec.fence();
      std::vector<Value> expected(values.size());
      for (std::size_t i = 0; i < other.size(); ++i) {
        expected[i] = decltype(operation)::of(other[i], made.decoded[i]);
      }
      return bits(expected) == bits(to_vector(into));
    };
    if (!reduced(oktopk::detail::add()) || !reduced(oktopk::detail::larger()) || !reduced(oktopk::detail::smaller())) {
      return name + ": reduces to other values than it decodes to";
    }
    if constexpr (oktopk::detail::recoding_codec<Codec, Value, execution>) {
      if (!recodes_alike(codec, values, wire, made)) {
        return name + ": recodes to other bytes, or tells other losses, than by decoding and encoding";
      }
    }
    if (Codec::stable && bits(travel(codec, made.decoded).decoded) != bits(made.decoded)) {
      return name + ": loses more the second time";
    }
  }
  return {};
}

/// A value that is not finite is not finite when it arrives, and NaN stays NaN; the other way round, blocks far from it
/// are as ever.
template <class Value, class Codec>
std::string fault_on_non_finite(Codec const& codec) {
  using limits = std::numeric_limits<Value>;
  for (std::size_t const size : {std::size_t(1), std::size_t(64), std::size_t(200)}) {
    for (std::size_t const at : {std::size_t(0), size / 2, size - 1}) {
      for (Value const bad : {limits::quiet_NaN(), limits::infinity(), -limits::infinity()}) {
        std::vector<Value> values(size, Value(1));
        values[at] = bad;
        trip<Value> const made = travel(codec, values);
        if (std::isfinite(made.decoded[at]) || (std::isnan(bad) && !std::isnan(made.decoded[at]))) {
          return "a value that is not finite arrives as " + std::to_string(made.decoded[at]);
        }
      }
    }
  }
  return {};
}

/// Both, of gradients in both precisions.
template <class Codec>
void check_codec(Codec const& codec, double most_float = std::numeric_limits<double>::infinity(),
                 double most_double = std::numeric_limits<double>::infinity()) {
  INFO(codec.name());
  CHECK(fault_on_finite<float>(codec, most_float) == "");
  CHECK(fault_on_finite<double>(codec, most_double) == "");
  CHECK(fault_on_non_finite<float>(codec) == "");
  CHECK(fault_on_non_finite<double>(codec) == "");
}

} // namespace oktopk_tests::codecs
