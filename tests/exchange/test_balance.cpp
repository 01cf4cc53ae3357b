// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "exchange/parts.hpp"
#include "support/call.hpp"
#include "support/catch.hpp"

#include <oktopk/exchange/balance.hpp>

#include <numeric>

using namespace oktopk_tests;

namespace {

/// What is wrong with a scheme, by moving every single entry as it says.
std::string scheme_fault(std::vector<std::int64_t> const& sizes, std::vector<oktopk::detail::transfer> const& scheme) {
  std::vector<int> holder; // of each entry, before
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    holder.insert(holder.end(), static_cast<std::size_t>(sizes[rank]), static_cast<int>(rank));
  }
  std::vector<int> landed(holder.size(), -1);
  std::int64_t before = 0;
  for (auto const& piece : scheme) {
    if (piece.first != before || piece.last <= piece.first) {
      return "the pieces do not ascend without gaps";
    }
    before = piece.last;
    for (std::int64_t i = piece.first; i < piece.last; ++i) {
      if (holder.at(static_cast<std::size_t>(i)) != piece.from || landed[static_cast<std::size_t>(i)] != -1) {
        return "an entry is sent by a rank that has not got it, or twice";
      }
      landed[static_cast<std::size_t>(i)] = piece.to;
    }
  }
  if (std::find(landed.begin(), landed.end(), -1) != landed.end()) {
    return "an entry lands nowhere";
  }
  if (!std::is_sorted(landed.begin(), landed.end())) {
    return "the order is lost";
  }
  std::vector<std::int64_t> after(sizes.size(), 0);
  for (int const rank : landed) {
    after.at(static_cast<std::size_t>(rank)) += 1;
  }
  auto const [least, most] = std::minmax_element(after.begin(), after.end());
  if (*most - *least > 1) {
    return "the sizes differ by more than one";
  }
  if (scheme.size() > 2 * sizes.size() - 1) {
    return "there are more than 2P-1 pieces";
  }
  return {};
}

/// No rank sends more than it has, nor more than (P-1)/P of everything and the rounding of one entry.
std::string sent_fault(std::vector<std::int64_t> const& sizes, std::vector<oktopk::detail::transfer> const& scheme) {
  auto const ranks = static_cast<double>(sizes.size());
  double const total = static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0)));
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    std::int64_t sent = 0;
    for (auto const& piece : scheme) {
      bool const leaves = piece.from == static_cast<int>(rank) && piece.to != piece.from;
      sent += leaves ? piece.last - piece.first : 0;
    }
    if (sent > sizes[rank] || static_cast<double>(sent) >= total * (ranks - 1) / ranks + 1) {
      return "rank " + std::to_string(rank) + " sends " + std::to_string(sent) + " entries";
    }
  }
  return {};
}

/// The entries of the pieces that lie in a part.
template <class Format, class Call>
sparse_vector<float> decoded_part(Call& call, oktopk::detail::message_buffer<execution> const& part, std::int64_t bytes,
                                  std::vector<oktopk::detail::transfer> const& scheme) {
  part.pull(call.exec, 0, bytes);
  oktopk::detail::encoded_pieces<execution, Format> const pieces{Format()};
  std::int64_t count = 0;
  for (auto const& piece : scheme) {
    count += piece.to == call.comm.rank() ? piece.last - piece.first : 0;
  }
  oktopk::detail::buffer<std::int32_t, typename execution::memory_space> indices("indices");
  oktopk::detail::buffer<float, typename execution::memory_space> values("values");
  indices.reserve(call.exec, count);
  values.reserve(call.exec, count);
  std::int64_t offset = 0;
  std::int64_t position = 0;
  for (auto const& piece : scheme) {
    if (piece.to == call.comm.rank()) {
      std::int64_t const size = piece.last - piece.first;
      oktopk::region const everything{0, call.length};
      auto const encoded = pieces.encoded_bytes(call.exec, size, everything, part, offset, bytes - offset);
      pieces.decode(call.exec, part, offset, encoded, size, everything, indices.data() + position,
                    values.data() + position);
      offset += pieces.header_bytes + (encoded + 7) / 8 * 8;
      position += size;
    }
  }
  CHECK(offset == bytes);
  return entries_of(oktopk::entries_of<Format, execution>(indices.data(), values.data(), count));
}

} // namespace

TEST_CASE("the balancing scheme moves every entry once, keeps the order, and evens the sizes") {
  std::vector<oktopk::detail::transfer> scheme;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    auto const sizes = random_sizes(seed);
    oktopk::detail::balancing_scheme(sizes, scheme);
    INFO("sizes " << Catch::Detail::stringify(sizes));
    std::string const fault = scheme_fault(sizes, scheme) + sent_fault(sizes, scheme);
    if (!fault.empty()) {
      FAIL(fault);
    }
  }
}

TEST_CASE("the balancing scheme of the paper's kind: one rank has everything") {
  std::vector<oktopk::detail::transfer> scheme;
  std::vector<std::int64_t> const sizes{0, 0, 8, 0};
  oktopk::detail::balancing_scheme(sizes, scheme);
  std::vector<oktopk::detail::transfer> const expected{{2, 0, 0, 2}, {2, 1, 2, 4}, {2, 2, 4, 6}, {2, 3, 6, 8}};
  CHECK((scheme == expected));
  oktopk::detail::balancing_scheme(std::vector<std::int64_t>{0, 0, 0}, scheme);
  CHECK(scheme.empty());
  oktopk::detail::balancing_scheme(std::vector<std::int64_t>{5}, scheme);
  CHECK((scheme == std::vector<oktopk::detail::transfer>{{0, 0, 0, 5}}));
}

TEST_CASE("balance brings every rank its even share of the entries, encoded, in order") {
  using format = oktopk::coo<float, std::int32_t>;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::vector<std::int64_t> const sizes = random_sizes(seed);
    auto const ranks = static_cast<int>(sizes.size());
    auto const parts = random_parts<float>(sizes, seed);
    std::vector<oktopk::detail::transfer> scheme;
    oktopk::detail::balancing_scheme(sizes, scheme);
    std::vector<sparse_vector<float>> balanced(sizes.size());
    oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
      auto const rank = static_cast<std::size_t>(comm.rank());
      counting counted(comm);
      oktopk::detail::balance<execution, counting, format> balancing;
      oktopk::detail::message_buffer<execution> part("part");
      oktopk::region const everything{0, length_of_parts};
      for (int repeat = 0; repeat < 2; ++repeat) { // the second time in used buffers
        device_part<format> const mine(parts[rank]);
        auto call = call_on(counted, length_of_parts);
        part.reserve(call.exec, counted, 8 * joined(parts).size());
        std::int64_t const bytes = balancing.run(
            call, mine.entries, std::span<oktopk::detail::transfer const>(scheme),
            [everything](std::size_t) { return everything; }, part);
        balanced[rank] = decoded_part<format>(call, part, bytes, scheme);
      }
    });
    INFO("sizes " << Catch::Detail::stringify(sizes));
    CHECK((joined(balanced) == joined(parts)));
    std::int64_t const total = joined(parts).size();
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
      CHECK(balanced[rank].size() * ranks > total - ranks);
      CHECK(balanced[rank].size() * ranks < total + ranks);
    }
  }
}
