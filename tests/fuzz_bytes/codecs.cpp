// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Blocks of dense values in every codec, as they arrive from another rank.

#include "target.hpp"

#include <oktopk/codec/block_float.hpp>
#include <oktopk/codec/elementwise.hpp>
#ifdef OKTOPK_TESTS_WITH_ZFP
#include <oktopk/codec/zfp.hpp>
#endif

#include <initializer_list>

namespace oktopk_fuzz {
namespace {

using execution = Kokkos::DefaultHostExecutionSpace;

constexpr std::int64_t most_values = 600;

// A receiver knows how many values come and makes just this much room, so bytes are never missing. The room is aligned,
// as messages are.
template <class Value, class Codec>
void decode(Codec const& codec, drawn& from) {
  std::int64_t const count = from.up_to(most_values);
  bytes in = from.rest();
  in.resize(static_cast<std::size_t>(codec.template encoded_bytes<Value>(count)));
  bytes out(in.size());
  std::vector<Value> values(static_cast<std::size_t>(count), Value(1));
  std::vector<Value> lost(values.size());
  execution const exec;
  codec.decode(exec, in.data(), count, values.data());
  codec.decode_and_reduce(exec, oktopk::detail::add(), in.data(), count, values.data());
  if constexpr (oktopk::detail::recoding_codec<Codec, Value, execution>) {
    codec.recode(exec, oktopk::detail::add(), in.data(), count, values.data(), out.data(), lost.data());
  }
  exec.fence();
}

template <class Codec>
void decode_either(Codec const& codec, drawn& from) {
  if (from.number<std::uint8_t>() % 2 == 0) {
    decode<float>(codec, from);
  } else {
    decode<double>(codec, from);
  }
}

template <class Value, class Codec>
void seed(Codec const& codec, std::uint8_t which, std::uint8_t option, std::vector<bytes>& made) {
  for (std::int64_t const count : {3, 200}) {
    std::vector<Value> values;
    for (std::int64_t i = 0; i < count; ++i) {
      values.push_back(static_cast<Value>(0.01 * static_cast<double>(i * i % 101 - 50)));
    }
    bytes out(static_cast<std::size_t>(codec.template encoded_bytes<Value>(count)));
    execution const exec;
    codec.encode(exec, values.data(), count, out.data(), static_cast<Value*>(nullptr));
    exec.fence();
    made.push_back(written()
                       .number(which)
                       .number(option)
                       .number(std::uint8_t(sizeof(Value) == 4 ? 0 : 1))
                       .number(static_cast<std::uint64_t>(count))
                       .rest(out));
  }
}

template <class Codec>
void seed_both(Codec const& codec, std::uint8_t which, std::uint8_t option, std::vector<bytes>& made) {
  seed<float>(codec, which, option, made);
  seed<double>(codec, which, option, made);
}

int rate_of(std::uint8_t option) {
  return 4 + option % 13;
}

} // namespace

void run(std::span<std::byte const> input) {
  drawn from(input);
  auto const which = from.number<std::uint8_t>();
  auto const option = from.number<std::uint8_t>();
  switch (which % 4) {
  case 0: decode_either(oktopk::bfloat16(), from); break;
  case 1: decode_either(oktopk::identity(), from); break;
  case 2: decode_either(oktopk::block_float({.rate = rate_of(option)}), from); break;
  default:
#ifdef OKTOPK_TESTS_WITH_ZFP
    decode_either(oktopk::zfp({.rate = rate_of(option)}), from);
#endif
    break;
  }
}

std::vector<bytes> seeds() {
  std::vector<bytes> made;
  seed_both(oktopk::bfloat16(), 0, 0, made);
  seed_both(oktopk::identity(), 1, 0, made);
  for (std::uint8_t const option : std::initializer_list<std::uint8_t>{0, 1, 4, 12}) {
    seed_both(oktopk::block_float({.rate = rate_of(option)}), 2, option, made);
#ifdef OKTOPK_TESTS_WITH_ZFP
    seed_both(oktopk::zfp({.rate = rate_of(option)}), 3, option, made);
#endif
  }
  return made;
}

} // namespace oktopk_fuzz
