// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Encoded entries of every sparse format, as they arrive from another rank.

#include "target.hpp"

#include <oktopk/core/error.hpp>
#include <oktopk/format/coo.hpp>
#include <oktopk/format/coo_or_dense.hpp>
#include <oktopk/format/gap16.hpp>
#include <oktopk/format/gap8.hpp>
#include <oktopk/format/packed.hpp>
#include <oktopk/format/values/fixed.hpp>
#include <oktopk/format/values/floats.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

namespace oktopk_fuzz {
namespace {

using execution = Kokkos::DefaultHostExecutionSpace;

constexpr std::int64_t most_entries = 1024;

// Where an input says that entries lie. Narrow regions make dense messages, wide ones other tables.
template <class Index>
oktopk::region region_of(drawn& from) {
  constexpr std::int64_t end_of_type = std::numeric_limits<Index>::max();
  constexpr std::int64_t widest[] = {64, 4096, std::int64_t(1) << 17, std::int64_t(1) << 33};
  std::int64_t const most = std::min(widest[from.number<std::uint8_t>() % 4], end_of_type);
  std::int64_t const width = 1 + from.up_to(most - 1);
  std::int64_t const begin = from.number<std::uint8_t>() % 4 == 0 ? end_of_type - width : from.up_to(4096);
  return {std::min(begin, end_of_type - width), std::min(begin, end_of_type - width) + width};
}

template <oktopk::sparse_format Format>
void decode(drawn& from) {
  using index_type = typename Format::index_type;
  oktopk::region const where = region_of<index_type>(from);
  std::int64_t const count = from.up_to(most_entries);
  bytes const in = from.rest();
  auto const size = static_cast<std::size_t>(count);
  std::unique_ptr<index_type[]> const indices(new index_type[size]());
  auto const values = std::make_unique<typename Format::value_type[]>(size);
  try {
    execution const exec;
    Format().decode(exec, in.data(), static_cast<std::int64_t>(in.size()), count, where, indices.get(), values.get());
    exec.fence();
  } catch (oktopk::error const& refused) {
    require(refused.code() == oktopk::fault::damaged_message, "a decoder refuses bytes with another fault");
    return;
  }
  for (std::size_t i = 0; i < size; ++i) {
    require(static_cast<std::int64_t>(indices[i]) >= where.begin && static_cast<std::int64_t>(indices[i]) < where.end,
            "an index outside the region");
  }
}

template <class Format>
void seed(std::uint8_t which, std::vector<bytes>& made) {
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;
  struct {
    std::uint8_t kind;
    std::int64_t width, count;
  } const shapes[] = {{0, 64, 60}, {1, 4000, 3}, {1, 4000, 300}, {2, 100000, 520}};
  for (auto const& shape : shapes) {
    std::vector<index_type> indices;
    std::vector<value_type> values;
    for (std::int64_t i = 0; i < shape.count; ++i) {
      indices.push_back(static_cast<index_type>(5 + i * shape.width / shape.count));
      values.push_back(static_cast<value_type>((i % 2 == 0 ? 1 : -1) * (1 + 0.01 * static_cast<double>(i * i % 97))));
    }
    oktopk::region const where{5, 5 + shape.width};
    Format const codec;
    bytes out(static_cast<std::size_t>(codec.max_encoded_bytes(shape.count, where)) + 8);
    execution const exec;
    std::int64_t const size = codec.encode(
        exec, oktopk::entries_of<Format, execution>(indices.data(), values.data(), shape.count), where, out.data());
    exec.fence();
    out.resize(static_cast<std::size_t>(size));
    made.push_back(written()
                       .number(which)
                       .number(shape.kind)
                       .number(static_cast<std::uint64_t>(shape.width - 1))
                       .number(std::uint8_t(1))
                       .number(std::uint64_t(5))
                       .number(static_cast<std::uint64_t>(shape.count))
                       .rest(out));
  }
}

// What there is for each format.
struct target {
  void (*decode)(drawn& from);
  void (*seed)(std::uint8_t which, std::vector<bytes>& made);
};

template <class... Format>
std::vector<target> targets_of() {
  return {{&decode<Format>, &seed<Format>}...};
}

auto const targets =
    targets_of<oktopk::coo<>, oktopk::coo<double, std::int64_t>, oktopk::coo<float, std::int64_t>,
               oktopk::coo<double, std::int32_t>, oktopk::coo_or_dense<>, oktopk::coo_or_dense<double, std::int64_t>,
               oktopk::gap8<>, oktopk::gap8<double, std::int64_t>, oktopk::packed<>,
               oktopk::packed<double, std::int64_t>, oktopk::packed<float, std::int32_t, oktopk::bfloat16_values>,
               oktopk::packed<float, std::int32_t, oktopk::fixed_values<8>>,
               oktopk::packed<double, std::int64_t, oktopk::fixed_values<4>>,
               oktopk::packed<float, std::int32_t, oktopk::fixed_values<3>>,
               oktopk::packed<float, std::int64_t, oktopk::fixed_values<2>>,
               oktopk::packed<float, std::int32_t, oktopk::sign_values>, oktopk::gap16<>,
               oktopk::gap16<double, std::int64_t>>();

} // namespace

void run(std::span<std::byte const> input) {
  drawn from(input);
  targets[from.number<std::uint8_t>() % targets.size()].decode(from);
}

std::vector<bytes> seeds() {
  std::vector<bytes> made;
  for (std::size_t which = 0; which < targets.size(); ++which) {
    targets[which].seed(static_cast<std::uint8_t>(which), made);
  }
  return made;
}

} // namespace oktopk_fuzz
