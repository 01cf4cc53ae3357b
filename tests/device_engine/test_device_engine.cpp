// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The engine of a device gives the sums of an exact top-k, in bits, to whoever reads them behind `done`, on any stream.

#include "engine/ranks.hpp"
#include "support/collect.hpp"
#include "support/reference.hpp"

#include <oktopk/catalogue/any_allreduce.hpp>
#include <oktopk/training/bucket_engine.hpp>

#include <cmath>
#include <future>
#include <limits>
#include <memory>
#include <mutex>
#include <random>

namespace {

using namespace oktopk_tests;
using host_state = oktopk::detail::bucketed_state<float, oktopk::detail::any_state>;

constexpr std::int64_t length = 700;
constexpr int steps = 3;

std::vector<float> gradient(int rank, int step) {
  std::mt19937 draw(static_cast<unsigned>(1000 * step + rank));
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(length));
  std::generate(values.begin(), values.end(), [&] { return normal(draw); });
  return values;
}

/// Values on the device. Copies wait for their own stream alone, so one of values that are still to be written shows it.
template <class T>
class device_values {
public:
  explicit device_values(std::vector<T> const& values) {
    std::scoped_lock const lock(mutex);
    view_ = view_type(Kokkos::view_alloc(std::string("test data"), Kokkos::WithoutInitializing), values.size());
    Kokkos::deep_copy(execution(), view_, oktopk::detail::host_view(values));
    execution().fence();
  }
  device_values& operator=(device_values&&) = delete;
  ~device_values() {
    std::scoped_lock const lock(mutex);
    view_ = view_type();
  }

  T* data() const { return view_.data(); }

  std::vector<T> read() const {
    std::scoped_lock const lock(mutex);
    std::vector<T> values(view_.extent(0));
    Kokkos::deep_copy(execution(), oktopk::detail::host_view(values), view_);
    execution().fence();
    return values;
  }

private:
  using view_type = Kokkos::View<T*, memory>;
  inline static std::mutex mutex; // ranks are threads
  view_type view_;
};

template <class T>
oktopk_engine_arrival arrival_of(device_values<T> const& values, std::int64_t count, char const* key) {
  oktopk_engine_arrival arrival;
  oktopk_engine_arrival_defaults(&arrival);
  arrival.values = values.data();
  arrival.length = count;
  arrival.element = element<T>;
  arrival.key = key;
  return arrival;
}

/// What all ranks have after each step.
struct expectation {
  std::vector<std::vector<float>> averages;  ///< by step
  std::vector<std::vector<float>> residuals; ///< by rank, after the last one
};

/// Algorithm 1 without a partition: the k largest of the sums of the k largest; or all of these sums.
expectation expected_of(int ranks, std::int64_t k, bool selects_again, std::vector<std::vector<float>> residuals = {}) {
  expectation all;
  auto const size = static_cast<std::size_t>(length);
  residuals.resize(static_cast<std::size_t>(ranks), std::vector<float>(size));
  for (int step = 0; step < steps; ++step) {
    std::vector<float> sums(size);
    std::vector<sparse_vector<float>> selected;
    for (int rank = 0; rank < ranks; ++rank) {
      auto& residual = residuals[static_cast<std::size_t>(rank)];
      auto const given = gradient(rank, step);
      std::transform(given.begin(), given.end(), residual.begin(), residual.begin(), std::plus<>());
      selected.push_back(top(all_entries(residual), k));
      for (std::size_t i = 0; i < selected.back().indices.size(); ++i) {
        sums[static_cast<std::size_t>(selected.back().indices[i])] += selected.back().values[i];
      }
    }
    std::vector<float> averages(size);
    std::vector<bool> is_taken(size);
    auto const taken = top(all_entries(sums), selects_again ? k : length);
    for (std::size_t i = 0; i < taken.indices.size(); ++i) {
      auto const at = static_cast<std::size_t>(taken.indices[i]);
      averages[at] = taken.values[i] / static_cast<float>(ranks);
      is_taken[at] = true;
    }
    for (std::size_t rank = 0; rank < residuals.size(); ++rank) {
      for (std::int64_t const at : selected[rank].indices) {
        float& left = residuals[rank][static_cast<std::size_t>(at)];
        left = is_taken[static_cast<std::size_t>(at)] ? 0 : left;
      }
    }
    all.averages.push_back(averages);
  }
  all.residuals = residuals;
  return all;
}

/// A step of one call; throws where the averages have other bits.
void expect_average(oktopk_engine_averager* averager, int rank, int step, std::vector<float> const& expected) {
  device_values<float> const values(gradient(rank, step));
  auto const arrival = arrival_of(values, length, "weights");
  must(oktopk_engine_average(averager, &arrival));
  auto const found = values.read();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] != expected[i]) {
      throw std::runtime_error("step " + std::to_string(step) + ", index " + std::to_string(i) + ": " +
                               std::to_string(found[i]) + ", expected " + std::to_string(expected[i]));
    }
  }
}

host_state state_in(std::vector<char> const& bytes) {
  return oktopk::detail::state_of<host_state>(bytes);
}

} // namespace

TEST_CASE("the engine tells its device, and refuses one that is not there") {
#ifdef KOKKOS_ENABLE_HIP
  CHECK(std::string(oktopk_engine_backend()) == "hip");
#else
  CHECK(std::string(oktopk_engine_backend()) == "cuda");
#endif
  CHECK(oktopk_engine_initialize_on(1000) == OKTOPK_ENGINE_OPTION_OUT_OF_RANGE);
  CHECK(std::string(oktopk_engine_last_error()).find("there is no device 1000 of ") != std::string::npos);
  REQUIRE(oktopk_engine_initialize_on(0) == OKTOPK_ENGINE_OK);
  CHECK(oktopk_engine_initialize_on(0) == OKTOPK_ENGINE_OK);
  CHECK(oktopk_engine_initialize_on(-1) == OKTOPK_ENGINE_OPTION_OUT_OF_RANGE);
  std::string names;
  must(oktopk_engine_algorithms(
      [](void* to, char const* name, char const*) { *static_cast<std::string*>(to) += std::string(name) + " "; },
      &names));
  CHECK(names == "ok_topk paper_ok_topk topk_a topk_dsa gtopk gaussian_k dense dense_bfloat16 ring ring_pipelined "
                 "halving_doubling ");
}

TEST_CASE("averages on a device are those of an exact top-k, and the state is the host's") {
  struct scheme {
    char const* text;
    std::int64_t k;
    bool selects_again;
  };
  int const ranks = GENERATE(1, 2);
  auto const of = GENERATE(scheme{"ok_topk(density=0.1)", 70, true}, scheme{"topk_a(density=0.1)", 70, false},
                           scheme{"dense", length, false});
  INFO(of.text << " on " << ranks << " ranks");
  auto const expected = expected_of(ranks, of.k, of.selects_again);
  CHECK(fault_on(ranks, [&](oktopk_engine_group* group) {
          int const rank = oktopk_engine_group_rank(group);
          auto const averager = made_on(group, averager_of(of.text));
          for (int step = 0; step < steps; ++step) {
            expect_average(averager.get(), rank, step, expected.averages[static_cast<std::size_t>(step)]);
          }
          auto const state = state_in(saved(averager.get()));
          if (state.residual != expected.residuals[static_cast<std::size_t>(rank)]) {
            throw std::runtime_error("another residual");
          }
        }) == "");
}

TEST_CASE("a state of the host goes on here, and one from here to the bit") {
  std::vector<std::vector<float>> const residuals{gradient(7, 7), gradient(8, 8)};
  auto const expected = expected_of(2, 70, true, residuals);
  CHECK(fault_on(2, [&](oktopk_engine_group* group) {
          int const rank = oktopk_engine_group_rank(group);
          host_state begun;
          begun.lengths = {length};
          begun.residual = residuals[static_cast<std::size_t>(rank)];
          std::vector<char> state = oktopk::detail::checkpoint_of(begun);
          for (int step = 0; step < steps; ++step) {
            auto const averager = made_on(group, averager_of("ok_topk(density=0.1)"));
            char const* const key = "weights";
            oktopk_engine_bytes const bytes{state.data(), state.size()};
            oktopk_engine_loading loading;
            oktopk_engine_loading_defaults(&loading);
            loading.states = &bytes;
            loading.state_count = 1;
            loading.keys = &key;
            loading.key_count = 1;
            must(oktopk_engine_load(averager.get(), &loading));
            expect_average(averager.get(), rank, step, expected.averages[static_cast<std::size_t>(step)]);
            state = saved(averager.get());
          }
        }) == "");
}

TEST_CASE("whoever hears of the end reads the averages, of 16 bits and with a scale, too") {
  // Values of float16. They lie on the device until the end: to free memory would wait for all streams.
  std::vector<std::uint16_t> const given[] = {{0x3800, 0xbc00, 0x3e00, 0}, {0x3e00, 0xc200, 0x4480, 0}};
  std::vector<std::uint16_t> const averages{0x3c00, 0xc000, 0x4200, 0};
  CHECK(fault_on(2, [&](oktopk_engine_group* group) {
          auto const averager = made_on(group, averager_of("dense"));
          std::vector<std::unique_ptr<device_values<std::uint16_t>>> kept;
          for (int step = 0; step < 4; ++step) {
            kept.push_back(std::make_unique<device_values<std::uint16_t>>(given[oktopk_engine_group_rank(group)]));
            auto arrival = arrival_of(*kept.back(), 4, "halves");
            arrival.loss_scale = 4;
            std::promise<std::vector<std::uint16_t>> end;
            struct listener {
              std::promise<std::vector<std::uint16_t>>* end;
              device_values<std::uint16_t> const* values;
            } heard{&end, kept.back().get()};
            arrival.user = &heard;
            arrival.done = [](void* user, std::int32_t, char const*) {
              auto const& of = *static_cast<listener*>(user);
              of.end->set_value(of.values->read());
            };
            must(oktopk_engine_arrive(averager.get(), &arrival));
            if (auto const found = end.get_future().get(); found != averages) {
              throw std::runtime_error("step " + std::to_string(step) + ": " + std::to_string(found[0]) + " " +
                                       std::to_string(found[1]) + " " + std::to_string(found[2]));
            }
          }
        }) == "");
}

TEST_CASE("what is wrong on one rank of devices is an error on all, or a step that is skipped") {
  auto const spoilt = [](int rank) {
    auto values = gradient(rank, 0);
    values[5] = rank == 1 ? std::numeric_limits<float>::infinity() : values[5];
    return values;
  };
  CHECK(unlike(heard_on(2,
                        [&](oktopk_engine_group* group) {
                          int const rank = oktopk_engine_group_rank(group);
                          auto const averager = made_on(group, averager_of("ok_topk(density=0.1)"));
                          device_values<float> const values(spoilt(rank));
                          auto arrival = arrival_of(values, length, "weights");
                          arrival.zero_on_error = 1;
                          std::int32_t const code = oktopk_engine_average(averager.get(), &arrival);
                          std::string const sentence = oktopk_engine_last_error();
                          auto const found = values.read();
                          if (std::any_of(found.begin(), found.end(), [](float each) { return each != 0; })) {
                            throw std::runtime_error("not all are zeros");
                          }
                          expect_average(averager.get(), rank, 0, expected_of(2, 70, true).averages[0]);
                          throw engine_error(code, sentence);
                        }),
               OKTOPK_ENGINE_NON_FINITE, "rank 1: the value at index 5 is not finite: index 5 of weights") == "");
  CHECK(fault_on(2, [&](oktopk_engine_group* group) {
          auto options = averager_of("ok_topk(density=0.1)");
          options.on_non_finite = OKTOPK_ENGINE_GIVES_INFINITIES;
          auto const averager = made_on(group, options);
          device_values<float> const values(spoilt(oktopk_engine_group_rank(group)));
          auto const arrival = arrival_of(values, length, "weights");
          must(oktopk_engine_average(averager.get(), &arrival));
          auto const found = values.read();
          if (std::any_of(found.begin(), found.end(), [](float each) { return std::isfinite(each); })) {
            throw std::runtime_error("not all are infinite");
          }
        }) == "");
  CHECK(unlike(heard_on(2,
                        [](oktopk_engine_group* group) {
                          int const rank = oktopk_engine_group_rank(group);
                          auto const averager = made_on(group, averager_of("dense"));
                          std::vector<float> on_host(static_cast<std::size_t>(length));
                          device_values<float> const values(on_host);
                          auto arrival = arrival_of(values, length, "weights");
                          arrival.values = rank == 1 ? on_host.data() : arrival.values;
                          arrival.zero_on_error = 1;
                          must(oktopk_engine_average(averager.get(), &arrival));
                        }),
               OKTOPK_ENGINE_OPTION_OUT_OF_RANGE, "rank 1: the values lie in memory of the host") == "");
  for (char const* const text : {"automatic", "ring_chunked"}) {
    CHECK(unlike(heard_on(2, [text](oktopk_engine_group* group) { made_on(group, averager_of(text)); }),
                 OKTOPK_ENGINE_OPTION_OUT_OF_RANGE, "; there are ok_topk, paper_ok_topk, topk_a") == "");
  }
  CHECK(unlike(heard_on(
                   1, [](oktopk_engine_group* group) { made_on(group, averager_of("dense", OKTOPK_ENGINE_FLOAT64)); }),
               OKTOPK_ENGINE_OPTION_OUT_OF_RANGE, "sums on a device are of float32") == "");
}

TEST_CASE("steps in the buckets of a saved state copy between buckets on the device") {
  std::vector<std::int64_t> const lengths{300, 400};
  char const* const names[] = {"a", "b"};
  auto const step_in = [](oktopk_engine_averager* averager, int rank, int step, std::vector<std::int32_t> const& order,
                          bool in_one) {
    auto const given = gradient(rank, step);
    std::vector<std::vector<float>> parts{{given.begin(), given.begin() + 300}, {given.begin() + 300, given.end()}};
    auto const& first = parts[static_cast<std::size_t>(order[0])];
    auto const& second = parts[static_cast<std::size_t>(order[1])];
    std::vector<float> all = first;
    all.insert(all.end(), second.begin(), second.end());
    device_values<float> const together(all);
    auto arrival = arrival_of(together, length, nullptr);
    arrival.tensors = order.data();
    arrival.tensor_count = 2;
    if (!in_one) {
      auto behind = arrival;
      arrival.length = std::ssize(first);
      behind.length = std::ssize(second);
      behind.values = together.data() + arrival.length;
      arrival.tensor_count = behind.tensor_count = 1;
      behind.tensors = order.data() + 1;
      arrival.is_last = behind.is_first = 0;
      must(oktopk_engine_arrive(averager, &arrival));
      must(oktopk_engine_average(averager, &behind));
    } else {
      must(oktopk_engine_average(averager, &arrival));
    }
    auto found = together.read();
    if (order[0] == 1) {
      std::rotate(found.begin(), found.begin() + 400, found.end());
    }
    return found;
  };
  CHECK(fault_on(2, [&](oktopk_engine_group* group) {
          int const rank = oktopk_engine_group_rank(group);
          auto options = averager_of("ok_topk(density=0.1)");
          options.tensor_count = 2;
          options.names = names;
          options.lengths = lengths.data();
          auto const straight = made_on(group, options);
          auto const goes_on = made_on(group, options);
          step_in(straight.get(), rank, 0, {1, 0}, true);
          auto const state = saved(straight.get());
          oktopk_engine_bytes const bytes{state.data(), state.size()};
          oktopk_engine_loading loading;
          oktopk_engine_loading_defaults(&loading);
          loading.states = &bytes;
          loading.state_count = 1;
          loading.keys = names;
          loading.key_count = 2;
          must(oktopk_engine_load(goes_on.get(), &loading));
          auto const expected = step_in(straight.get(), rank, 1, {1, 0}, true);
          if (step_in(goes_on.get(), rank, 1, {0, 1}, false) != expected) {
            throw std::runtime_error("other averages in other buckets");
          }
          if (saved(straight.get()) != saved(goes_on.get())) {
            throw std::runtime_error("other states");
          }
        }) == "");
}
