// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "exchange/parts.hpp"
#include "select/distributions.hpp"
#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/generators.hpp"

#include <oktopk/format/interop/indices12.hpp>
#include <oktopk/format/interop/psyche_result.hpp>
#include <oktopk/format/interop/signs.hpp>
#include <oktopk/select/chunked.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

using namespace oktopk_tests;
using namespace oktopk::interop;

namespace {

using indices_type = std::vector<std::int32_t>;
using values_type = std::vector<float>;
using bytes_type = std::vector<std::byte>;

bytes_type bytes_of(std::vector<int> const& numbers) {
  bytes_type bytes;
  for (int const each : numbers) {
    bytes.push_back(static_cast<std::byte>(each));
  }
  return bytes;
}

bytes_type written12(chunk_layout const& layout, indices_type const& indices) {
  bytes_type bytes(static_cast<std::size_t>(bytes_of_indices12(layout.entries())));
  CHECK(write_indices12<std::int32_t>(layout, indices, bytes) == static_cast<std::int64_t>(bytes.size()));
  return bytes;
}

/// What a reader gives.
struct message {
  indices_type indices;
  values_type values;

  explicit message(chunk_layout const& layout)
      : indices(static_cast<std::size_t>(layout.entries()), -1), values(indices.size(), 0) {}
};

message read12(chunk_layout const& layout, bytes_type const& bytes, values_type const& values) {
  message read(layout);
  read.values = values;
  read_indices12<std::int32_t, float>(layout, bytes, read.indices, read.values);
  return read;
}

message read_signed(chunk_layout const& layout, bytes_type const& places, bytes_type const& signs) {
  message read(layout);
  read_signs<std::int32_t, float>(layout, places, signs, 0.5F, read.indices, read.values);
  return read;
}

struct signed_bytes {
  bytes_type places;
  bytes_type signs;
};

signed_bytes written_signed(chunk_layout const& layout, indices_type const& indices, values_type const& values) {
  signed_bytes all{bytes_type(static_cast<std::size_t>(bytes_of_places(layout))),
                   bytes_type(static_cast<std::size_t>(bytes_of_signs(layout.entries())))};
  write_signs<std::int32_t, float>(layout, indices, values, all.places, all.signs);
  return all;
}

void check_refused(oktopk::fault what, std::string const& sentence, std::function<void()> const& action) {
  try {
    action();
    FAIL("nothing was thrown, expected: " << sentence);
  } catch (oktopk::error const& thrown) {
    CHECK(thrown.code() == what);
    CHECK(thrown.sentence() == sentence);
  }
}

constexpr auto ours = oktopk::fault::option_out_of_range;
constexpr auto theirs = oktopk::fault::bad_file;

sparse_vector<float> selection_of(std::vector<float> const& values, chunk_layout const& layout) {
  auto const view = to_view(values);
  execution const exec;
  oktopk::one_rank alone;
  workspace_of<float> room;
  oktopk::selection_context<execution, std::int32_t, float, oktopk::one_rank> const context{exec, 1, 0, alone, room};
  oktopk::chunked::state<float> state;
  oktopk::chunked const selector({.chunk = layout.chunk, .per_chunk = layout.per_chunk});
  return entries_of(selector.select(context, candidates_in(view), state).entries);
}

} // namespace

// Places 001, fff of the first chunk, abc, def of the second.
//   001, fff: low byte of the first 01; high digit of the first 0, low digit of the second f above it: f0; ff
//   abc, def: bc; a, f above it: fa; de
TEST_CASE("two indices of 12 bits are three bytes, as Templar has them") {
  chunk_layout const layout{8192, 4096, 2};
  indices_type const indices = {0x001, 0xfff, 4096 + 0xabc, 4096 + 0xdef};
  auto const bytes = bytes_of({0x01, 0xf0, 0xff, 0xbc, 0xfa, 0xde});
  CHECK(written12(layout, indices) == bytes);
  auto const read = read12(layout, bytes, {1, 2, 3, 4});
  CHECK(read.indices == indices);
  CHECK(read.values == values_type{1, 2, 3, 4});
}

// Three entries of the first chunk, three of the second: the pair in the middle has one of each. The seventh is left
// over: the chunk at the end has a single value.
//   000, 001: 00; 0, 1 above it: 10; 00      800, 002: 00; 8, 2 above it: 28; 00
//   003, fff: 03; 0, f above it: f0; ff      000 alone: 00; 00
TEST_CASE("an odd number of indices ends in two bytes, and pairs run across chunks") {
  chunk_layout const layout{8193, 4096, 3};
  indices_type const indices = {0x000, 0x001, 0x800, 4096 + 0x002, 4096 + 0x003, 4096 + 0xfff, 8192};
  auto const bytes = bytes_of({0x00, 0x10, 0x00, 0x00, 0x28, 0x00, 0x03, 0xf0, 0xff, 0x00, 0x00});
  CHECK(written12(layout, indices) == bytes);
  CHECK(read12(layout, bytes, values_type(7, 1)).indices == indices);
}

TEST_CASE("entries of a chunk in any order come out in order, with their values") {
  chunk_layout const layout{8192, 4096, 2};
  // fff, 001: ff; f, 1 above it: 1f; 00
  auto const read = read12(layout, bytes_of({0xff, 0x1f, 0x00, 0xbc, 0xfa, 0xde}), {1, 2, 3, 4});
  CHECK(read.indices == indices_type{0x001, 0xfff, 4096 + 0xabc, 4096 + 0xdef});
  CHECK(read.values == values_type{2, 1, 3, 4});
}

// Places 001, fff, low byte first: 01 00 ff 0f. Signs + - + + - - - + | -, a bit for each minus, from
// the lowest bit on: 2 + 16 + 32 + 64 = 114 = 72, and 01.
TEST_CASE("indices of 16 bits and signs of one bit, as Psyche has them") {
  chunk_layout const two{4096, 4096, 2};
  auto const few = written_signed(two, {0x001, 0xfff}, {2.5F, -1e-30F});
  CHECK(few.places == bytes_of({0x01, 0x00, 0xff, 0x0f}));
  CHECK(few.signs == bytes_of({0x02}));

  chunk_layout const nine{4096, 4096, 9};
  indices_type const indices = {0, 1, 2, 3, 4, 5, 6, 7, 0x0100};
  values_type const values = {1, -1, 1, 1, -1, -1, -1, 1, -1};
  auto const many = written_signed(nine, indices, values);
  CHECK(many.places == bytes_of({0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 0x00, 0x01}));
  CHECK(many.signs == bytes_of({0x72, 0x01}));

  auto const read = read_signed(nine, many.places, many.signs);
  CHECK(read.indices == indices);
  CHECK(read.values == values_type{0.5F, -0.5F, 0.5F, 0.5F, -0.5F, -0.5F, -0.5F, 0.5F, -0.5F});
}

TEST_CASE("signs go with indices as wide as the chunk needs") {
  // Up to 256 values one byte; 65,537 values four: 00010000, low byte first.
  CHECK(written_signed({256, 256, 2}, {7, 255}, {1, 1}).places == bytes_of({7, 0xff}));
  CHECK(written_signed({257, 257, 1}, {256}, {1}).places == bytes_of({0x00, 0x01}));
  auto const wide = written_signed({65537, 65537, 1}, {65536}, {-1});
  CHECK(wide.places == bytes_of({0x00, 0x00, 0x01, 0x00}));
  CHECK(read_signed({65537, 65537, 1}, wide.places, wide.signs).indices == indices_type{65536});
}

TEST_CASE("what chunked selects goes there and back") {
  for (std::int64_t const length : {0, 1, 4095, 4096, 4097, 20000}) {
    for (std::int64_t const per_chunk : {1, 2, 7, 64, 4096}) {
      CAPTURE(length, per_chunk);
      chunk_layout const layout{length, 4096, per_chunk};
      auto const values = drawn<float>(
          [](std::uint64_t b) { return static_cast<float>(number_in(1, 99, b)) * (b % 2 == 0 ? 1.F : -1.F); }, length,
          3);
      auto const chosen = selection_of(values, layout);
      REQUIRE(chosen.size() == layout.entries());
      indices_type const indices(chosen.indices.begin(), chosen.indices.end());

      auto const read = read12(layout, written12(layout, indices), chosen.values);
      CHECK(read.indices == indices);
      CHECK(read.values == chosen.values);

      auto const bytes = written_signed(layout, indices, chosen.values);
      auto const signs = read_signed(layout, bytes.places, bytes.signs);
      CHECK(signs.indices == indices);
      for (std::size_t i = 0; i < indices.size(); ++i) {
        CHECK(signs.values[i] == std::copysign(0.5F, chosen.values[i]));
      }
    }
  }
}

TEST_CASE("readers refuse damaged messages and name the fault") {
  chunk_layout const layout{4096 + 100, 4096, 2};
  auto const good = written12(layout, {1, 2, 4096, 4195});
  for (std::size_t const size : {0U, 1U, 5U, 7U, 600U}) {
    auto bytes = good;
    bytes.resize(size);
    check_refused(theirs, "a message has " + std::to_string(size) + " bytes of indices, where 6 are right",
                  [&] { read12(layout, bytes, values_type(4)); });
  }
  // 001, 002, then 100 = 064 of the chunk that has 100 values: 64; 0, 3 above it: 30; 06 is place 063, the last.
  check_refused(theirs, "entry 2 of a message has place 100 of a chunk of 100 values", [&] {
    read12(layout, bytes_of({0x01, 0x20, 0x00, 0x64, 0x30, 0x06}), values_type(4));
  });
  check_refused(theirs, "index 1 stands twice in a message", [&] {
    read12(layout, bytes_of({0x01, 0x10, 0x00, 0x00, 0x30, 0x06}), values_type(4));
  });
  check_refused(theirs, "the last half byte of a message is not 0", [&] {
    read12({4096, 4096, 1}, bytes_of({0x01, 0x10}), values_type(1));
  });
  CHECK(read12({4096, 4096, 1}, bytes_of({0x01, 0x0f}), values_type(1)).indices == indices_type{0xf01});

  chunk_layout const one{100, 100, 3};
  check_refused(theirs, "a message has 2 bytes of indices, where 3 are right", [&] {
    read_signed(one, bytes_of({1, 2}), bytes_of({0}));
  });
  check_refused(theirs, "a message has 2 bytes of signs, where 1 are right", [&] {
    read_signed(one, bytes_of({1, 2, 3}), bytes_of({0, 0}));
  });
  check_refused(theirs, "entry 1 of a message has place 100 of a chunk of 100 values", [&] {
    read_signed(one, bytes_of({1, 100, 3}), bytes_of({0}));
  });
  check_refused(theirs, "a bit after the last sign of a message is not 0", [&] {
    read_signed(one, bytes_of({1, 2, 3}), bytes_of({0x08}));
  });
  check_refused(theirs, "index 3 stands twice in a message", [&] {
    read_signed(one, bytes_of({3, 2, 3}), bytes_of({0}));
  });
}

// Two chunks of 4,096 with two entries each: places 001, fff and 100, 101; signs + - - +.
//   indices: 2 dimensions, 2 (doubled 4) by 4 bytes (8); kind 0, no gradient, form 0; 8 bytes
//   values: 2 dimensions, 2 (4) by 2 (4); kind 11 = 0b, no gradient, form 1; 1 byte: 2 + 4 = 06
//   shape: 2 lengths, 2 and 4096 = 80 20 (32 x 128); size of a chunk 80 20
std::vector<int> const result_in_bytes = {0x02, 0x04, 0x08, 0x00, 0x00, 0x00, 0x08, 0x01, 0x00, 0xff,
                                          0x0f, 0x00, 0x01, 0x01, 0x01, 0x02, 0x04, 0x04, 0x0b, 0x00,
                                          0x01, 0x01, 0x06, 0x02, 0x02, 0x80, 0x20, 0x80, 0x20};

TEST_CASE("a result of Psyche is two tensors, a shape and the size of a chunk") {
  chunk_layout const layout{8192, 4096, 2};
  indices_type const indices = {0x001, 0xfff, 4096 + 0x100, 4096 + 0x101};
  values_type const values = {0.5F, -0.5F, -0.5F, 0.5F};
  auto const bytes = bytes_of(result_in_bytes);
  CHECK(write_psyche_result<std::int32_t, float>(layout, indices, values) == bytes);

  auto twice = bytes; // results follow each other
  twice.insert(twice.end(), bytes.begin(), bytes.end());
  auto const read = read_psyche_result<std::int32_t, float>(twice, 0.5F);
  CHECK(read.bytes == bytes.size());
  CHECK(read.indices == indices);
  CHECK(read.values == values);
  CHECK(read.shape == std::vector<std::int64_t>{2, 4096});
  CHECK((read.layout.length == 8192 && read.layout.chunk == 4096 && read.layout.per_chunk == 2));
}

TEST_CASE("a result of Psyche that is damaged is refused or is a result") {
  auto const good = bytes_of(result_in_bytes);
  for (std::size_t size = 0; size < good.size(); ++size) {
    check_refused(theirs, "a message of " + std::to_string(size) + " bytes is cut short",
                  [&] { read_psyche_result<std::int32_t, float>(std::span(good).first(size), 1.F); });
  }
  auto const changed = [&](std::size_t at, int byte, std::string const& sentence) {
    auto bytes = good;
    bytes[at] = static_cast<std::byte>(byte);
    check_refused(theirs, sentence, [&] { read_psyche_result<std::int32_t, float>(bytes, 1.F); });
  };
  changed(0, 9, "the number of dimensions in a message is 9, more than 8");
  changed(1, 3, "a dimension in a message is negative");
  changed(3, 6, "the indices of a message are of kind 6 and form 0, not 0 and 0");
  changed(6, 7, "the values of a message are of kind 4 and form 11, not 11 and 1");
  changed(8, 0x10, "entry 0 of a message has place 4097 of a chunk of 4096 values");
  changed(18, 6, "the values of a message are of kind 6 and form 1, not 11 and 1");
  changed(22, 0x16, "a bit after the last sign of a message is not 0");
  changed(24, 3, "a message has 8 bytes of indices, where 12 are right");
  changed(28, 0x1f, "chunks of 3968 values with 2 entries do not fit a shape of 8192 values");
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      auto bytes = good;
      bytes[at] = static_cast<std::byte>(byte);
      try {
        auto const read = read_psyche_result<std::int32_t, float>(bytes, 1.F);
        CHECK(read.indices.size() == 4);
        CHECK(read.indices.back() < read.layout.length);
      } catch (oktopk::error const& thrown) {
        CHECK(thrown.code() == theirs);
      }
    }
  }
  bytes_type const endless(40, std::byte(0xff));
  check_refused(theirs, "the number of dimensions in a message is no number of 64 bits",
                [&] { read_psyche_result<std::int32_t, float>(endless, 1.F); });
  check_refused(ours, "a vector of 100 values is not 0 to 65535 whole chunks of 64", [&] {
    write_psyche_result<std::int32_t, float>({100, 64, 1}, indices_type{1, 70}, values_type{1, 1});
  });
}

TEST_CASE("whatever the bytes, readers give indices of the vector or an error") {
  chunk_layout const layout{9000, 4096, 5};
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    bytes_type bytes(static_cast<std::size_t>(bytes_of_indices12(layout.entries())));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>(noise(seed, i) & (seed % 2 == 0 ? 0xffU : 0x33U));
    }
    try {
      auto const read = read12(layout, bytes, values_type(15, 1));
      for (std::size_t i = 0; i < read.indices.size(); ++i) {
        CHECK((read.indices[i] >= 0 && read.indices[i] < 9000));
        CHECK((i == 0 || read.indices[i] > read.indices[i - 1]));
      }
    } catch (oktopk::error const& thrown) {
      refused += thrown.code() == theirs ? 1 : 0;
    }
    bytes.resize(30);
    try {
      auto const read = read_signed(layout, bytes, bytes_of({static_cast<int>(seed % 256), 0x7f}));
      CHECK(read.indices.back() < 9000);
    } catch (oktopk::error const& thrown) {
      refused += thrown.code() == theirs ? 1 : 0;
    }
  }
  CHECK(refused > 0);
}

TEST_CASE("writers refuse what is no selection by chunks") {
  chunk_layout const layout{4096 + 100, 4096, 2};
  auto const refused12 = [&](std::string const& sentence, indices_type const& indices) {
    bytes_type room(100);
    check_refused(ours, sentence, [&] { write_indices12<std::int32_t>(layout, indices, room); });
  };
  refused12("3 entries, where the chunks have 4", {1, 2, 4096});
  refused12("5 entries, where the chunks have 4", {1, 2, 4096, 4097, 4098});
  refused12("entry 1 has index 4096, and its chunk 0 to 4095", {1, 4096, 4097, 4098});
  refused12("entry 2 has index 2, and its chunk 4096 to 4195", {0, 1, 2, 4098});
  refused12("entry 3 has index 4196, and its chunk 4096 to 4195", {0, 1, 4096, 4196});
  refused12("entry 0 has index -1, and its chunk 0 to 4095", {-1, 1, 4096, 4196});
  refused12("entry 1 has index 2, which is not above that of the entry before", {3, 2, 4096, 4097});
  bytes_type small(5);
  check_refused(ours, "a message of 6 bytes does not fit in 5", [&] {
    write_indices12<std::int32_t>(layout, indices_type{1, 2, 4096, 4097}, small);
  });

  check_refused(ours, "the value of entry 1 has no sign", [&] { written_signed({100, 100, 2}, {1, 2}, {1, 0}); });
  check_refused(ours, "the value of entry 0 has no sign", [&] {
    written_signed({100, 100, 2}, {1, 2}, {std::nanf(""), 1});
  });
  check_refused(ours, "1 entries, where the chunks have 2", [&] { written_signed({100, 100, 2}, {1, 2}, {1}); });

  indices_type const none;
  check_refused(ours, "chunks of 4097 values, not 1 to 4096", [&] {
    write_indices12<std::int32_t>({0, 4097, 2}, none, small);
  });
  check_refused(ours, "chunks of 0 values, not 1 to 4096", [&] {
    write_indices12<std::int32_t>({0, 0, 2}, none, small);
  });
  check_refused(ours, "0 entries of each chunk, not 1 to 10", [&] {
    write_indices12<std::int32_t>({0, 10, 0}, none, small);
  });
  check_refused(ours, "the length of a vector is -1", [&] { write_indices12<std::int32_t>({-1, 10, 1}, none, small); });
  indices_type one(1);
  values_type value(1);
  check_refused(ours, "a vector of 4294967296 values needs a wider type of indices", [&] {
    read_signs<std::int32_t, float>({std::int64_t(1) << 32, std::int64_t(1) << 32, 1}, bytes_of({0, 0, 0, 0}),
                                    bytes_of({0}), 1.F, one, value);
  });
}
