// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Messages of other programs.

#include "target.hpp"

#include <oktopk/core/error.hpp>
#include <oktopk/format/interop/indices12.hpp>
#include <oktopk/format/interop/psyche_result.hpp>
#include <oktopk/format/interop/signs.hpp>

#include <algorithm>

namespace oktopk_fuzz {
namespace {

namespace interop = oktopk::interop;

template <class Index>
void check(interop::chunk_layout const& layout, std::span<Index const> indices) {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    require(indices[i] >= 0 && indices[i] < layout.length, "an index outside the vector");
    require(i == 0 || indices[i] > indices[i - 1], "indices that do not ascend");
  }
}

// Small enough that its entries fit in memory.
interop::chunk_layout layout_of(drawn& from) {
  interop::chunk_layout layout;
  layout.length = from.up_to(9000);
  layout.chunk = 1 + from.up_to(70000);
  layout.per_chunk = 1 + from.up_to(200);
  return layout;
}

template <class Index>
void read(std::uint8_t which, drawn& from) {
  if (which == 2) {
    bytes const in = from.rest();
    auto const result = interop::read_psyche_result<Index, float>(in, 0.5F);
    check<Index>(result.layout, result.indices);
    require(result.bytes <= in.size(), "a result that is longer than its message");
    return;
  }
  interop::chunk_layout const layout = layout_of(from);
  // Beside the layouts that fit, one that does not, for the readers to refuse.
  std::int64_t const more = from.number<std::uint8_t>() == 255 ? 1 : 0;
  auto const count = static_cast<std::size_t>(layout.entries() + more);
  std::vector<Index> indices(count);
  std::vector<float> values(count);
  bytes const in = from.rest();
  if (which == 0) {
    interop::read_indices12<Index, float>(layout, in, indices, values);
  } else {
    std::size_t const places = std::min(in.size(), static_cast<std::size_t>(interop::bytes_of_places(layout)));
    bytes const first(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(places));
    bytes const second(in.begin() + static_cast<std::ptrdiff_t>(places), in.end());
    interop::read_signs<Index, float>(layout, first, second, 1.0F, indices, values);
  }
  check<Index>(layout, indices);
}

written of_layout(std::uint8_t which, interop::chunk_layout const& layout) {
  written made;
  made.number(which).number(std::uint8_t(0));
  made.number(static_cast<std::uint64_t>(layout.length)).number(static_cast<std::uint64_t>(layout.chunk - 1));
  made.number(static_cast<std::uint64_t>(layout.per_chunk - 1)).number(std::uint8_t(0));
  return made;
}

} // namespace

void run(std::span<std::byte const> input) {
  drawn from(input);
  auto const which = static_cast<std::uint8_t>(from.number<std::uint8_t>() % 3);
  try {
    if (from.number<std::uint8_t>() % 2 == 0) {
      read<std::int32_t>(which, from);
    } else {
      read<std::int64_t>(which, from);
    }
  } catch (oktopk::error const&) {
  }
}

std::vector<bytes> seeds() {
  std::vector<bytes> made;
  for (interop::chunk_layout const layout :
       {interop::chunk_layout{4096 * 2, 4096, 5}, interop::chunk_layout{640, 64, 7}, interop::chunk_layout{99, 10, 3},
        interop::chunk_layout{600, 300, 9}}) {
    auto const count = static_cast<std::size_t>(layout.entries());
    std::vector<std::int32_t> indices;
    std::vector<float> values;
    for (std::size_t i = 0; i < count; ++i) {
      auto const entry = static_cast<std::int64_t>(i);
      indices.push_back(static_cast<std::int32_t>(layout.begin_of(entry) + entry % layout.per_chunk));
      values.push_back(i % 3 == 0 ? -1.0F : 1.0F);
    }
    bytes packed(static_cast<std::size_t>(interop::bytes_of_indices12(layout.entries())));
    interop::write_indices12<std::int32_t>(layout, indices, packed);
    made.push_back(of_layout(0, layout).rest(packed));
    bytes places(static_cast<std::size_t>(interop::bytes_of_places(layout)));
    bytes signs(static_cast<std::size_t>(interop::bytes_of_signs(layout.entries())));
    interop::write_signs<std::int32_t, float>(layout, indices, values, places, signs);
    made.push_back(of_layout(1, layout).rest(places).rest(signs));
    if (layout.length % layout.chunk == 0) {
      auto const result = interop::write_psyche_result<std::int32_t, float>(layout, indices, values);
      made.push_back(written().number(std::uint8_t(2)).number(std::uint8_t(0)).rest(result));
    }
  }
  return made;
}

} // namespace oktopk_fuzz
