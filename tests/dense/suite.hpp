// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/generators.hpp"
#include "support/unreachable.hpp"

#include <oktopk/comm/any_communicator.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/dense/concept.hpp>

#include <bit>
#include <functional>
#include <memory>

// What every dense allreduce is put through beside the suite of tests/algorithm, which sums real numbers by text. A
// subject has `template <class Comm, class Value> using algorithm`, and `expected(rank, ranks, count)`: the messages and
// values that it must send.
namespace oktopk_tests::dense {

using oktopk::reduction;

/// Counts the messages of any communicator, so that an algorithm is compiled once for all of them.
using counting_any = oktopk::counted<oktopk::any_communicator>;

inline constexpr reduction operations[] = {reduction::sum, reduction::max, reduction::min};
inline std::vector<int> const all_rank_counts(std::begin(rank_counts), std::end(rank_counts));

/// What a rank sends. Called with the values of one message after the other, of which an empty one is none.
struct sent {
  std::int64_t messages = 0;
  std::int64_t values = 0;

  void operator()(std::int64_t more) {
    messages += more > 0 ? 1 : 0;
    values += more;
  }
};

/// What came out on each rank, and what it sent.
template <class Value>
struct outcome {
  std::vector<std::vector<Value>> results;
  std::vector<std::vector<Value>> lost;
  std::vector<oktopk::traffic> traffic;
  double bound_words = 0;
};

/// A dense allreduce of any type, so that the checks are compiled once for all.
template <class Value>
struct reducer {
  template <class Algorithm>
  explicit reducer(std::shared_ptr<Algorithm> of)
      : run([of](execution const& exec, counting_any& comm, Value* values, Value* lost, std::int64_t count,
                 reduction op) { of->run(exec, comm, values, lost, count, op); }),
        bound_words([of](std::int64_t count, int ranks) { return of->bound_words(count, ranks); }) {}

  std::function<void(execution const&, counting_any&, Value*, Value*, std::int64_t, reduction)> run;
  std::function<double(std::int64_t, int)> bound_words;
};

template <class Value>
using maker = std::function<reducer<Value>()>;

template <class Subject, class Value>
maker<Value> maker_of() {
  using algorithm = typename Subject::template algorithm<counting_any, Value>;
  return [] { return reducer<Value>(std::make_shared<algorithm>()); };
}

/// Runs the algorithm that `make()` gives on `inputs`, one a rank; `far`: the communicator does not reach the vectors.
template <class Value>
outcome<Value> run_made(maker<Value> const& make, std::vector<std::vector<Value>> const& inputs, reduction op,
                        bool with_lost = false, bool far = false) {
  auto const ranks = static_cast<int>(inputs.size());
  outcome<Value> all;
  all.results.resize(inputs.size());
  all.lost.resize(inputs.size());
  all.traffic.resize(inputs.size());
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator inner) {
    auto const at = static_cast<std::size_t>(inner.rank());
    counting_any comm(unreachable<oktopk::in_process_communicator>(inner, far));
    execution const exec;
    auto const algorithm = make();
    auto const count = static_cast<std::int64_t>(inputs[at].size());
    auto const values = to_view(inputs[at]);
    // Garbage that must be overwritten.
    auto const lost = to_view(std::vector<Value>(inputs[at].size(), Value(77)));
    comm.reset();
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
    all.traffic[at] = comm.total();
    all.bound_words = algorithm.bound_words(count, ranks);
  });
  return all;
}

template <class Subject, class Value>
outcome<Value> run(std::vector<std::vector<Value>> const& inputs, reduction op, bool with_lost = false) {
  return run_made<Value>(maker_of<Subject, Value>(), inputs, op, with_lost);
}

template <class Value, class Draw>
std::vector<std::vector<Value>> drawn_inputs(int ranks, std::int64_t count, Draw const& draw) {
  std::vector<std::vector<Value>> inputs(static_cast<std::size_t>(ranks));
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    for (std::int64_t i = 0; i < count; ++i) {
      inputs[rank].push_back(static_cast<Value>(draw(noise(4, rank, static_cast<std::uint64_t>(i)))));
    }
  }
  return inputs;
}

/// Small whole numbers: every sum of them is exact.
template <class Value>
std::vector<std::vector<Value>> whole_inputs(int ranks, std::int64_t count) {
  return drawn_inputs<Value>(ranks, count, [](std::uint64_t bits) { return number_in(-1000, 1000, bits); });
}

/// Numbers of magnitudes far apart: the order of a sum shows.
template <class Value>
std::vector<std::vector<Value>> rough_inputs(int ranks, std::int64_t count) {
  return drawn_inputs<Value>(ranks, count, heavy_tailed);
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
template <class Value>
std::string wrong_results_of(maker<Value> const& make) {
  for (int const ranks : rank_counts) {
    for (std::int64_t const count : lengths(ranks)) {
      for (reduction const op : operations) {
        auto const inputs = whole_inputs<Value>(ranks, count);
        auto const got = run_made<Value>(make, inputs, op);
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

template <class Subject, class Value>
std::string wrong_results() {
  return wrong_results_of<Value>(maker_of<Subject, Value>());
}

/// The same bits as another one's, of results and of losses; where that is asked, in the same bytes.
template <class Value>
std::string difference_of(maker<Value> const& make, maker<Value> const& make_other,
                          std::vector<int> const& numbers_of_ranks, bool in_the_same_bytes) {
  for (int const ranks : numbers_of_ranks) {
    for (std::int64_t const count : lengths(ranks)) {
      for (reduction const op : operations) {
        auto const inputs = rough_inputs<Value>(ranks, count);
        auto const one = run_made<Value>(make, inputs, op, op == reduction::sum);
        auto const other = run_made<Value>(make_other, inputs, op, op == reduction::sum);
        for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
          if (bits(one.results[rank]) != bits(other.results[rank]) || one.lost[rank] != other.lost[rank] ||
              (in_the_same_bytes && one.traffic[rank].bytes_sent != other.traffic[rank].bytes_sent)) {
            return std::to_string(ranks) + " ranks, " + std::to_string(count) + " values: not the same on rank " +
                   std::to_string(rank);
          }
        }
      }
    }
  }
  return {};
}

template <class Subject, class Other, class Value>
std::string unlike_other(std::vector<int> const& numbers_of_ranks, bool in_the_same_bytes = false) {
  return difference_of<Value>(maker_of<Subject, Value>(), maker_of<Other, Value>(), numbers_of_ranks,
                              in_the_same_bytes);
}

/// Signed zeros, and NaN and infinities of one rank, on every rank with the same bits (NaN as NaN).
inline std::string special_values_lost_in(maker<float> const& make) {
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
      auto const got = run_made<float>(make, inputs, op);
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

template <class Subject>
std::string special_values_lost() {
  return special_values_lost_in(maker_of<Subject, float>());
}

/// Messages and bytes as `expected_of(rank, ranks, count)` has them, and no more than the bound.
template <class Value>
std::string
wrong_volume_of(maker<Value> const& make,
                std::function<std::pair<std::int64_t, std::int64_t>(int, int, std::int64_t)> const& expected_of) {
  for (int const ranks : rank_counts) {
    for (std::int64_t const count : lengths(ranks)) {
      auto const got = run_made<Value>(make, rough_inputs<Value>(ranks, count), reduction::sum);
      for (int rank = 0; rank < ranks; ++rank) {
        auto const expected = expected_of(rank, ranks, count);
        auto const& traffic = got.traffic[static_cast<std::size_t>(rank)]; // of two calls
        std::string const where =
            std::to_string(ranks) + " ranks, " + std::to_string(count) + " values, rank " + std::to_string(rank) + ": ";
        if (traffic.messages_sent != 2 * expected.first || traffic.bytes_sent != 2 * expected.second) {
          return where + std::to_string(traffic.messages_sent) + " messages, " + std::to_string(traffic.bytes_sent) +
                 " bytes sent in two calls, expected " + std::to_string(2 * expected.first) + " and " +
                 std::to_string(2 * expected.second);
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

/// By `Subject::expected` of values, or `Subject::expected_bytes<Value>` of messages and bytes where values are coded.
template <class Subject, class Value>
std::string wrong_volume() {
  return wrong_volume_of<Value>(maker_of<Subject, Value>(), [](int rank, int ranks, std::int64_t count) {
    if constexpr (requires { Subject::template expected_bytes<Value>(rank, ranks, count); }) {
      return std::pair<std::int64_t, std::int64_t>(Subject::template expected_bytes<Value>(rank, ranks, count));
    } else {
      sent const all = Subject::expected(rank, ranks, count);
      return std::pair(all.messages, all.values * static_cast<std::int64_t>(sizeof(Value)));
    }
  });
}

/// The same bits where the communicator does not reach the vectors and everything is staged.
template <class Value>
std::string wrong_when_staged_of(maker<Value> const& make) {
  for (int const ranks : {1, 2, 3, 5, 8, 13}) {
    for (reduction const op : operations) {
      auto const inputs = rough_inputs<Value>(ranks, 301);
      auto const near_result = run_made<Value>(make, inputs, op);
      auto const far_result = run_made<Value>(make, inputs, op, false, true);
      for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
        if (bits(near_result.results[rank]) != bits(far_result.results[rank])) {
          return std::to_string(ranks) + " ranks: other bits on rank " + std::to_string(rank);
        }
      }
    }
  }
  return {};
}

template <class Subject, class Value>
std::string wrong_when_staged() {
  return wrong_when_staged_of<Value>(maker_of<Subject, Value>());
}

/// All of the above, for an algorithm that loses nothing.
template <class Subject>
void check_lossless() {
  static_assert(oktopk::detail::dense_reduction<typename Subject::template algorithm<counting_any, float>, execution,
                                                counting_any, float>);
  static_assert(oktopk::detail::dense_reduction<typename Subject::template algorithm<counting_any, double>, execution,
                                                counting_any, double>);
  CHECK(wrong_results<Subject, float>() == "");
  CHECK(wrong_results<Subject, double>() == "");
  CHECK(special_values_lost<Subject>() == "");
  CHECK(wrong_volume<Subject, float>() == "");
  CHECK(wrong_volume<Subject, double>() == "");
  CHECK(wrong_when_staged<Subject, float>() == "");
}

/// Options of algorithms that cut their messages.
template <class Algorithm>
void check_cut_options(std::string const& name) {
  CHECK(Algorithm().problem() == "");
  CHECK(Algorithm({.chunk_bytes = 7}).problem() == "chunk_bytes = 7 of " + name + " is less than a value");
  CHECK(Algorithm({.ahead = 0}).problem() == "ahead = 0 of " + name + " is not positive");
  CHECK(Algorithm({.ahead = 9}).describe() != Algorithm().describe());
}

/// Calls `message` with the values of each message that a rank sends where a vector of whole grains is cut into `pieces`
/// parts to a block and each block but two goes to the right twice: P-1 blocks to be reduced, from its own on downwards,
/// and P-1 finished ones.
template <class Message>
void each_ring_message(int rank, int ranks, std::int64_t count, std::int64_t pieces, std::int64_t grain,
                       Message&& message) {
  std::int64_t const grains = (count + grain - 1) / grain;
  auto const boundary = [&](std::int64_t i) { return std::min(count, grains * i / (ranks * pieces) * grain); };
  for (int step = 0; step < 2 * (ranks - 1); ++step) {
    std::int64_t const block = (rank + 2 * ranks - step) % ranks;
    for (std::int64_t j = block * pieces; j < (block + 1) * pieces; ++j) {
      message(boundary(j + 1) - boundary(j));
    }
  }
}

/// The same where pairs fold until a power of two is left, vectors of whole grains are halved step by step, and come
/// back.
template <class Message>
void each_halving_message(int rank, int ranks, std::int64_t count, std::int64_t grain, Message&& message) {
  int const steps = static_cast<int>(std::bit_width(static_cast<unsigned>(ranks))) - 1;
  int const folded = ranks - (1 << steps);
  bool const in_pair = rank < 2 * folded;
  if (in_pair) {
    message(count);
  }
  if (in_pair && rank % 2 == 1) {
    return;
  }
  int const place = in_pair ? rank / 2 : rank - folded;
  auto const values = [&](std::int64_t begin, std::int64_t end) {
    return std::min(count, end * grain) - std::min(count, begin * grain);
  };
  std::int64_t begin = 0;
  std::int64_t end = (count + grain - 1) / grain;
  for (int step = 0; step < steps; ++step) {
    std::int64_t const middle = begin + (end - begin) / 2;
    bool const lower = (place >> (steps - 1 - step)) % 2 == 0;
    message(lower ? values(middle, end) : values(begin, middle));
    (lower ? end : begin) = middle;
    message(values(begin, end)); // on the way back
  }
}

} // namespace oktopk_tests::dense
