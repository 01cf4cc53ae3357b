// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Sums of sparse vectors behind the C interface are those of a map, and its errors are the same on all ranks.

#include "engine/ranks.hpp"

#include <complex>
#include <cstring>
#include <map>
#include <random>

namespace {

using namespace oktopk_tests;

/// Entries of a rank: indices, and rows of values that add up exactly.
template <class Value>
struct entries {
  std::vector<std::int64_t> indices;
  std::vector<Value> values;
};

template <class Value>
entries<Value> drawn(int rank, int step, std::int64_t length, std::int64_t width, std::int64_t count) {
  std::mt19937 draw(static_cast<unsigned>(1000 * step + rank));
  entries<Value> made;
  for (std::int64_t i = 0; i < count; ++i) {
    made.indices.push_back(static_cast<std::int64_t>(draw()) % length);
    for (std::int64_t j = 0; j < width; ++j) {
      made.values.push_back(static_cast<Value>(static_cast<float>(draw() % 100) - 50));
    }
  }
  return made;
}

template <class Value>
entries<Value> sum_of(std::vector<entries<Value>> const& all, std::int64_t width) {
  std::map<std::int64_t, std::vector<Value>> sums;
  for (auto const& one : all) {
    for (std::size_t i = 0; i < one.indices.size(); ++i) {
      auto& row = sums[one.indices[i]];
      row.resize(static_cast<std::size_t>(width));
      for (std::size_t j = 0; j < row.size(); ++j) {
        row[j] += one.values[i * row.size() + j];
      }
    }
  }
  entries<Value> made;
  for (auto const& [index, row] : sums) {
    made.indices.push_back(index);
    made.values.insert(made.values.end(), row.begin(), row.end());
  }
  return made;
}

template <class Value>
oktopk_engine_contribution contribution_of(entries<Value> const& given, std::int32_t type, std::int64_t length,
                                           std::int64_t width) {
  oktopk_engine_contribution made;
  oktopk_engine_contribution_defaults(&made);
  made.indices = given.indices.data();
  made.values = given.values.data();
  made.count = std::ssize(given.indices);
  made.element = type;
  made.length = length;
  made.width = width;
  return made;
}

using entries_handle = std::unique_ptr<oktopk_engine_entries, decltype(&oktopk_engine_entries_free)>;

entries_handle summed(oktopk_engine_group* group, oktopk_engine_contribution const& given) {
  oktopk_engine_entries* made = nullptr;
  must(oktopk_engine_sparse_sum(group, &given, &made));
  return {made, &oktopk_engine_entries_free};
}

/// Whether a sum has these entries, to the bit.
template <class Value>
bool are(oktopk_engine_entries const* found, entries<Value> const& expected) {
  return oktopk_engine_entries_count(found) == std::ssize(expected.indices) &&
         std::equal(expected.indices.begin(), expected.indices.end(), oktopk_engine_entries_indices(found)) &&
         (expected.values.empty() || std::memcmp(expected.values.data(), oktopk_engine_entries_values(found),
                                                 expected.values.size() * sizeof(Value)) == 0);
}

/// Sums of a type on some ranks, whose numbers of entries differ and change: rank 0 has none at times.
template <class Value>
void check_sums(std::int32_t type) {
  for (int const ranks : {1, 2, 3}) {
    auto const fault = fault_on(ranks, [&](oktopk_engine_group* group) {
      for (int step = 0; step < 6; ++step) {
        std::int64_t const length = step < 4 ? 60 : 7;
        std::int64_t const width = step % 2 == 0 ? 1 : 3;
        std::vector<entries<Value>> all;
        for (int rank = 0; rank < ranks; ++rank) {
          all.push_back(drawn<Value>(rank, step, length, width, step == 5 ? 0 : (20 * rank + 7 * step)));
        }
        auto const& mine = all[static_cast<std::size_t>(oktopk_engine_group_rank(group))];
        auto const found = summed(group, contribution_of(mine, type, length, width));
        if (!are(found.get(), sum_of(all, width))) {
          throw std::runtime_error("another sum in step " + std::to_string(step));
        }
      }
    });
    INFO(ranks << " ranks");
    CHECK(fault == "");
  }
}

TEST_CASE("Sums of sparse vectors have the values of all types") {
  check_sums<float>(OKTOPK_ENGINE_FLOAT32);
  check_sums<double>(OKTOPK_ENGINE_FLOAT64);
  check_sums<std::int32_t>(OKTOPK_ENGINE_INT32);
  check_sums<std::int64_t>(OKTOPK_ENGINE_INT64);
  check_sums<std::complex<float>>(OKTOPK_ENGINE_COMPLEX64);
  check_sums<std::complex<double>>(OKTOPK_ENGINE_COMPLEX128);
}

TEST_CASE("A sum of sparse vectors comes behind averages that are under way") {
  CHECK(fault_on(2, [](oktopk_engine_group* group) {
          auto const averager = made_on(group, averager_of("topk_a(density=1)"));
          std::vector<float> values(100000, static_cast<float>(oktopk_engine_group_rank(group)));
          for (int step = 0; step < 5; ++step) {
            std::atomic<bool> is_done{false};
            auto arrival = arrival_of(values, "a");
            arrival.user = &is_done;
            arrival.done = [](void* user, std::int32_t, char const*) { *static_cast<std::atomic<bool>*>(user) = true; };
            must(oktopk_engine_arrive(averager.get(), &arrival));
            entries<float> const one{{step}, {1.0F}};
            auto const found = summed(group, contribution_of(one, OKTOPK_ENGINE_FLOAT32, 10, 1));
            must(oktopk_engine_wait(averager.get()));
            if (!is_done || !are(found.get(), entries<float>{{step}, {2.0F}}) || values[0] != 0.5F) {
              throw std::runtime_error("another sum or average");
            }
          }
        }) == "");
}

TEST_CASE("What is wrong with a sum of sparse vectors is an error of all ranks") {
  using change = std::function<void(oktopk_engine_contribution&)>;
  struct wrong {
    std::int32_t code;
    char const* words;
    change of_last;
  };
  std::vector<std::int64_t> const outside{1, 40};
  wrong const all[] = {
      {OKTOPK_ENGINE_INDEX_OUT_OF_RANGE, "position 1", [&](auto& of) { of.indices = outside.data(); }},
      {OKTOPK_ENGINE_OPTION_OUT_OF_RANGE, "rank 1: there is no type of values 8", [](auto& of) { of.element = 8; }},
      {OKTOPK_ENGINE_OPTION_OUT_OF_RANGE, "not of bfloat16", [](auto& of) { of.element = OKTOPK_ENGINE_BFLOAT16; }},
      {OKTOPK_ENGINE_OPTION_OUT_OF_RANGE, "-1 rows of 1 values", [](auto& of) { of.length = -1; }},
      {OKTOPK_ENGINE_OPTION_OUT_OF_RANGE, "40 rows of 0 values", [](auto& of) { of.width = 0; }},
      {OKTOPK_ENGINE_OPTION_OUT_OF_RANGE, "the entries are a null pointer", [](auto& of) { of.values = nullptr; }},
      {OKTOPK_ENGINE_OPTION_OUT_OF_RANGE, "their number is negative", [](auto& of) { of.count = -1; }},
      {OKTOPK_ENGINE_OPTION_OUT_OF_RANGE, "half the memory", [](auto& of) { of.length = std::int64_t(1) << 50; }},
      {OKTOPK_ENGINE_OPTION_OUT_OF_RANGE, "rank 1: nothing here", [](auto& of) { of.fault = "nothing here"; }},
      {OKTOPK_ENGINE_RANKS_DISAGREE, "length = 40, rank 1 has length = 41", [](auto& of) { of.length = 41; }},
      {OKTOPK_ENGINE_RANKS_DISAGREE, "values = float32, rank 1 has values = int32",
       [](auto& of) { of.element = OKTOPK_ENGINE_INT32; }},
      {OKTOPK_ENGINE_RANKS_DISAGREE, "subject = , rank 1 has subject = b", [](auto& of) { of.subject = "b"; }},
  };
  for (wrong const& each : all) {
    INFO(each.words);
    std::atomic<int> right{0};
    auto const heard = heard_on(2, [&](oktopk_engine_group* group) {
      entries<float> const one{{3, 3}, {1.0F, 2.0F}};
      auto const good = contribution_of(one, OKTOPK_ENGINE_FLOAT32, 40, 1);
      auto given = good;
      if (oktopk_engine_group_rank(group) == 1) {
        each.of_last(given);
      }
      oktopk_engine_entries* made = nullptr;
      std::int32_t const code = oktopk_engine_sparse_sum(group, &given, &made);
      std::string const sentence = oktopk_engine_last_error();
      right += made == nullptr && are(summed(group, good).get(), entries<float>{{3}, {6.0F}}) ? 1 : 0; // it works again
      throw engine_error(code, sentence);
    });
    CHECK(unlike(heard, each.code, each.words) == "");
    CHECK(right == 2);
  }
  oktopk_engine_contribution_defaults(nullptr);
  oktopk_engine_entries_free(nullptr);
  CHECK(oktopk_engine_entries_count(nullptr) == 0);
  CHECK(oktopk_engine_entries_indices(nullptr) == nullptr);
  CHECK(oktopk_engine_entries_values(nullptr) == nullptr);
  oktopk_engine_entries* made = nullptr;
  auto given = contribution_of(entries<float>(), OKTOPK_ENGINE_FLOAT32, 1, 1);
  CHECK(oktopk_engine_sparse_sum(nullptr, &given, &made) == OKTOPK_ENGINE_OPTION_OUT_OF_RANGE);
  CHECK(fault_on(1, [&](oktopk_engine_group* group) {
          given.struct_size = 4000;
          if (oktopk_engine_sparse_sum(group, &given, &made) != OKTOPK_ENGINE_OPTION_OUT_OF_RANGE ||
              oktopk_engine_sparse_sum(group, nullptr, &made) != OKTOPK_ENGINE_OPTION_OUT_OF_RANGE) {
            throw std::runtime_error("no error");
          }
          given.struct_size = sizeof(given);
          if (oktopk_engine_sparse_sum(group, &given, nullptr) != OKTOPK_ENGINE_OPTION_OUT_OF_RANGE) {
            throw std::runtime_error("no error for no place");
          }
        }) == "");
}

} // namespace
