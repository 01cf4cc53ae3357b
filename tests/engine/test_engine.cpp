// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The engine behind its C interface gives the bits of the C++ library: averages, states, errors.

#include "engine/ranks.hpp"
#include "support/collect.hpp"

#include <oktopk/bucketed.hpp>
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/direction_feedback.hpp>

#include <stdlib.h> // mkdtemp
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <random>
#include <sstream>

namespace oktopk {

using host = Kokkos::DefaultHostExecutionSpace;

extern template any_allreduce<host, any_communicator, double>
make_allreduce<double, std::int32_t>(host const&, any_communicator, std::string_view, gradient_size const&,
                                     std::span<catalogue::added_codec<host, double> const>);

} // namespace oktopk

namespace {

using namespace oktopk_tests;
using oktopk::host;

constexpr int steps = 4;

template <class Value>
using any_of = oktopk::any_allreduce<host, oktopk::any_communicator, Value>;

template <class Value>
using host_values = Kokkos::View<Value*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

template <class Value>
std::vector<Value> gradient(std::int64_t length, int rank, int step) {
  std::mt19937 draw(static_cast<unsigned>(1000 * step + rank));
  std::normal_distribution<Value> normal;
  std::vector<Value> values(static_cast<std::size_t>(length));
  std::generate(values.begin(), values.end(), [&] { return normal(draw); });
  return values;
}

/// What the ranks of a run have, by rank and step.
template <class Value>
using results = std::vector<std::vector<std::vector<Value>>>;

template <class Value>
results<Value> room(int ranks) {
  return results<Value>(static_cast<std::size_t>(ranks), std::vector<std::vector<Value>>(steps));
}

/// Where two runs differ; empty where all bits are the same.
template <class Value>
std::string difference(results<Value> const& a, results<Value> const& b) {
  for (std::size_t rank = 0; rank < a.size(); ++rank) {
    for (std::size_t step = 0; step < a[rank].size(); ++step) {
      auto const found = bits(a[rank][step]);
      auto const expected = bits(b[rank][step]);
      auto const [place, other] = std::mismatch(found.begin(), found.end(), expected.begin(), expected.end());
      if (place != found.end() || other != expected.end()) {
        return "rank " + std::to_string(rank) + ", step " + std::to_string(step) + ", index " +
               std::to_string(place - found.begin());
      }
    }
  }
  return {};
}

struct training {
  std::string algorithm = "ok_topk(density=0.05)";
  oktopk::detail::error_feedback_options feedback{};
  std::optional<oktopk::detail::direction_options>
      directions{};                ///< shapes of one tensor by its key, or of buckets' tensors
  std::vector<double> densities{}; ///< of each step; empty: the text's
  double scale = 1;                ///< of the values, and of the averages
};

constexpr std::int64_t length = 1500;

template <class Value>
results<Value> by_library(training const& how, int ranks) {
  auto all = room<Value>(ranks);
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator const& comm) {
    auto allreduce =
        oktopk::make_allreduce<Value>(host(), comm, how.algorithm, {.length = length, .k = {}, .density = 0.01});
    oktopk::direction_feedback<any_of<Value>> feedback(host(), allreduce, how.feedback, how.directions);
    for (int step = 0; step < steps; ++step) {
      auto values = gradient<Value>(length, comm.rank(), step);
      if (!how.densities.empty()) {
        allreduce.set_k(oktopk::detail::entries_at(how.densities[static_cast<std::size_t>(step)], length));
      }
      host_values<Value> const view(values.data(), values.size());
      feedback.average(feedback(view), view);
      host().fence();
      for (Value& each : values) {
        each *= static_cast<Value>(how.scale);
      }
      all[static_cast<std::size_t>(comm.rank())][static_cast<std::size_t>(step)] = values;
    }
  });
  return all;
}

oktopk_engine_averager_options options_of(training const& how, std::int32_t sums) {
  auto options = averager_of(how.algorithm.c_str(), sums);
  options.momentum = how.feedback.momentum;
  options.nesterov = how.feedback.nesterov ? 1 : 0;
  options.factor_masking = how.feedback.factor_masking ? 1 : 0;
  options.clip_norm = how.feedback.clip_norm;
  options.residual_decay = how.feedback.residual_decay;
  if (how.directions) {
    options.directions = 1;
    options.beta2 = how.directions->beta2;
    options.epsilon = how.directions->epsilon;
  }
  return options;
}

template <class Value>
results<Value> by_engine(training const& how, int ranks, group_change const& change = {}) {
  auto all = room<Value>(ranks);
  auto const train = [&](oktopk_engine_group* group) {
    int const rank = oktopk_engine_group_rank(group);
    auto const averager = made_on(group, options_of(how, element<Value>));
    for (int step = 0; step < steps; ++step) {
      auto values = gradient<Value>(length, rank, step);
      for (Value& each : values) {
        each *= static_cast<Value>(how.scale);
      }
      auto arrival = arrival_of(values, "weights");
      arrival.loss_scale = how.scale;
      if (how.directions) {
        auto const& shape = how.directions->shapes.front();
        arrival.dimensions = shape.data();
        arrival.dimension_count = static_cast<std::int32_t>(shape.size());
      }
      if (!how.densities.empty()) {
        arrival.has_density = 1;
        arrival.density = how.densities[static_cast<std::size_t>(step)];
      }
      must(oktopk_engine_average(averager.get(), &arrival));
      all[static_cast<std::size_t>(rank)][static_cast<std::size_t>(step)] = values;
    }
  };
  std::string const fault = fault_on(ranks, train, change);
  REQUIRE(fault == "");
  return all;
}

std::vector<training> const& trainings() {
  static std::vector<training> const all{
      {},
      {.algorithm = "topk_a(density=0.1, format=packed)"},
      {.algorithm = "ring"}, // dense takes the communicator's own sums
      {.feedback = {.momentum = 0.9}},
      {.feedback = {.momentum = 0.9, .nesterov = true}},
      {.feedback = {.momentum = 0.5, .factor_masking = false}},
      {.feedback = {.clip_norm = 5, .residual_decay = 0.75}},
      {.algorithm = "ok_topk", .densities = {1, 0.5, 0.1, 0.02}},
      {.algorithm = "ok_topk(density=0.05, format=packed)", .feedback = {.momentum = 0.9}, .scale = 1024},
      {.feedback = {.clip_norm = 5, .residual_decay = 0.75},
       .directions = oktopk::detail::direction_options{.beta2 = 0.9, .shapes = {{30, 10, 5}}},
       .scale = 64},
  };
  return all;
}

template <class Value>
void expect_same_bits(int ranks) {
  for (training const& each : trainings()) {
    INFO(each.algorithm << " on " << ranks << " ranks");
    CHECK(difference(by_engine<Value>(each, ranks), by_library<Value>(each, ranks)) == "");
  }
}

// Three tensors, of which the last two share a bucket.
std::vector<std::int64_t> const lengths{400, 90, 610};
std::vector<std::int32_t> const first_bucket{2, 1};
std::vector<std::int32_t> const second_bucket{0};
char const* const names[] = {"a", "b", "c"};
oktopk::detail::tensor_shapes const shapes{{20, 20}, {90}, {61, 5, 2}};
std::vector<std::int64_t> const dimensions{20, 20, 90, 61, 5, 2}; // the same for C
std::vector<std::int32_t> const dimension_counts{2, 1, 3};

oktopk_engine_averager_options buckets_of(training const& how, std::int32_t sums) {
  auto options = options_of(how, sums);
  options.tensor_count = std::ssize(lengths);
  options.lengths = lengths.data();
  options.names = names;
  options.dimensions = dimensions.data();
  options.dimension_counts = dimension_counts.data();
  return options;
}

/// The gradients of both buckets, one after the other: of the tensors 2, 1, 0.
template <class Value>
std::vector<Value> engine_step(oktopk_engine_averager* averager, int rank, int step,
                               std::vector<int> const& used = {}) {
  auto values = gradient<Value>(1100, rank, step);
  auto first = std::vector<Value>(values.begin(), values.begin() + 700);
  auto second = std::vector<Value>(values.begin() + 700, values.end());
  std::vector<std::int32_t> const used_first{used.empty() ? 1 : used[2], used.empty() ? 1 : used[1]};
  std::vector<std::int32_t> const used_second{used.empty() ? 1 : used[0]};
  auto one = arrival_of(first, first_bucket);
  auto two = arrival_of(second, second_bucket);
  one.is_last = 0;
  two.is_first = 0;
  one.used = used.empty() ? nullptr : used_first.data();
  two.used = used.empty() ? nullptr : used_second.data();
  must(oktopk_engine_arrive(averager, &one));
  must(oktopk_engine_average(averager, &two));
  std::copy(first.begin(), first.end(), values.begin());
  std::copy(second.begin(), second.end(), values.begin() + 700);
  return values;
}

template <class Value>
std::pair<results<Value>, std::vector<std::string>> buckets_by_library(training const& how, int ranks,
                                                                       int withheld_in = -1) {
  auto all = room<Value>(ranks);
  std::vector<std::string> states(static_cast<std::size_t>(ranks));
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator const& comm) {
    std::int64_t const bytes = 700 * std::int64_t(sizeof(Value));
    oktopk::bucketed<any_of<Value>> buckets(
        host(), comm, lengths,
        [&](oktopk::bucket const& of) {
          return oktopk::make_allreduce<Value>(host(), comm, how.algorithm,
                                               {.length = of.length, .k = {}, .density = 0.01});
        },
        {.plan = {.bucket_bytes = bytes, .order = {2, 1, 0}}, .feedback = how.feedback, .directions = how.directions});
    REQUIRE(buckets.plan().buckets.size() == 2);
    auto const rank = static_cast<std::size_t>(comm.rank());
    for (int step = 0; step < steps; ++step) {
      auto values = gradient<Value>(1100, comm.rank(), step);
      auto from = values.begin();
      for (int const tensor : {2, 1, 0}) {
        auto const to = buckets.gradient(tensor);
        std::copy_n(from, to.extent(0), to.data());
        from += static_cast<std::ptrdiff_t>(to.extent(0));
        if (step == withheld_in && tensor == 1) {
          buckets.withhold(tensor);
        } else {
          buckets.ready(tensor);
        }
      }
      buckets.wait();
      from = values.begin();
      for (int const tensor : {2, 1, 0}) {
        auto const of = buckets.gradient(tensor);
        if (step != withheld_in || tensor != 1) { // there the engine leaves what was given
          std::copy_n(of.data(), of.extent(0), from);
        }
        from += static_cast<std::ptrdiff_t>(of.extent(0));
      }
      all[rank][static_cast<std::size_t>(step)] = values;
    }
    std::ostringstream file;
    oktopk::save(file, buckets.state());
    states[rank] = file.str();
  });
  return {all, states};
}

template <class Value>
std::pair<results<Value>, std::vector<std::string>> buckets_by_engine(training const& how, int ranks,
                                                                      int unused_in = -1) {
  auto all = room<Value>(ranks);
  std::vector<std::string> states(static_cast<std::size_t>(ranks));
  std::string const fault = fault_on(ranks, [&](oktopk_engine_group* group) {
    int const rank = oktopk_engine_group_rank(group);
    auto const averager = made_on(group, buckets_of(how, element<Value>));
    for (int step = 0; step < steps; ++step) {
      // The first rank uses tensors 0 and 2 alone, the others all: so tensor 1 is averaged, but for one step.
      std::vector<int> const used{1, step == unused_in ? 0 : rank == 0 && ranks > 1 ? 0 : 1, 1};
      all[static_cast<std::size_t>(rank)][static_cast<std::size_t>(step)] =
          engine_step<Value>(averager.get(), rank, step, unused_in < 0 ? std::vector<int>{} : used);
    }
    auto const bytes = saved(averager.get());
    states[static_cast<std::size_t>(rank)] = std::string(bytes.begin(), bytes.end());
  });
  REQUIRE(fault == "");
  return {all, states};
}

template <class Value>
void expect_same_buckets(training const& how, int ranks, int left_out_in = -1) {
  auto const expected = buckets_by_library<Value>(how, ranks, left_out_in);
  auto const found = buckets_by_engine<Value>(how, ranks, left_out_in);
  CHECK(difference(found.first, expected.first) == "");
  CHECK((found.second == expected.second));
}

oktopk_engine_loading loading_of(std::vector<oktopk_engine_bytes> const& states) {
  oktopk_engine_loading loading;
  oktopk_engine_loading_defaults(&loading);
  loading.states = states.data();
  loading.state_count = std::ssize(states);
  loading.keys = names;
  loading.key_count = 3;
  return loading;
}

oktopk_engine_bytes bytes_of(std::vector<char> const& state) {
  return {state.data(), state.size()};
}

} // namespace

TEST_CASE("averages by key have the bits of the library's error feedback") {
  int const ranks = GENERATE(1, 2, 3);
  expect_same_bits<float>(ranks);
  expect_same_bits<double>(ranks);
}

TEST_CASE("buckets have the bits, and the saved bytes, of the library's") {
  int const ranks = GENERATE(1, 2, 3);
  expect_same_buckets<float>({.feedback = {.momentum = 0.9, .clip_norm = 3}}, ranks);
  expect_same_buckets<double>({.algorithm = "topk_a(density=0.1)"}, ranks);
  oktopk::detail::direction_options const directions{.beta2 = 0.9, .epsilon = 1e-6, .shapes = shapes};
  expect_same_buckets<float>({.feedback = {.clip_norm = 3}, .directions = directions}, ranks);
  expect_same_buckets<double>({.directions = directions}, ranks, 2);
}

TEST_CASE("a tensor that no rank uses keeps its values and its residual") {
  expect_same_buckets<float>({}, 2, 2);
  expect_same_buckets<double>({.feedback = {.momentum = 0.9}}, 3, 1);
}

TEST_CASE("calls of several keys are a step that fails, and is undone, together") {
  CHECK(fault_on(2, [](oktopk_engine_group* group) {
          auto const averager = made_on(group, averager_of("topk_a(density=0.5)"));
          auto const other = made_on(group, averager_of("topk_a(density=0.5)"));
          std::vector<float> a{1, 2, 3, 4};
          std::vector<float> b{5, 6, 7, 8};
          auto one = arrival_of(a, "a");
          auto two = arrival_of(b, "b");
          two.continues = 1;
          must(oktopk_engine_average(averager.get(), &one));
          double before = 0;
          must(oktopk_engine_residual_norm(averager.get(), &before));
          if (oktopk_engine_group_rank(group) == 1) {
            b[3] = std::numeric_limits<float>::quiet_NaN();
          }
          two.zero_on_error = 1;
          std::int32_t const code = oktopk_engine_average(averager.get(), &two);
          std::string const sentence = oktopk_engine_last_error();
          double after = 1;
          must(oktopk_engine_residual_norm(averager.get(), &after));
          if (code != OKTOPK_ENGINE_NON_FINITE ||
              sentence != "oktopk: rank 1: the value at index 3 is not finite: index 3 of b" || before <= 0 ||
              after != 0 || b != std::vector<float>(4)) {
            throw std::runtime_error(std::to_string(code) + " " + sentence + " " + std::to_string(after));
          }
          must(oktopk_engine_average(other.get(), &one)); // and the group goes on
        }) == "");
}

TEST_CASE("a step with values that are not finite is skipped where the averager says so") {
  auto const [gives, expected] =
      GENERATE(std::pair(OKTOPK_ENGINE_GIVES_ZEROS, 0.0F),
               std::pair(OKTOPK_ENGINE_GIVES_INFINITIES, std::numeric_limits<float>::infinity()));
  CHECK(fault_on(2, [gives = gives, expected = expected](oktopk_engine_group* group) {
          auto options = averager_of("topk_a(density=0.5)");
          options.on_non_finite = gives;
          auto const averager = made_on(group, options);
          std::vector<float> values{1, 2, 3, 4};
          if (oktopk_engine_group_rank(group) == 0) {
            values[0] = std::numeric_limits<float>::infinity();
          }
          auto const arrival = arrival_of(values, "a");
          must(oktopk_engine_average(averager.get(), &arrival));
          oktopk_engine_figures last;
          last.struct_size = sizeof(last);
          must(oktopk_engine_last_step(averager.get(), &last));
          if (values != std::vector<float>(4, expected) || last.was_skipped != 1 || last.skipped != 1 ||
              last.steps != 1) {
            throw std::runtime_error("not skipped");
          }
        }) == "");
}

TEST_CASE("values of 16 bits are summed in float, and narrowed") {
  CHECK(fault_on(2, [](oktopk_engine_group* group) {
          auto const averager = made_on(group, averager_of("dense"));
          bool const is_first = oktopk_engine_group_rank(group) == 0;
          // binary16: 1 and 3, 1 + 2^-10 and 1, 65504 both; the second average is a tie, which goes to even
          std::vector<std::uint16_t> half = is_first ? std::vector<std::uint16_t>{0x3c00, 0x3c01, 0x7bff, 0x0001}
                                                     : std::vector<std::uint16_t>{0x4200, 0x3c00, 0x7bff, 0x0003};
          auto arrival = arrival_of(half, "half");
          must(oktopk_engine_average(averager.get(), &arrival));
          if (half != std::vector<std::uint16_t>{0x4000, 0x3c00, 0x7bff, 0x0002}) {
            throw std::runtime_error("binary16");
          }
          std::vector<std::uint16_t> brain =
              is_first ? std::vector<std::uint16_t>{0x3f80, 0x3f81} : std::vector<std::uint16_t>{0x4040, 0x3f82};
          arrival = arrival_of(brain, "brain");
          arrival.element = OKTOPK_ENGINE_BFLOAT16;
          must(oktopk_engine_average(averager.get(), &arrival));
          if (brain != std::vector<std::uint16_t>{0x4000, 0x3f82}) {
            throw std::runtime_error("bfloat16");
          }
        }) == "");
}

TEST_CASE("a state that is loaded goes on to the bit") {
  training const how{.feedback = {.momentum = 0.9}};
  auto const whole = buckets_by_engine<float>(how, 2);
  std::map<int, std::vector<char>> states;
  std::mutex mutex;
  CHECK(fault_on(2, [&](oktopk_engine_group* group) {
          int const rank = oktopk_engine_group_rank(group);
          auto const averager = made_on(group, buckets_of(how, OKTOPK_ENGINE_FLOAT32));
          for (int step = 0; step < 2; ++step) {
            engine_step<float>(averager.get(), rank, step);
          }
          std::scoped_lock const lock(mutex);
          states[rank] = saved(averager.get());
        }) == "");
  auto all = room<float>(2);
  CHECK(fault_on(2, [&](oktopk_engine_group* group) {
          int const rank = oktopk_engine_group_rank(group);
          auto const averager = made_on(group, buckets_of(how, OKTOPK_ENGINE_FLOAT32));
          std::vector<oktopk_engine_bytes> const state{bytes_of(states.at(rank))};
          auto const loading = loading_of(state);
          must(oktopk_engine_load(averager.get(), &loading));
          for (int step = 2; step < steps; ++step) {
            all[static_cast<std::size_t>(rank)][static_cast<std::size_t>(step)] =
                engine_step<float>(averager.get(), rank, step);
          }
        }) == "");
  for (std::size_t rank = 0; rank < 2; ++rank) {
    std::copy_n(whole.first[rank].begin(), 2, all[rank].begin());
  }
  CHECK(difference(all, whole.first) == "");
  // A state of the other rank is refused on both, and one that is cut short.
  auto const twice = heard_on(2, [&](oktopk_engine_group* group) {
    auto const averager = made_on(group, buckets_of(how, OKTOPK_ENGINE_FLOAT32));
    std::vector<oktopk_engine_bytes> const state{bytes_of(states.at(0))};
    auto loading = loading_of(state);
    loading.has_share = 1;
    loading.share = 1;
    loading.saved_by = 0;
    must(oktopk_engine_load(averager.get(), &loading));
  });
  CHECK(unlike(twice, OKTOPK_ENGINE_BAD_STATE,
               "oktopk_engine: load: rank 0 and rank 1 both have the saved state of rank 0") == "");
  auto const cut = heard_on(2, [&](oktopk_engine_group* group) {
    auto const averager = made_on(group, buckets_of(how, OKTOPK_ENGINE_FLOAT32));
    std::vector<oktopk_engine_bytes> state{bytes_of(states.at(oktopk_engine_group_rank(group)))};
    state[0].size -= oktopk_engine_group_rank(group) == 1 ? std::size_t(8) : 0;
    auto const loading = loading_of(state);
    must(oktopk_engine_load(averager.get(), &loading));
  });
  CHECK(unlike(cut, OKTOPK_ENGINE_BAD_STATE, "rank 1: ") == "");
}

TEST_CASE("another number of ranks takes the residuals, and none is lost") {
  training const how{.algorithm = "topk_a(density=0.1)"};
  auto const states = buckets_by_engine<float>(how, 3).second;
  std::vector<double> sum(1100);
  for (std::string const& each : states) {
    using state = oktopk::detail::bucketed_state<float, typename any_of<float>::state_type>;
    std::istringstream file(each);
    auto const residual = oktopk::load<state>(file).residual;
    std::transform(residual.begin(), residual.end(), sum.begin(), sum.begin(), std::plus<>());
  }
  CHECK(fault_on(2, [&](oktopk_engine_group* group) {
          auto const rank = static_cast<std::size_t>(oktopk_engine_group_rank(group));
          auto const averager = made_on(group, buckets_of(how, OKTOPK_ENGINE_FLOAT32));
          std::vector<oktopk_engine_bytes> mine; // ranks 0 and 2, or 1
          for (std::size_t of = rank; of < 3; of += 2) {
            mine.push_back({states[of].data(), states[of].size()});
          }
          auto loading = loading_of(mine);
          loading.has_share = 1;
          loading.share = 2.0 / 3;
          must(oktopk_engine_load(averager.get(), &loading));
          must(oktopk_engine_set_density(averager.get(), 1));
          // The residuals of the tensors 2, 1, 0 come out whole. The buckets are those of the state: all end with the step.
          std::vector<float> first(700);
          std::vector<float> second(400);
          auto one = arrival_of(first, first_bucket);
          auto two = arrival_of(second, second_bucket);
          one.is_last = 0;
          two.is_first = 0;
          must(oktopk_engine_arrive(averager.get(), &one));
          must(oktopk_engine_average(averager.get(), &two));
          std::vector<float> values(second);
          values.insert(values.end(), first.begin() + 610, first.end());
          values.insert(values.end(), first.begin(), first.begin() + 610);
          for (std::size_t i = 0; i < values.size(); ++i) {
            if (std::abs(static_cast<double>(values[i]) - sum[i] / 3) > 1e-5) {
              throw std::runtime_error("the value at " + std::to_string(i));
            }
          }
        }) == "");
}

TEST_CASE("a state is taken in part, with the density that was set") {
  auto const state = buckets_by_engine<double>({}, 1).second[0];
  using saved_state = oktopk::detail::bucketed_state<double, typename any_of<double>::state_type>;
  std::istringstream file(state);
  auto const residual = oktopk::load<saved_state>(file).residual;
  CHECK(fault_on(1, [&](oktopk_engine_group* group) {
          std::vector<std::int64_t> const of_other_model{5, 90};
          char const* const other_names[] = {"new", "b"};
          auto options = averager_of("topk_a(density=0.01)", OKTOPK_ENGINE_FLOAT64);
          options.tensor_count = 2;
          options.lengths = of_other_model.data();
          options.names = other_names;
          auto const averager = made_on(group, options);
          std::vector<oktopk_engine_bytes> const bytes{{state.data(), state.size()}};
          auto loading = loading_of(bytes);
          loading.in_part = 1;
          loading.has_density = 1;
          loading.density = 1;
          must(oktopk_engine_load(averager.get(), &loading));
          std::vector<double> values(95);
          std::vector<std::int32_t> const tensors{1, 0};
          auto const arrival = arrival_of(values, tensors);
          must(oktopk_engine_average(averager.get(), &arrival));
          std::vector<double> expected(residual.begin() + 400, residual.begin() + 490);
          expected.resize(95);
          if (bits(values) != bits(expected) || std::count(values.begin(), values.begin() + 90, 0) == 90) {
            throw std::runtime_error("other residuals");
          }
        }) == "");
}

TEST_CASE("a residual follows the values of its tensor to another order") {
  CHECK(fault_on(1, [](oktopk_engine_group* group) {
          std::int64_t const four = 4;
          char const* const name = "w";
          auto options = averager_of("topk_a(density=0.5)");
          options.tensor_count = 1;
          options.lengths = &four;
          options.names = &name;
          auto const averager = made_on(group, options);
          std::vector<std::int32_t> const tensors{0};
          std::vector<float> values{1, -2, 3, -4};
          auto arrival = arrival_of(values, tensors);
          must(oktopk_engine_average(averager.get(), &arrival)); // 1 and -2 are left
          std::vector<std::int64_t> from{3, 2, 1, 0};
          oktopk_engine_reordering const reordering{0, from.data()};
          arrival.reordered = &reordering;
          arrival.reordered_count = 1;
          values = {0, 0, 0, 0};
          must(oktopk_engine_average(averager.get(), &arrival));
          if (values != std::vector<float>{0, 0, -2, 1}) {
            throw std::runtime_error("another order");
          }
          from[0] = 2;
          if (oktopk_engine_average(averager.get(), &arrival) != OKTOPK_ENGINE_OPTION_OUT_OF_RANGE ||
              std::string(oktopk_engine_last_error()).find("are no permutation") == std::string::npos) {
            throw std::runtime_error(oktopk_engine_last_error());
          }
        }) == "");
}

TEST_CASE("a step that is undone leaves no trace") {
  auto const run = [](bool undoes) {
    auto all = room<float>(2);
    CHECK(fault_on(2, [&](oktopk_engine_group* group) {
            int const rank = oktopk_engine_group_rank(group);
            auto const averager = made_on(group, averager_of("topk_a(density=0.05)"));
            for (int step = 0; step < steps; ++step) {
              auto values = gradient<float>(length, rank, 10 + step);
              auto arrival = arrival_of(values, "w");
              if (undoes && step == 2) {
                auto thrown_away = values;
                auto const other = arrival_of(thrown_away, "w");
                must(oktopk_engine_average(averager.get(), &other));
                must(oktopk_engine_undo(averager.get()));
              }
              must(oktopk_engine_average(averager.get(), &arrival));
              all[static_cast<std::size_t>(rank)][static_cast<std::size_t>(step)] = values;
            }
          }) == "");
    return all;
  };
  CHECK(difference(run(true), run(false)) == "");
  auto const nothing = heard_on(2, [](oktopk_engine_group* group) {
    auto const averager = made_on(group, averager_of("topk_a"));
    must(oktopk_engine_undo(averager.get()));
  });
  CHECK(unlike(nothing, OKTOPK_ENGINE_BAD_STATE, "there is no step to take back") == "");
}

TEST_CASE("one rank alone saves what undo would go back to") {
  auto const expect = [](bool holds, char const* what) {
    if (!holds) {
      throw std::runtime_error(what);
    }
  };
  CHECK(fault_on(2, [&](oktopk_engine_group* group) {
          bool const is_first = oktopk_engine_group_rank(group) == 0; // the other one takes no part
          auto const averager = made_on(group, averager_of("topk_a(density=0.05)"));
          auto const step = [&](int seed) {
            auto values = gradient<float>(length, is_first ? 0 : 1, seed);
            auto const arrival = arrival_of(values, "w");
            must(oktopk_engine_average(averager.get(), &arrival));
          };
          auto const before_step = [&] { return saved(averager.get(), oktopk_engine_save_before_step); };
          auto const fresh = saved(averager.get());
          expect(before_step() == fresh, "before the first step");
          step(1);
          step(2);
          auto const after = saved(averager.get());
          auto const before = is_first ? before_step() : after;
          expect(saved(averager.get()) == after, "all is as it was");
          must(oktopk_engine_undo(averager.get()));
          if (is_first) {
            expect(before != after && before == saved(averager.get()) && before == before_step(), "after undo");
          }
        }) == "");
}

TEST_CASE("what is wrong on one rank is an error on all, with one sentence") {
  auto const average = [](auto const& change) {
    return heard_on(3, [&](oktopk_engine_group* group) {
      int const rank = oktopk_engine_group_rank(group);
      auto const averager = made_on(group, averager_of("topk_a(density=0.5)"));
      std::vector<float> values(10, 1);
      auto arrival = arrival_of(values, "w");
      must(oktopk_engine_average(averager.get(), &arrival));
      arrival = arrival_of(values, "w");
      change(rank, arrival, values);
      must(oktopk_engine_average(averager.get(), &arrival));
    });
  };
  using values = std::vector<float>;
  CHECK(unlike(average([](int rank, auto&, values& of) { of[7] = rank == 1 ? NAN : 1; }), OKTOPK_ENGINE_NON_FINITE,
               "rank 1: the value at index 7 is not finite: index 7 of w") == "");
  CHECK(unlike(average([](int rank, auto& to, values&) { to.length = rank == 2 ? 9 : 10; }),
               OKTOPK_ENGINE_OPTION_OUT_OF_RANGE,
               "rank 2: the tensor of key 'w' has 9 values, and had 10 before") == "");
  CHECK(unlike(average([](int rank, auto& to, values&) { to.key = rank == 0 ? "w" : "v"; }),
               OKTOPK_ENGINE_RANKS_DISAGREE, "rank 0 has call = key 'w', rank 1 has call = key 'v'") == "");
  CHECK(unlike(average([](int rank, auto& to, values&) { to.fault = rank == 1 ? "no gradient" : nullptr; }),
               OKTOPK_ENGINE_OPTION_OUT_OF_RANGE, "rank 1: no gradient") == "");
  CHECK(unlike(average([](int rank, auto& to, values&) { to.element = rank == 1 ? 4 : 0; }),
               OKTOPK_ENGINE_OPTION_OUT_OF_RANGE, "rank 1: there is no type of values 4") == "");
  CHECK(unlike(average([](int rank, auto& to, values&) { to.key = rank == 1 ? nullptr : "w"; }),
               OKTOPK_ENGINE_OPTION_OUT_OF_RANGE, "rank 1: a call by key has no key") == "");
  CHECK(unlike(average([](int, auto& to, values&) {
                 to.has_density = 1;
                 to.density = 1.5;
               }),
               OKTOPK_ENGINE_DENSITY_OUT_OF_RANGE, "1.5") == "");
  CHECK(unlike(average([](int rank, auto& to, values&) { to.loss_scale = rank == 1 ? 0 : 1; }),
               OKTOPK_ENGINE_OPTION_OUT_OF_RANGE, "rank 1: loss_scale = 0") == "");

  auto const make = [](auto const& change) {
    return heard_on(2, [&](oktopk_engine_group* group) {
      auto options = averager_of("topk_a");
      change(oktopk_engine_group_rank(group), options);
      made_on(group, options);
    });
  };
  CHECK(unlike(make([](int, auto& to) { to.algorithm = "topk_b"; }), OKTOPK_ENGINE_OPTION_OUT_OF_RANGE, "topk_b") ==
        "");
  CHECK(unlike(make([](int rank, auto& to) { to.algorithm = rank == 0 ? "topk_a" : "gtopk"; }),
               OKTOPK_ENGINE_RANKS_DISAGREE, "rank 0 has algorithm = topk_a, rank 1 has algorithm = gtopk") == "");
  CHECK(unlike(make([](int rank, auto& to) { to.momentum = rank == 1 ? 1 : 0; }), OKTOPK_ENGINE_OPTION_OUT_OF_RANGE,
               "rank 1: the momentum 1") == "");
  CHECK(unlike(make([](int rank, auto& to) { to.on_non_finite = rank == 1 ? 3 : 0; }),
               OKTOPK_ENGINE_OPTION_OUT_OF_RANGE, "rank 1: on_non_finite = 3") == "");
  CHECK(unlike(make([](int rank, auto& to) { to.fault = rank == 1 ? "it has no parameters" : nullptr; }),
               OKTOPK_ENGINE_OPTION_OUT_OF_RANGE, "rank 1: it has no parameters") == "");

  training const by_directions{.directions = oktopk::detail::direction_options{}}; // whose text the options point to
  auto const of_directions = [&](auto const& change) {
    return heard_on(2, [&](oktopk_engine_group* group) {
      auto options = buckets_of(by_directions, OKTOPK_ENGINE_FLOAT32);
      change(oktopk_engine_group_rank(group), options);
      made_on(group, options);
    });
  };
  constexpr auto out = OKTOPK_ENGINE_OPTION_OUT_OF_RANGE;
  CHECK(unlike(of_directions([](int rank, auto& to) { to.beta2 = rank == 1 ? 1 : 0.9; }), out, "rank 1: beta2 = 1.0") ==
        "");
  CHECK(unlike(of_directions([](int, auto& to) { to.momentum = 0.9; }), out, "so they take no momentum") == "");
  std::vector<std::int32_t> const fewer{2, 1, 2};
  CHECK(unlike(of_directions(
                   [&](int rank, auto& to) { to.dimension_counts = rank == 1 ? fewer.data() : to.dimension_counts; }),
               out, "rank 1: the dimensions of a tensor of 610 values") == "");
  CHECK(unlike(
            of_directions([&](int rank, auto& to) { to.dimension_counts = rank == 1 ? nullptr : to.dimension_counts; }),
            out, "dimensions and dimension_counts are given together") == "");
  CHECK(unlike(of_directions([](int rank, auto& to) { to.directions = rank == 0 ? 1 : 0; }),
               OKTOPK_ENGINE_RANKS_DISAGREE, "directions") == "");

  auto const bucket = heard_on(2, [&](oktopk_engine_group* group) {
    auto const averager = made_on(group, buckets_of({}, OKTOPK_ENGINE_FLOAT32));
    std::vector<float> given(oktopk_engine_group_rank(group) == 1 ? 699 : 700);
    auto const arrival = arrival_of(given, first_bucket);
    must(oktopk_engine_average(averager.get(), &arrival));
  });
  CHECK(unlike(bucket, OKTOPK_ENGINE_OPTION_OUT_OF_RANGE, "rank 1: there are 699 values for tensors of 700") == "");
}

TEST_CASE("a call that this rank alone can judge fails at once") {
  std::int32_t const wrong = OKTOPK_ENGINE_OPTION_OUT_OF_RANGE;
  CHECK(oktopk_engine_group_make(nullptr, nullptr) == wrong);
  CHECK(std::string(oktopk_engine_last_error()) == "oktopk: oktopk_engine_group_make: the options are a null pointer");
  CHECK(oktopk_engine_undo(nullptr) == wrong);
  CHECK(oktopk_engine_group_rank(nullptr) == -1);
  oktopk_engine_group* group = nullptr;
  auto options = group_of(0, 1, "alone");
  options.struct_size += 8;
  CHECK(oktopk_engine_group_make(&options, &group) == wrong);
  CHECK(std::string(oktopk_engine_last_error()).find("set struct_size") != std::string::npos);
  options = group_of(3, 3, "alone");
  CHECK(oktopk_engine_group_make(&options, &group) == wrong);
  CHECK(group == nullptr);
  CHECK(fault_on(1, [](oktopk_engine_group* alone) {
          auto const averager = made_on(alone, buckets_of({}, OKTOPK_ENGINE_FLOAT32));
          std::vector<float> values(90);
          auto const tried = [&](std::vector<std::int32_t> const& tensors, char const* words) {
            auto const arrival = arrival_of(values, tensors);
            if (oktopk_engine_average(averager.get(), &arrival) != OKTOPK_ENGINE_OPTION_OUT_OF_RANGE ||
                std::string(oktopk_engine_last_error()).find(words) == std::string::npos) {
              throw std::runtime_error(oktopk_engine_last_error());
            }
          };
          tried({3}, "there is no tensor 3 among 3");
          tried({1, 1}, "tensor 1 is twice in a call");
          tried({}, "a call names no tensor");
          auto open = arrival_of(values, "w");
          open.is_last = 0;
          if (oktopk_engine_average(averager.get(), &open) == OKTOPK_ENGINE_OK) {
            throw std::runtime_error("waits for a step that is not at its end");
          }
        }) == "");
  // Of a header that is older, with fewer members.
  oktopk_engine_figures figures;
  figures.struct_size = offsetof(oktopk_engine_figures, was_skipped);
  figures.ranks = 77;
  CHECK(fault_on(1, [&](oktopk_engine_group* alone) {
          auto const averager = made_on(alone, averager_of("dense"));
          must(oktopk_engine_last_step(averager.get(), &figures));
        }) == "");
  CHECK((figures.ranks == 77 && figures.steps == 0));
}

TEST_CASE("a callback hears of the end on a thread of the group, and cannot wait there") {
  struct told {
    oktopk_engine_averager* on;
    std::thread::id thread;
    std::int32_t code = -1;
    std::string sentence;
    std::int32_t waited = -1;
  };
  CHECK(fault_on(2, [](oktopk_engine_group* group) {
          auto const averager = made_on(group, averager_of("topk_a(density=0.5)"));
          for (bool const fails : {false, true}) {
            std::vector<float> values{1, 2};
            auto arrival = arrival_of(values, "a");
            values[0] = fails && oktopk_engine_group_rank(group) == 1 ? NAN : 1;
            told heard{averager.get(), {}, -1, {}, -1};
            arrival.user = &heard;
            arrival.done = [](void* user, std::int32_t code, char const* sentence) {
              auto& to = *static_cast<told*>(user);
              to.thread = std::this_thread::get_id();
              to.code = code;
              to.sentence = sentence;
              to.waited = oktopk_engine_wait(to.on);
            };
            must(oktopk_engine_arrive(averager.get(), &arrival));
            must(oktopk_engine_wait(averager.get()));
            if (heard.thread == std::this_thread::get_id() || heard.waited != OKTOPK_ENGINE_BAD_STATE ||
                heard.code != (fails ? OKTOPK_ENGINE_NON_FINITE : OKTOPK_ENGINE_OK) ||
                heard.sentence != (fails ? "oktopk: rank 1: the value at index 0 is not finite: index 0 of a" : "")) {
              throw std::runtime_error(std::to_string(heard.code) + " " + heard.sentence);
            }
          }
        }) == "");
}

TEST_CASE("a callback that takes its time holds up no sum") {
  CHECK(fault_on(2, [](oktopk_engine_group* group) {
          auto const averager = made_on(group, averager_of("topk_a(density=0.5)"));
          std::promise<void> is_summed;
          auto summed = is_summed.get_future();
          std::vector<float> first{1, 2};
          std::vector<float> second{3, 4};
          auto held = arrival_of(first, "a");
          held.user = &summed;
          held.done = [](void* user, std::int32_t, char const*) { static_cast<std::future<void>*>(user)->wait(); };
          auto const other = arrival_of(second, "b");
          must(oktopk_engine_arrive(averager.get(), &held));
          must(oktopk_engine_average(averager.get(), &other));
          is_summed.set_value();
          must(oktopk_engine_wait(averager.get()));
        }) == "");
}

TEST_CASE("an averager that is freed in the middle of a step tells its calls") {
  std::atomic<int> code{-1};
  CHECK(fault_on(1, [&](oktopk_engine_group* group) {
          auto options = averager_of("topk_a(density=0.5)");
          options.on_non_finite = OKTOPK_ENGINE_GIVES_ZEROS; // which holds averages back until the end of the step
          std::vector<float> values{1, 2};
          auto arrival = arrival_of(values, "a");
          arrival.is_last = 0;
          arrival.user = &code;
          arrival.done = [](void* user, std::int32_t heard, char const*) {
            *static_cast<std::atomic<int>*>(user) = heard;
          };
          auto averager = made_on(group, options);
          must(oktopk_engine_arrive(averager.get(), &arrival));
          must(oktopk_engine_wait(averager.get()));
          CHECK(code == -1);
          averager.reset();
          auto const behind = made_on(group, options);
          must(oktopk_engine_wait(behind.get()));
          CHECK(code == OKTOPK_ENGINE_LENGTH_MISMATCH);
        }) == "");
}

TEST_CASE("a rank that gives up, or does not come, is named by the others") {
  for (bool const in_a_call : {false, true}) {
    std::atomic<bool> is_over{false};
    auto const aborted = heard_on(
        3,
        [&](oktopk_engine_group* group) {
          auto const averager = made_on(group, averager_of("topk_a(density=0.5)"));
          std::vector<float> values_of_rank{1, 2};
          auto const arrival = arrival_of(values_of_rank, "a");
          int const rank = oktopk_engine_group_rank(group);
          if (rank == 0) {
            std::int32_t const code = oktopk_engine_average(averager.get(), &arrival);
            is_over = true;
            must(code);
          } else if (rank == 1) {
            if (in_a_call) {
              must(oktopk_engine_arrive(averager.get(), &arrival));
              std::this_thread::sleep_for(std::chrono::milliseconds(200));
            }
            must(oktopk_engine_group_abort(group, "the data are at an end"));
            must(oktopk_engine_wait(averager.get()));
          } else { // never comes
            while (!is_over) {
              std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
          }
        },
        30);
    CHECK(aborted[1].first == OKTOPK_ENGINE_OK);
    CHECK(aborted[0].first == OKTOPK_ENGINE_ABANDONED);
    CHECK(aborted[0].second.find("rank 1 has given up") != std::string::npos);
    CHECK(aborted[0].second.find("the data are at an end") != std::string::npos);
  }
  std::atomic<bool> is_over{false};
  auto const late = heard_on(2, [&](oktopk_engine_group* group) {
    must(oktopk_engine_group_set_time_limit(group, 0.2));
    auto const averager = made_on(group, averager_of("topk_a(density=0.5)"));
    std::vector<float> values{1, 2};
    auto const arrival = arrival_of(values, "a");
    if (oktopk_engine_group_rank(group) == 1) {
      while (!is_over) {
        std::this_thread::yield();
      }
      return;
    }
    std::int32_t const code = oktopk_engine_average(averager.get(), &arrival);
    is_over = true;
    must(code);
  });
  CHECK(late[0].first == OKTOPK_ENGINE_TIMED_OUT);
  CHECK(late[0].second.find("from rank 1 (control)") != std::string::npos);
  CHECK(late[0].second.find("calls of oktopk_engine are collective") != std::string::npos);
}

TEST_CASE("a process that was forked gets an error, and ends") {
  must(oktopk_engine_initialize());
  pid_t const child = fork();
  if (child == 0) {
    oktopk_engine_group* group = nullptr;
    auto const options = group_of(0, 1, "forked");
    bool const told =
        oktopk_engine_group_make(&options, &group) == OKTOPK_ENGINE_BAD_STATE &&
        std::string(oktopk_engine_last_error()).find("before this process was forked") != std::string::npos;
    _exit(told ? 0 : 1);
  }
  int status = 1;
  CHECK((waitpid(child, &status, 0) == child && status == 0));
}

namespace {

/// A store of the program.
struct store {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> values;

  static std::int32_t set(void* of, char const* key, void const* bytes, std::size_t size) {
    auto& self = *static_cast<store*>(of);
    std::scoped_lock const lock(self.mutex);
    self.values[key] = std::string(static_cast<char const*>(bytes), size);
    self.changed.notify_all();
    return 0;
  }

  static std::int64_t get(void* of, char const* key, void* bytes, std::size_t capacity) {
    auto& self = *static_cast<store*>(of);
    std::unique_lock lock(self.mutex);
    if (!self.changed.wait_for(lock, std::chrono::seconds(30), [&] { return self.values.contains(key); })) {
      return -1;
    }
    std::string const& found = self.values[key];
    std::copy_n(found.begin(), std::min(found.size(), capacity), static_cast<char*>(bytes));
    return std::ssize(found);
  }
};

} // namespace

TEST_CASE("ranks meet by a store of the program as they do in a folder") {
  training const how{.feedback = {.momentum = 0.9}};
  store values;
  auto const by_store = [&](oktopk_engine_group_options& options) {
    options.folder = nullptr;
    options.store = &values;
    options.set = &store::set;
    options.get = &store::get;
  };
  CHECK(difference(by_engine<float>(how, 3, by_store), by_library<float>(how, 3)) == "");
  CHECK(!values.values.empty());
  CHECK(unlike(heard_on(
                   2, [](oktopk_engine_group*) {}, 1,
                   [](oktopk_engine_group_options& options) { options.folder = nullptr; }),
               OKTOPK_ENGINE_OPTION_OUT_OF_RANGE, "ranks meet in a folder, or by") == "");
}

TEST_CASE("figures, schemes, names and algorithms") {
  CHECK(oktopk_engine_abi() == OKTOPK_ENGINE_ABI);
  CHECK(std::string(oktopk_engine_version()) == oktopk::version());
  for (int code = 0; code < 22; ++code) {
    CHECK(std::string(oktopk_engine_fault_name(code)) == name(static_cast<oktopk::fault>(code)));
  }
  CHECK(OKTOPK_ENGINE_SIZE_MISMATCH == static_cast<int>(oktopk::fault::size_mismatch));
  std::vector<std::string> algorithms;
  must(oktopk_engine_algorithms(
      [](void* to, char const* each, char const*) { static_cast<std::vector<std::string>*>(to)->push_back(each); },
      &algorithms));
  CHECK(algorithms.size() == oktopk::list_allreduces().size());
  CHECK(fault_on(2, [](oktopk_engine_group* group) {
          auto const averager = made_on(group, averager_of("topk_a(density=0.1)"));
          std::vector<float> values(100, 1);
          std::vector<float> others(50, 1);
          auto const one = arrival_of(values, "one");
          auto two = arrival_of(others, "two");
          two.continues = 1;
          must(oktopk_engine_average(averager.get(), &one));
          must(oktopk_engine_average(averager.get(), &two));
          oktopk_engine_figures last;
          last.struct_size = sizeof(last);
          must(oktopk_engine_last_step(averager.get(), &last));
          double words = 0;
          must(oktopk_engine_words_sent(averager.get(), &words));
          std::string all;
          must(oktopk_engine_tensors(
              averager.get(),
              [](void* to, char const* each, std::int64_t of) {
                *static_cast<std::string*>(to) += std::string(each) + " " + std::to_string(of) + "\n";
              },
              &all));
          must(oktopk_engine_schemes(
              averager.get(),
              [](void* to, char const* each) { *static_cast<std::string*>(to) += std::string(each) + "\n"; }, &all));
          std::string const text = "topk_a(density=0.1), which is topk_a: ";
          if (all != "one 100\ntwo 50\n" + text + "10 of 100 values\n" + text + "5 of 50 values\n" || last.steps != 2 ||
              last.buckets != 2 || last.values != 150 || last.selected != 15 || last.ranks != 2 ||
              last.step_values != 50 || last.words <= 0 || words < last.words || last.seconds <= 0) {
            throw std::runtime_error(all);
          }
        }) == "");
}
