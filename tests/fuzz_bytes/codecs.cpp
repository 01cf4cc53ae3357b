// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Blocks of dense values in every codec, as they arrive from another rank.

#include "target.hpp"

#include <oktopk/codec/block_float.hpp>
#include <oktopk/codec/elementwise.hpp>
#ifdef OKTOPK_TESTS_WITH_ZFP
#include <oktopk/codec/zfp.hpp>
#endif

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

template <class Value, class Codec>
bytes encoded(Codec const& codec, std::int64_t count) {
  std::vector<Value> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<Value>(0.01 * static_cast<double>(i * i % 101 - 50)));
  }
  bytes out(static_cast<std::size_t>(codec.template encoded_bytes<Value>(count)));
  execution const exec;
  codec.encode(exec, values.data(), count, out.data(), static_cast<Value*>(nullptr));
  exec.fence();
  return out;
}

template <class Use>
void with_codec(std::uint8_t which, std::uint8_t option, Use const& use) {
  int const rate = 4 + option % 13;
  switch (which % 4) {
  case 0: return use(oktopk::bfloat16());
  case 1: return use(oktopk::identity());
  case 2: return use(oktopk::block_float({.rate = rate}));
  default:
#ifdef OKTOPK_TESTS_WITH_ZFP
    return use(oktopk::zfp({.rate = rate}));
#endif
    break;
  }
}

} // namespace

void run(std::span<std::byte const> input) {
  drawn from(input);
  auto const which = from.number<std::uint8_t>();
  with_codec(which, from.number<std::uint8_t>(), [&](auto const& codec) {
    from.number<std::uint8_t>() % 2 == 0 ? decode<float>(codec, from) : decode<double>(codec, from);
  });
}

std::vector<bytes> seeds() {
  std::vector<bytes> made;
  for (std::uint8_t which = 0; which < 4; ++which) {
    for (std::uint8_t const option : std::initializer_list<std::uint8_t>{0, 1, 4, 12}) {
      with_codec(which, option, [&](auto const& codec) {
        for (std::int64_t const count : {3, 200}) {
          for (bool const wide : {false, true}) {
            made.push_back(written()
                               .number(which)
                               .number(option)
                               .number(std::uint8_t(wide))
                               .number(static_cast<std::uint64_t>(count))
                               .rest(wide ? encoded<double>(codec, count) : encoded<float>(codec, count)));
          }
        }
      });
    }
  }
  return made;
}

} // namespace oktopk_fuzz
