// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/generators.hpp"
#include "support/unreachable.hpp"

#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/dense/concept.hpp>

// What every dense allreduce is put through. A subject has `template <class Comm, class Value> using algorithm`, and
// `expected(rank, ranks, count)`: the messages and values that it must send.
namespace oktopk_tests::dense {

using oktopk::reduction;

inline constexpr reduction operations[] = {reduction::sum, reduction::max, reduction::min};

struct sent {
  std::int64_t messages = 0;
  std::int64_t values = 0;

  bool operator==(sent const&) const = default;
};

/// What came out on each rank, and what it sent.
template <class Value>
struct outcome {
  std::vector<std::vector<Value>> results;
  std::vector<std::vector<Value>> lost;
  std::vector<oktopk::traffic> traffic;
  double bound_words = 0;
};

/// Runs an algorithm on `inputs`, one a rank; `wrap` makes the communicator.
template <class Algorithm, class Wrap, class Value>
outcome<Value> run_with(Algorithm const& prototype, std::vector<std::vector<Value>> const& inputs, reduction op,
                        bool with_lost, Wrap const& wrap) {
  auto const ranks = static_cast<int>(inputs.size());
  outcome<Value> all;
  all.results.resize(inputs.size());
  all.lost.resize(inputs.size());
  all.traffic.resize(inputs.size());
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator inner) {
    auto const at = static_cast<std::size_t>(inner.rank());
    auto comm = wrap(inner);
    execution const exec;
    Algorithm algorithm(prototype);
    auto const count = static_cast<std::int64_t>(inputs[at].size());
    auto const values = to_view(inputs[at]);
    // Garbage that must be overwritten.
    auto const lost = to_view(std::vector<Value>(inputs[at].size(), Value(77)));
    if constexpr (requires { comm.total(); }) {
      comm.reset();
    }
    // Twice: what a call leaves behind must not show in the next.
    for (int call = 0; call < 2; ++call) {
      if (call == 1) {
        Kokkos::deep_copy(values, to_view(inputs[at]));
      }
      algorithm.run(exec, comm, values.data(), with_lost ? lost.data() : nullptr, count, op);
    }
    exec.fence();
    all.results[at] = to_vector(values);
    all.lost[at] = with_lost ? to_vector(lost) : std::vector<Value>();
    if constexpr (requires { comm.total(); }) {
      all.traffic[at] = comm.total();
    }
    all.bound_words = algorithm.bound_words(count, ranks);
  });
  return all;
}

template <class Subject, class Value>
outcome<Value> run(std::vector<std::vector<Value>> const& inputs, reduction op, bool with_lost = false) {
  using algorithm = typename Subject::template algorithm<counting, Value>;
  return run_with(algorithm(), inputs, op, with_lost, [](auto inner) { return counting(inner); });
}

/// Small whole numbers: every sum of them is exact.
template <class Value>
std::vector<std::vector<Value>> whole_inputs(int ranks, std::int64_t count) {
  std::vector<std::vector<Value>> inputs(static_cast<std::size_t>(ranks));
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    for (std::int64_t i = 0; i < count; ++i) {
      inputs[rank].push_back(static_cast<Value>(number_in(-1000, 1000, noise(3, rank, static_cast<std::uint64_t>(i)))));
    }
  }
  return inputs;
}

/// Numbers of magnitudes far apart: the order of a sum shows.
template <class Value>
std::vector<std::vector<Value>> rough_inputs(int ranks, std::int64_t count) {
  std::vector<std::vector<Value>> inputs(static_cast<std::size_t>(ranks));
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    for (std::int64_t i = 0; i < count; ++i) {
      inputs[rank].push_back(static_cast<Value>(heavy_tailed(noise(4, rank, static_cast<std::uint64_t>(i)))));
    }
  }
  return inputs;
}

template <class Value>
std::vector<Value> reduced(std::vector<std::vector<Value>> const& inputs, reduction op) {
  std::vector<Value> result = inputs[0];
  for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      switch (op) {
      case reduction::sum: result[i] += inputs[rank][i]; break;
      case reduction::max: result[i] = std::max(result[i], inputs[rank][i]); break;
      case reduction::min: result[i] = std::min(result[i], inputs[rank][i]); break;
      }
    }
  }
  return result;
}

/// Lengths around what P parts can be cut from.
inline std::vector<std::int64_t> lengths(int ranks) {
  std::vector<std::int64_t> all{0, 1, ranks - 1, ranks, 2 * ranks + 1, 64 * ranks, 997};
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

/// Exact results of whole numbers on every rank, for every operation.
template <class Subject, class Value>
std::string wrong_results() {
  for (int const ranks : rank_counts) {
    for (std::int64_t const count : lengths(ranks)) {
      for (reduction const op : operations) {
        auto const inputs = whole_inputs<Value>(ranks, count);
        auto const got = run<Subject>(inputs, op);
        auto const expected = reduced(inputs, op);
        for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
          if (bits(got.results[rank]) != bits(expected)) {
            return std::to_string(ranks) + " ranks, " + std::to_string(count) + " values, operation " +
                   std::to_string(static_cast<int>(op)) + ": wrong on rank " + std::to_string(rank);
          }
        }
      }
    }
  }
  return {};
}

/// The same bits on every rank where the order of summing shows, near the sum in double, and zeros in `lost`.
template <class Subject, class Value>
std::string disagreement() {
  for (int const ranks : rank_counts) {
    auto const inputs = rough_inputs<Value>(ranks, 301);
    auto const got = run<Subject>(inputs, reduction::sum, true);
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      if (bits(got.results[rank]) != bits(got.results[0])) {
        return std::to_string(ranks) + " ranks: rank " + std::to_string(rank) + " has other bits than rank 0";
      }
      if (bits(got.lost[rank]) != bits(std::vector<Value>(301, Value(0)))) {
        return std::to_string(ranks) + " ranks: rank " + std::to_string(rank) + " says that it lost something";
      }
    }
    for (std::size_t i = 0; i < got.results[0].size(); ++i) {
      double sum = 0;
      double magnitude = 0;
      for (auto const& input : inputs) {
        sum += static_cast<double>(input[i]);
        magnitude += std::fabs(static_cast<double>(input[i]));
      }
      double const tolerance = magnitude * 16 * static_cast<double>(std::numeric_limits<Value>::epsilon());
      if (std::fabs(static_cast<double>(got.results[0][i]) - sum) > tolerance) {
        return std::to_string(ranks) + " ranks: far from the sum at " + std::to_string(i);
      }
    }
  }
  return {};
}

/// Signed zeros, and NaN and infinities of one rank, on every rank with the same bits (NaN as NaN).
template <class Subject>
std::string special_values_lost() {
  float const nan = std::numeric_limits<float>::quiet_NaN();
  float const inf = std::numeric_limits<float>::infinity();
  for (int const ranks : {2, 3, 8}) {
    for (reduction const op : operations) {
      std::vector<std::vector<float>> inputs(static_cast<std::size_t>(ranks), std::vector<float>(40, 1.0F));
      for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
        inputs[rank][0] = rank % 2 == 0 ? 0.0F : -0.0F;
        inputs[rank][13] = rank == 1 ? nan : 1.0F;
        inputs[rank][39] = rank == 0 ? (op == reduction::min ? -inf : inf) : 1.0F;
      }
      auto const got = run<Subject>(inputs, op);
      for (auto const& result : got.results) {
        bool const zero_signed = std::signbit(result[0]) == std::signbit(got.results[0][0]) && result[0] == 0;
        bool const max_right = op != reduction::max || !std::signbit(result[0]);
        bool const min_right = op != reduction::min || std::signbit(result[0]);
        if (!zero_signed || !max_right || !min_right) {
          return std::to_string(ranks) + " ranks: signed zeros";
        }
        if (!std::isnan(result[13]) || result[39] != inputs[0][39]) {
          return std::to_string(ranks) + " ranks: NaN or infinity is gone";
        }
      }
    }
  }
  return {};
}

/// Messages and values as the formulas have them, and no more than the bound.
template <class Subject, class Value>
std::string wrong_volume() {
  for (int const ranks : rank_counts) {
    for (std::int64_t const count : lengths(ranks)) {
      auto const got = run<Subject>(whole_inputs<Value>(ranks, count), reduction::sum);
      for (int rank = 0; rank < ranks; ++rank) {
        auto const& traffic = got.traffic[static_cast<std::size_t>(rank)]; // of two calls
        sent const actual{traffic.messages_sent / 2, traffic.bytes_sent / 2 / static_cast<std::int64_t>(sizeof(Value))};
        sent const expected = Subject::expected(rank, ranks, count);
        std::string const where =
            std::to_string(ranks) + " ranks, " + std::to_string(count) + " values, rank " + std::to_string(rank) + ": ";
        if (!(actual == expected) || traffic.bytes_sent != 2 * actual.values * std::int64_t(sizeof(Value))) {
          return where + std::to_string(actual.messages) + " messages, " + std::to_string(actual.values) +
                 " values sent, expected " + std::to_string(expected.messages) + " and " +
                 std::to_string(expected.values);
        }
        if (traffic.words_sent() / 2 > got.bound_words) {
          return where + std::to_string(traffic.words_sent() / 2) + " words exceed the bound " +
                 std::to_string(got.bound_words);
        }
      }
    }
  }
  return {};
}

/// The same bits where the communicator does not reach the vectors and everything is staged.
template <class Subject, class Value>
std::string wrong_when_staged() {
  using far = unreachable<oktopk::in_process_communicator>;
  for (int const ranks : {1, 2, 3, 5, 8, 13}) {
    for (reduction const op : operations) {
      auto const inputs = rough_inputs<Value>(ranks, 301);
      auto const near_result = run<Subject>(inputs, op);
      using algorithm = typename Subject::template algorithm<far, Value>;
      auto const far_result = run_with(algorithm(), inputs, op, false, [](auto inner) { return far(inner); });
      for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
        if (bits(near_result.results[rank]) != bits(far_result.results[rank])) {
          return std::to_string(ranks) + " ranks: other bits on rank " + std::to_string(rank);
        }
      }
    }
  }
  return {};
}

/// All of the above, for an algorithm that loses nothing.
template <class Subject>
void check_lossless() {
  static_assert(oktopk::detail::dense_reduction<typename Subject::template algorithm<counting, float>, execution,
                                                counting, float>);
  static_assert(oktopk::detail::dense_reduction<typename Subject::template algorithm<counting, double>, execution,
                                                counting, double>);
  CHECK(wrong_results<Subject, float>() == "");
  CHECK(wrong_results<Subject, double>() == "");
  CHECK(disagreement<Subject, float>() == "");
  CHECK(disagreement<Subject, double>() == "");
  CHECK(special_values_lost<Subject>() == "");
  CHECK(wrong_volume<Subject, float>() == "");
  CHECK(wrong_volume<Subject, double>() == "");
  CHECK(wrong_when_staged<Subject, float>() == "");
}

/// Values that a rank sends where a vector is cut into `pieces` parts to a block and each block but two goes to the
/// right twice: P-1 blocks to be reduced, from its own on downwards, and P-1 finished ones.
inline sent ring_sends(int rank, int ranks, std::int64_t count, std::int64_t pieces) {
  sent all;
  auto const boundary = [&](std::int64_t i) { return count * i / (ranks * pieces); };
  for (int step = 0; step < 2 * (ranks - 1); ++step) {
    std::int64_t const block = (rank + 2 * ranks - step) % ranks;
    for (std::int64_t j = block * pieces; j < (block + 1) * pieces; ++j) {
      std::int64_t const width = boundary(j + 1) - boundary(j);
      all.messages += width > 0 ? 1 : 0;
      all.values += width;
    }
  }
  return all;
}

} // namespace oktopk_tests::dense
