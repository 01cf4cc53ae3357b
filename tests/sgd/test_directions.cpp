// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Adam with residuals of directions, against the algorithm in plain loops of double; mass; what ranks have in common; faults.

#include "sgd/gradients.hpp"
#include "support/call.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/failing.hpp"

#include <oktopk/adam.hpp>
#include <oktopk/algorithm/topk_a.hpp>

#include <numeric>
#include <sstream>

namespace test_of_directions {

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::in_process_communicator;
using doubles = std::vector<double>;

namespace {

// A matrix of several tiles and parts of them, vectors by their shapes, a scalar, and a tensor without values.
oktopk::detail::tensor_shapes const shapes = {{70, 3, 2}, {40}, {1, 60}, {}, {5, 0}, {90, 1}, {3, 1100}};
constexpr std::int64_t length = 420 + 40 + 60 + 1 + 90 + 3300;
constexpr std::int64_t statistics = 70 + 6 + 40 + 60 + 1 + 90 + 3 + 1100;
constexpr std::int64_t k = 60;

/// The gradient of a rank in a step; rows 3 to 5 of the first matrix never have one.
template <class Value>
std::vector<Value> gradient_of(int rank, int step) {
  auto const made = correlated_gradient<length, 8>(rank, step);
  std::vector<Value> gradient(made.begin(), made.end());
  std::fill(gradient.begin() + 18, gradient.begin() + 36, Value(0));
  return gradient;
}

/// The algorithm for one rank, with the result of the sums given by the caller.
struct by_the_book {
  explicit by_the_book(bool in_matrices)
      : has_shapes(in_matrices), weights(size, 1), waiting(size, 0), squares(in_matrices ? statistics : length, 0) {}

  static constexpr auto size = static_cast<std::size_t>(length);

  /// Calls `visit(first value, rows, columns, first statistic)` for each tensor.
  template <class Visit>
  static void each_tensor(Visit const& visit) {
    std::size_t value = 0;
    std::size_t statistic = 0;
    for (auto const& shape : shapes) {
      std::size_t const values = static_cast<std::size_t>(
          std::accumulate(shape.begin(), shape.end(), std::int64_t(1), [](auto a, auto b) { return a * b; }));
      std::size_t rows = shape.size() > 1 ? static_cast<std::size_t>(shape[0]) : 1;
      if (rows == values) {
        rows = 1;
      }
      if (values > 0) {
        visit(value, rows, values / rows, statistic);
        value += values;
        statistic += rows > 1 ? rows + values / rows : values;
      }
    }
  }

  /// Means of squares of rows and columns with this gradient.
  doubles advanced(doubles const& gradient, double beta2) const {
    doubles next = squares;
    if (!has_shapes) {
      for (std::size_t i = 0; i < size; ++i) {
        next[i] = beta2 * next[i] + (1 - beta2) * gradient[i] * gradient[i];
      }
      return next;
    }
    each_tensor([&](std::size_t begin, std::size_t rows, std::size_t columns, std::size_t at) {
      doubles row(rows, 0);
      doubles column(columns, 0);
      for (std::size_t i = 0; i < rows * columns; ++i) {
        double const square = gradient[begin + i] * gradient[begin + i];
        row[i / columns] += square / static_cast<double>(columns);
        column[i % columns] += square / static_cast<double>(rows);
      }
      auto const put = [&](doubles const& means) {
        for (double const mean : means) {
          next[at] = beta2 * next[at] + (1 - beta2) * mean;
          at += 1;
        }
      };
      if (rows > 1) {
        put(row);
      }
      put(column);
    });
    return next;
  }

  /// The second moment of each value.
  doubles moments() const {
    if (!has_shapes) {
      return squares;
    }
    doubles of(size);
    each_tensor([&](std::size_t begin, std::size_t rows, std::size_t columns, std::size_t at) {
      double const mean = std::accumulate(squares.begin() + static_cast<std::ptrdiff_t>(at),
                                          squares.begin() + static_cast<std::ptrdiff_t>(at + rows), 0.0) /
                          static_cast<double>(rows);
      for (std::size_t i = 0; i < rows * columns; ++i) {
        double const column = squares[at + (rows > 1 ? rows : 0) + i % columns];
        of[begin + i] = rows == 1 ? column : mean > 0 ? squares[at + i / columns] * column / mean : 0;
      }
    });
    return of;
  }

  double factor(double moment) const { return has_shapes ? std::max(std::pow(moment, 0.25), 1e-5) : 1; }

  bool has_shapes;
  doubles weights;
  doubles waiting; ///< in directions
  doubles squares;
};

/// The places of the k of largest magnitude.
std::vector<std::size_t> largest(doubles const& of) {
  std::vector<std::size_t> places(of.size());
  std::iota(places.begin(), places.end(), std::size_t(0));
  std::sort(places.begin(), places.end(), [&](auto a, auto b) { return std::abs(of[a]) > std::abs(of[b]); });
  places.resize(k);
  return places;
}

template <class Value>
using all_to_all = oktopk::topk_a<execution, in_process_communicator, oktopk::with_format<oktopk::coo<Value>>>;

/// Steps of all ranks beside those by the book; weights, what waits and the statistics are theirs, within rounding. Of a
/// gradient that is a column of a table no selection makes the accumulator.
template <class Value>
void check_by_the_book(int ranks, bool has_shapes, double clip_norm, double tolerance, bool in_column = false) {
  constexpr double beta2 = 0.95;
  constexpr double decay = 0.1;
  std::vector<by_the_book> expected(static_cast<std::size_t>(ranks), by_the_book(has_shapes));
  std::vector<std::vector<doubles>> found(3, std::vector<doubles>(static_cast<std::size_t>(ranks)));
  constexpr int steps = 50;
  auto const rate_of = [](int step) { return step < 20 ? 0.01 : 0.004; };
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    all_to_all<Value> allreduce(execution(), comm, {.length = length, .k = k});
    oktopk::detail::adam_options how{.learning_rate = 0.01, .beta2 = beta2, .weight_decay = decay};
    how.feedback.clip_norm = clip_norm;
    how.shapes = has_shapes ? shapes : oktopk::detail::tensor_shapes();
    oktopk::adam optimizer(allreduce, how);
    auto const weights = to_view(std::vector<Value>(by_the_book::size, 1));
    for (int step = 1; step <= steps; ++step) {
      optimizer.set_learning_rate(rate_of(step));
      auto const gradient = to_view(gradient_of<Value>(comm.rank(), step));
      if (in_column) {
        Kokkos::View<Value**, Kokkos::LayoutRight, memory> const table("table", by_the_book::size, 2);
        auto const column = Kokkos::subview(table, Kokkos::ALL(), 1);
        Kokkos::deep_copy(column, gradient);
        optimizer.step(weights, column);
      } else {
        optimizer.step(weights, gradient);
      }
    }
    auto const saved = optimizer.state();
    auto const rank = static_cast<std::size_t>(comm.rank());
    auto const as_doubles = [](auto const& of) { return doubles(of.begin(), of.end()); };
    found[0][rank] = as_doubles(to_vector(weights));
    found[1][rank] = as_doubles(saved.residual);
    found[2][rank] = as_doubles(saved.mean_of_squares);
    CHECK(saved.mean.empty());
  });

  doubles applied(by_the_book::size, 0); // of all ranks, in directions
  doubles brought(by_the_book::size, 0);
  for (int step = 1; step <= steps; ++step) {
    std::vector<doubles> gradients;
    doubles mean;
    for (int rank = 0; rank < ranks; ++rank) {
      auto const own = gradient_of<Value>(rank, step);
      doubles gradient(own.begin(), own.end());
      double const norm = std::sqrt(std::inner_product(gradient.begin(), gradient.end(), gradient.begin(), 0.0));
      if (clip_norm > 0 && norm > clip_norm) {
        std::for_each(gradient.begin(), gradient.end(), [&](double& each) { each *= clip_norm / norm; });
      }
      gradients.push_back(gradient);
      by_the_book& of = expected[static_cast<std::size_t>(rank)];
      of.squares = of.advanced(gradient, beta2);
      mean.resize(of.squares.size());
      for (std::size_t i = 0; i < mean.size(); ++i) {
        mean[i] += of.squares[i] / ranks;
      }
    }
    doubles sums(by_the_book::size, 0);
    doubles factors(by_the_book::size, 1);
    for (int rank = 0; rank < ranks; ++rank) {
      by_the_book& of = expected[static_cast<std::size_t>(rank)];
      of.squares = has_shapes ? mean : of.squares;
      doubles const moments = of.moments();
      doubles selected(by_the_book::size);
      for (std::size_t i = 0; i < by_the_book::size; ++i) {
        double const direction =
            gradients[static_cast<std::size_t>(rank)][i] / (std::sqrt(moments[i] / (1 - std::pow(beta2, step))) + 1e-8);
        of.waiting[i] += direction;
        brought[i] += direction;
        factors[i] = of.factor(moments[i]);
        selected[i] = of.waiting[i] * factors[i];
      }
      for (std::size_t const i : largest(selected)) {
        sums[i] += selected[i];
        of.waiting[i] = 0;
      }
    }
    for (by_the_book& of : expected) {
      for (std::size_t i = 0; i < by_the_book::size; ++i) {
        of.weights[i] -= rate_of(step) * (decay * of.weights[i] + sums[i] / factors[i] / ranks);
      }
    }
    for (std::size_t i = 0; i < by_the_book::size; ++i) {
      applied[i] += sums[i] / factors[i];
    }
  }

  doubles waits(by_the_book::size, 0);
  for (std::size_t rank = 0; rank < expected.size(); ++rank) {
    by_the_book const& of = expected[rank];
    CAPTURE(ranks, rank, has_shapes);
    CHECK(found[0][rank] == found[0][0]); // the weights, to the bit
    CHECK((found[2][rank] == found[2][0]) == (has_shapes || rank == 0));
    REQUIRE(found[2][rank].size() == of.squares.size());
    doubles const moments = of.moments();
    double farthest = 0;
    for (std::size_t i = 0; i < by_the_book::size; ++i) {
      double const factor = of.factor(moments[i]);
      farthest = std::max(farthest, std::abs(found[0][rank][i] - of.weights[i]));
      farthest =
          std::max(farthest, std::abs(found[1][rank][i] / factor - of.waiting[i]) / (1 + std::abs(of.waiting[i])));
      waits[i] += found[1][rank][i] / factor;
    }
    for (std::size_t i = 0; i < of.squares.size(); ++i) {
      farthest = std::max(farthest, std::abs(found[2][rank][i] - of.squares[i]) / (1e-12 + of.squares[i]));
    }
    CHECK(farthest < tolerance);
  }
  double lost = 0; // what waits and what was applied are all that was brought
  for (std::size_t i = 0; i < by_the_book::size; ++i) {
    lost = std::max(lost, std::abs(waits[i] + applied[i] - brought[i]) / (1 + std::abs(brought[i])));
  }
  CHECK(lost < 10 * tolerance);
}

} // namespace

TEST_CASE("directions are those of the algorithm in double, on 1, 2, 3 and 5 ranks") {
  for (int const ranks : {1, 2, 3, 5}) {
    check_by_the_book<double>(ranks, true, 0, 1e-11);
    check_by_the_book<float>(ranks, true, 0, 2e-4);
  }
  check_by_the_book<double>(3, false, 0, 1e-11); // in float all directions of a first step are 1 or -1
  check_by_the_book<double>(2, true, 0.5, 1e-11);
  check_by_the_book<double>(2, true, 0, 1e-11, true);
  check_by_the_book<double>(2, false, 0.5, 1e-11);
}

TEST_CASE("a restart in the middle has the same bits, and states of other ranks add up") {
  constexpr int ranks = 3;
  std::vector<oktopk::adam<any>::state_type> saved(ranks);
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    any one = over(comm, "ok_topk", {.length = length, .k = k});
    any other = over(comm, "ok_topk", {.length = length, .k = k});
    oktopk::adam going_on(one, {.shapes = shapes});
    oktopk::adam resumed(other, {.learning_rate = 1, .shapes = shapes});
    auto const weights = to_view(std::vector<float>(by_the_book::size, 1));
    auto const again = to_view(std::vector<float>(by_the_book::size, 1));
    for (int step = 0; step < 6; ++step) {
      auto const gradient = to_view(gradient_of<float>(comm.rank(), step));
      going_on.step(weights, gradient);
      if (step == 2) {
        std::stringstream file;
        oktopk::save(file, going_on.state());
        resumed.restore(oktopk::load<decltype(going_on.state())>(file));
        Kokkos::deep_copy(again, weights);
      } else if (step > 2) {
        resumed.step(again, gradient);
      }
    }
    CHECK(bits(to_vector(weights)) == bits(to_vector(again)));
    CHECK(saved_bytes(going_on.state()) == saved_bytes(resumed.state()));
    saved[static_cast<std::size_t>(comm.rank())] = going_on.state();
  });
  oktopk::in_process::run(2, [&](in_process_communicator comm) {
    any allreduce = over(comm, "ok_topk", {.length = length, .k = k});
    oktopk::adam fewer(allreduce, {.shapes = shapes});
    auto state = saved[static_cast<std::size_t>(comm.rank())];
    for (std::size_t i = 0; i < by_the_book::size && comm.rank() == 0; ++i) {
      state.residual[i] += saved[2].residual[i];
    }
    fewer.restore(oktopk::for_other_ranks(state, allreduce));
    CHECK(bits(fewer.state().residual) == bits(state.residual));
    CHECK(bits(fewer.state().mean_of_squares) == bits(saved[2].mean_of_squares));
    auto const weights = to_view(std::vector<float>(by_the_book::size, 1));
    CHECK_NOTHROW(fewer.step(weights, to_view(gradient_of<float>(comm.rank(), 7))));
    if (comm.rank() == 1) {
      state.mean_of_squares[50] *= 2;
    }
    CHECK(outcome_of([&] { fewer.restore(oktopk::for_other_ranks(state, allreduce)); }).code == fault::ranks_disagree);
    state.mean_of_squares.pop_back();
    CHECK(outcome_of([&] { fewer.restore(oktopk::for_other_ranks(state, allreduce)); }).code == fault::bad_state);
  });
}

TEST_CASE("a fault of one rank is an error of all, nothing has changed, and training goes on") {
  for (bool const has_shapes : {true, false}) {
    oktopk::in_process::run(3, [&](in_process_communicator comm) {
      any allreduce = over(comm, "ok_topk", {.length = length, .k = k});
      oktopk::adam<any>::options how;
      how.shapes = has_shapes ? shapes : how.shapes;
      oktopk::adam optimizer(allreduce, how);
      auto const weights = to_view(std::vector<float>(by_the_book::size, 1));
      optimizer.step(weights, to_view(gradient_of<float>(comm.rank(), 0)));
      auto const before = saved_bytes(optimizer.state());
      auto const weights_before = bits(to_vector(weights));
      auto const refused = [&](int step, float value, std::int64_t size, fault code, std::string_view words) {
        auto bad = gradient_of<float>(comm.rank(), step);
        if (comm.rank() == 1) {
          bad[777] = value;
          bad.resize(static_cast<std::size_t>(size));
        }
        auto const heard = outcome_of([&] { optimizer.step(weights, to_view(bad)); });
        CHECK(unlike(heard, code, words) == "");
        CHECK(heard.says("rank 1"));
        CHECK(bits(to_vector(weights)) == weights_before);
        CHECK(saved_bytes(optimizer.state()).size() == before.size());
        CHECK(optimizer.state().steps == 1);
      };
      auto const infinite = std::numeric_limits<float>::infinity();
      refused(1, std::nanf(""), length, fault::non_finite, "at index 777 is not finite");
      refused(2, infinite, length, fault::non_finite, "at index 777 is not finite");
      refused(3, -3e25F, length, fault::non_finite, "at index 777 is not finite"); // its square
      refused(4, 1, length - 1, fault::length_mismatch, std::to_string(length - 1));
      auto const after = optimizer.state();
      std::istringstream file(before);
      auto const kept = oktopk::load<oktopk::adam<any>::state_type>(file);
      CHECK(bits(after.residual) == bits(kept.residual));
      CHECK(bits(after.mean_of_squares) == bits(kept.mean_of_squares));
      CHECK_NOTHROW(optimizer.step(weights, to_view(gradient_of<float>(comm.rank(), 5))));
      CHECK(bits(to_vector(weights)) != weights_before);
    });
  }
}

TEST_CASE("every operation of a step that fails on one rank ends the step on all") {
  auto const fault = fault_of_failing_operations(3, [](failing_communicator& comm) {
    oktopk::topk_a<execution, failing_communicator> allreduce(execution(), comm, {.length = 200, .k = 5});
    oktopk::adam optimizer(allreduce, {.shapes = {{15, 10}, {50}}});
    auto const weights = to_view(std::vector<float>(200, 1));
    for (int step = 0; step < 2; ++step) {
      auto gradient = correlated_gradient<200, 8>(comm.rank(), step);
      optimizer.step(weights, to_view(gradient));
      if (step == 0) { // and where the ranks look for a fault
        gradient[7] = comm.rank() == 1 ? std::nanf("") : 0;
        try {
          optimizer.step(weights, to_view(gradient));
        } catch (oktopk::error const& heard) {
          if (heard.code() != fault::non_finite) {
            throw;
          }
        }
      }
    }
    auto const found = to_vector(weights);
    return doubles(found.begin(), found.end());
  });
  CHECK(fault == "");
}

TEST_CASE_ON(comm, 2, "options of directions that make no sense, or differ, are an error on every rank") {
  using options = oktopk::adam<any>::options;
  any allreduce = over(comm, "ok_topk", {.length = length, .k = k});
  auto const heard = [&](options const& here, options const& there) {
    return outcome_of([&] { oktopk::adam optimizer(allreduce, comm.rank() == 1 ? here : there); });
  };
  constexpr fault out = fault::option_out_of_range;
  options const good{.shapes = shapes};
  CHECK(heard(good, good) == outcome());
  CHECK(heard({.beta1 = 0}, {.beta1 = 0}) == outcome());
  CHECK(unlike(heard({.beta1 = 0.9}, {}), out, "so they take no beta1 and no momentum") == "");
  options const moves{.feedback = {.momentum = 0.9}};
  CHECK(unlike(heard(moves, moves), out, "so they take no beta1 and no momentum") == "");
  CHECK(unlike(heard({.shapes = {{length - 1}}}, good), out, "the shapes have 3910 values, and the vector 3911") == "");
  CHECK(unlike(heard({.shapes = {{length}, {2}}}, good), out, "more values than the vector, which has 3911") == "");
  CHECK(unlike(heard({.shapes = {{length, -1}}}, good), out, "a dimension of -1") == "");
  std::int64_t const huge = std::int64_t(1) << 40;
  CHECK(unlike(heard({.shapes = {{huge, huge}}}, good), out, "more values than the vector") == "");
  options const empty{.shapes = {{length}, {huge, huge, 0}}}; // a tensor without values
  CHECK(heard(empty, empty) == outcome());
  CHECK(heard(good, {.shapes = {{length}}}).code == fault::ranks_disagree);
  CHECK(heard({.shapes = {{1, length}}}, {.shapes = {{length, 1}}}).code == fault::ranks_disagree);
  CHECK(heard(good, {}).code == fault::ranks_disagree);
}

} // namespace test_of_directions
