// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The verification where messages round values: what the library gives passes, and each fault planted in it is told on
// every rank.
#include <oktopk_bench/verify.hpp>

#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/in_process.hpp>

#include "support/catch.hpp"
#include "support/caught.hpp"

#include <bit>
#include <functional>
#include <random>

namespace {

using namespace oktopk;
using oktopk_bench::host_result;
using oktopk_bench::space;
using comm_type = in_process_communicator;

std::string const own = "ok_topk";
std::string const all_to_all = "topk_a";
std::string const scattered = "topk_dsa";
std::string const tree = "gtopk";

std::vector<std::string> const codes{"bfloat16", "fixed8", "fixed4", "fixed2", "sign"};

/// What one rank knows of a call.
struct call {
  std::vector<float> accumulator;
  host_result result;
  call_statistics figures;
  oktopk::allreduce_promises promised;
  std::vector<std::int64_t> boundaries;
  std::int64_t k = 0;
};

using calls = std::vector<call>;

/// Heavy tails, in part the same on all ranks.
std::vector<float> accumulator_of(int rank, std::int64_t length, unsigned seed) {
  std::mt19937 shared(seed);
  std::mt19937 mine(seed + 100U + static_cast<unsigned>(rank));
  std::normal_distribution<float> draw;
  std::vector<float> values(static_cast<std::size_t>(length));
  for (float& each : values) {
    float const x = draw(mine);
    each = draw(shared) + x * x * x;
  }
  return values;
}

/// The second call of an algorithm with this code and these options, by rank.
calls made(std::string const& name, int ranks, std::string const& code, std::string const& options = {},
           std::int64_t length = 3000, std::int64_t k = 150) {
  std::string const text = name + "(format=packed(values=" + code + ")" + options + ")";
  calls all(static_cast<std::size_t>(ranks));
  in_process::run(ranks, [&](comm_type comm) {
    auto algorithm = make_allreduce(space(), comm, text, {.length = length, .k = k});
    call& mine = all[static_cast<std::size_t>(comm.rank())];
    for (unsigned seed = 1; seed < 3; ++seed) {
      mine.accumulator = accumulator_of(comm.rank(), length, seed);
      Kokkos::View<float*, Kokkos::HostSpace> const host(mine.accumulator.data(), mine.accumulator.size());
      auto const view = Kokkos::create_mirror_view_and_copy(space::memory_space(), host);
      mine.result = oktopk_bench::result_of(algorithm(view));
    }
    mine.figures = algorithm.last_call();
    mine.promised = algorithm.promises();
    mine.boundaries = oktopk_bench::boundaries_of(algorithm, ranks);
    mine.k = algorithm.k();
  });
  return all;
}

/// What all ranks said of these calls.
oktopk_tests::outcome verdict(calls const& all) {
  auto const failures = in_process::run_and_collect(static_cast<int>(all.size()), [&](comm_type comm) {
    call const& mine = all[static_cast<std::size_t>(comm.rank())];
    oktopk_bench::verify(comm, "test", mine.accumulator, mine.result, mine.figures, mine.promised, mine.k,
                         mine.boundaries);
  });
  auto const first = oktopk_tests::outcome_of(failures[0]);
  for (auto const& each : failures) {
    CHECK(oktopk_tests::outcome_of(each) == first);
  }
  return first;
}

using indices = std::vector<std::int64_t>;

bool has(indices const& list, std::int64_t index) {
  return std::binary_search(list.begin(), list.end(), index);
}

std::size_t position(indices const& list, std::int64_t index) {
  REQUIRE(has(list, index));
  return static_cast<std::size_t>(std::lower_bound(list.begin(), list.end(), index) - list.begin());
}

/// An entry of the result, its owner, and another rank that contributed to it.
struct place {
  std::int64_t index = -1;
  std::size_t owner = 0;
  std::size_t giver = 0;
};

std::size_t owner_of(calls const& all, std::int64_t index) {
  auto const& boundaries = all[0].boundaries;
  return static_cast<std::size_t>(std::upper_bound(boundaries.begin(), boundaries.end(), index) - boundaries.begin()) -
         1;
}

place some_place(calls const& all) {
  for (std::int64_t const index : all[0].result.indices) {
    std::size_t const owner = owner_of(all, index);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (rank != owner && has(all[rank].result.contributed, index)) {
        return {index, owner, rank};
      }
    }
  }
  return {};
}

/// The least by which a value of a message can differ from another value of that code.
float unit_of(std::string const& code, std::vector<float> const& values, float value) {
  if (code.starts_with("fixed") && code != "fixed2") {
    float unit = std::numeric_limits<float>::max();
    for (float const each : values) {
      float const apart = std::abs(std::abs(each) - std::abs(value));
      unit = apart > 0 ? std::min(unit, apart) : unit;
    }
    return unit;
  }
  auto const bits = std::bit_cast<std::uint32_t>(std::abs(value));
  return std::bit_cast<float>(bits + 0x10000U) - std::abs(value);
}

void take_back(call& mine, std::int64_t index, float more) {
  mine.result.returned_values[position(mine.result.returned_indices, index)] += more;
}

/// Adds to a value of the result on all ranks.
float raise(calls& all, std::string const& code, std::int64_t index) {
  auto const at = position(all[0].result.indices, index);
  float const unit = unit_of(code, all[0].result.values, all[0].result.values[at]);
  for (call& each : all) {
    each.result.values[at] += unit;
  }
  return unit;
}

} // namespace

TEST_CASE("verify passes what the library rounds") {
  for (std::string const& code : codes) {
    for (int const ranks : {1, 3, 4}) {
      CAPTURE(code, ranks);
      CHECK(verdict(made(own, ranks, code)).text.empty());
      CHECK(verdict(made(all_to_all, ranks, code)).text.empty());
      CHECK(verdict(made(scattered, ranks, code)).text.empty());
      CHECK(verdict(made(tree, ranks, code)).text.empty());
      CHECK(verdict(made(tree, ranks, code, ", return_dropped=false")).text.empty());
    }
    CHECK(verdict(made(own, 2, code, "", 4000, 1500)).text.empty());
    CHECK(verdict(made(own, 3, code, "", 300, 300)).text.empty());
    CHECK(verdict(made(own, 3, code, "", 3000, 0)).text.empty());
  }
}

TEST_CASE("verify passes rounded selections of any selector") {
  for (std::string const& code : codes) {
    for (std::string const options :
         {"local=chunked", "local=gaussian, global=reused", "local=reused, global=reused"}) {
      CAPTURE(code, options);
      CHECK(verdict(made(own, 3, code, ", " + options)).text.empty());
    }
  }
}

TEST_CASE("verify tells a value that is off by a unit of its code") {
  for (std::string const& code : codes) {
    CAPTURE(code);
    auto all = made(own, 3, code);
    raise(all, code, some_place(all).index);
    CHECK(verdict(all).says("value at index " + std::to_string(some_place(all).index)));
    auto of_tree = made(tree, 3, code);
    auto const index = of_tree[0].result.indices[20];
    raise(of_tree, code, index);
    auto const outcome = verdict(of_tree);
    CHECK((outcome.says("value at index " + std::to_string(index)) || outcome.says("none that " + code)));
  }
}

TEST_CASE("verify tells a sum that is rounded another way, though nothing is lost by it") {
  for (std::string const& code : codes) {
    CAPTURE(code);
    auto all = made(own, 3, code);
    auto const [index, owner, giver] = some_place(all);
    take_back(all[owner], index, -raise(all, code, index));
    CHECK(verdict(all).says("but " + code + " makes"));
    auto dense = made(scattered, 3, code);
    auto const at = some_place(dense);
    take_back(dense[at.owner], at.index, -raise(dense, code, at.index));
    CHECK(verdict(dense).says("but " + code + " makes"));
  }
  auto of_tree = made(tree, 3, "sign");
  for (call& each : of_tree) {
    each.result.values[3] *= 1.001F;
  }
  CHECK(verdict(of_tree).says("none that sign gives"));
}

TEST_CASE("verify tells a contribution that is rounded another way, though nothing is lost by it") {
  for (std::string const& code : codes) {
    CAPTURE(code);
    for (auto all : {made(own, 3, code), made(all_to_all, 3, code)}) {
      // An entry that two ranks sent to another rank, which has the sum.
      auto const& given = all[0].result.contributed;
      auto const both = std::find_if(given.begin(), given.end(), [&](std::int64_t each) {
        return has(all[1].result.contributed, each) && has(all[0].result.indices, each) && owner_of(all, each) == 2;
      });
      REQUIRE(both != given.end());
      float const unit = std::abs(all[0].accumulator[static_cast<std::size_t>(*both)]) * 0x1p-7F;
      take_back(all[0], *both, unit);
      take_back(all[1], *both, -unit);
      CHECK(verdict(all).says("was returned at index " + std::to_string(*both)));
    }
  }
}

TEST_CASE("verify tells a returned entry that is lost") {
  auto const lose = [](call& mine, std::size_t at) {
    mine.result.returned_indices.erase(mine.result.returned_indices.begin() + static_cast<std::ptrdiff_t>(at));
    mine.result.returned_values.erase(mine.result.returned_values.begin() + static_cast<std::ptrdiff_t>(at));
  };
  for (std::string const& code : codes) {
    CAPTURE(code);
    auto all = made(own, 3, code);
    lose(all[1], 5);
    CHECK(verdict(all).says("returned entries are not those"));
  }
  for (std::string const code : {"exact", "sign"}) { // a tree returns what it drops
    auto all = made(tree, 4, code);
    auto const& mine = all[2].result;
    std::size_t at = 0;
    while (has(mine.indices, mine.returned_indices[at])) {
      at += 1;
    }
    lose(all[2], at);
    CHECK(verdict(all).says("which the result has not"));
  }
}

TEST_CASE("verify tells what was returned where nothing is rounded") {
  auto all = made(own, 3, "exact");
  CHECK(verdict(all).text.empty());
  all[1].result.returned_indices = {7};
  all[1].result.returned_values = {0};
  CHECK(verdict(all).says("where nothing is rounded"));
}

TEST_CASE("verify tells a larger rounded sum that is missing") {
  for (std::string const& code : codes) {
    CAPTURE(code);
    auto all = made(own, 3, code);
    // One of an owner's own entries, which no message codes, and which is not in the result.
    bool planted = false;
    for (std::size_t rank = 0; rank < all.size() && !planted; ++rank) {
      call& mine = all[rank];
      for (std::int64_t const index : oktopk_bench::top_k(mine.accumulator, mine.k)) {
        if (owner_of(all, index) == rank && !has(mine.result.indices, index)) {
          mine.accumulator[static_cast<std::size_t>(index)] = 1e4F;
          CHECK(verdict(all).says("index " + std::to_string(index) + " (magnitude "));
          CHECK(verdict(all).says("is missing from the result"));
          planted = true;
          break;
        }
      }
    }
    CHECK(planted);
  }
}

TEST_CASE("verify tells a rounded result of too few entries, and one that differs between ranks") {
  for (std::string const& code : codes) {
    CAPTURE(code);
    auto all = made(own, 3, code);
    auto other = all;
    other[2].result.values[9] = -other[2].result.values[9];
    CHECK(verdict(other).says("digest"));
    auto const last = all[0].result.indices.back();
    for (call& each : all) {
      each.result.indices.pop_back();
      each.result.values.pop_back();
      each.figures.global_selected -= 1;
      if (has(each.result.contributed, last)) {
        each.result.contributed.pop_back();
      }
    }
    CHECK(verdict(all).says("entries instead of k = 150"));
  }
}
