// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "simulate/checked_subjects.hpp"

#include "fuzz/state_of.hpp"
#include "fuzz/subjects.hpp"
#include "simulate/story.hpp"

#include <oktopk/comm/collectives.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#ifdef OKTOPK_TESTS_WITH_XXHASH
#include <oktopk/allreduce.hpp>
#include <oktopk/comm/checked.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/format/coo_or_dense.hpp>
#endif

namespace oktopk_simulate {

namespace {

using oktopk_fuzz::options;
using oktopk_fuzz::subject;

#ifdef OKTOPK_TESTS_WITH_XXHASH

using execution = Kokkos::DefaultHostExecutionSpace;
using sealed = oktopk::checked<oktopk::in_process_communicator>;
using communicator = oktopk::counted<sealed>;

// An algorithm over sealed messages, called with accumulators.
template <class Algorithm>
class checked_participant final : public oktopk_fuzz::participant<float>, public meets_by_itself {
public:
  checked_participant(oktopk::in_process_communicator comm, options const& how)
      : comm_(sealed(comm)), algorithm_(execution(), comm_, oktopk_fuzz::as<typename Algorithm::options>(how)) {}

  void meet() override { oktopk::barrier_all_to_all(comm_); }

  std::int64_t k() const override { return algorithm_.k(); }

  void call(std::vector<float> const& input, std::vector<float>&, call_record<float>& out) override {
    out.input = input;
    Kokkos::View<float*, Kokkos::HostSpace> const accumulator("input", input.size());
    std::copy(input.begin(), input.end(), accumulator.data());
    comm_.reset();
    out.said = oktopk_tests::outcome_of([&] { write_down(algorithm_(accumulator), out); });
    out.input_changed = !oktopk_fuzz::same_bits(
        std::vector<float>(accumulator.data(), accumulator.data() + accumulator.extent(0)), input);
    for (int p = 0; p < oktopk::phase_count; ++p) {
      out.traffic[static_cast<std::size_t>(p)] = comm_.of_phase(static_cast<oktopk::phase>(p));
    }
    out.statistics = algorithm_.last_call();
    out.bound_words = algorithm_.bound_words();
  }

  void set_learning_rate(double) override {}
  oktopk_fuzz::state_numbers<float> state() const override {
    return oktopk_fuzz::numbers_of<float>(algorithm_.state());
  }

  void restore(oktopk_fuzz::state_numbers<float> const& numbers) override {
    auto state = algorithm_.state();
    oktopk_fuzz::put_numbers(numbers, state);
    algorithm_.restore(state);
  }

  // Nobody saves these.
  std::string save() const override { return {}; }
  oktopk_fuzz::state_numbers<float> load(std::string const&) override { return state(); }
  void restore_loaded() override {}

private:
  static void write_down(typename Algorithm::update_type const& update, call_record<float>& out) {
    for (std::size_t i = 0; i < update.indices().extent(0); ++i) {
      out.update.push_back(static_cast<std::int64_t>(update.indices()(i)), update.values()(i));
    }
    for (std::size_t i = 0; i < update.contributed().extent(0); ++i) {
      out.contributed.push_back(static_cast<std::int64_t>(update.contributed()(i)));
    }
    for (std::int64_t i = 0; i < update.returned().size(); ++i) {
      out.returned.push_back(static_cast<std::int64_t>(update.returned().indices(i)), update.returned().values(i));
    }
  }

  communicator comm_;
  Algorithm algorithm_;
};

// The same facts as over a communicator that is not checked.
template <class Algorithm>
subject<float> checked_one(std::string const& name) {
  for (auto const& each : oktopk_fuzz::subjects<float>()) {
    if (each.about.name == name) {
      subject<float> made = each;
      made.make = [](oktopk::in_process_communicator comm, bool, options const& how, way,
                     double) -> std::unique_ptr<oktopk_fuzz::participant<float>> {
        return std::make_unique<checked_participant<Algorithm>>(comm, how);
      };
      return made;
    }
  }
  throw std::invalid_argument("there is no subject " + name);
}

std::vector<subject<float>> const& all_checked() {
  using namespace oktopk;
  using C = communicator;
  using E = execution;
  using entry = coo<float, std::int32_t>;
  using mixed = coo_or_dense<float, std::int32_t>;
  static std::vector<subject<float>> const all = {
      checked_one<ok_topk<E, C, entry, exact, exact, evened>>("ok_topk.f32_i32.exact.exact.evened"),
      checked_one<ok_topk<E, C, entry, reused_threshold, reused_threshold, evened>>(
          "ok_topk.f32_i32.reused.reused.evened"),
      checked_one<ok_topk<E, C, entry, exact, exact, oktopk::balanced>>("ok_topk.f32_i32.exact.exact.balanced"),
      checked_one<topk_a<E, C, entry, exact>>("topk_a.f32_i32.exact"),
      checked_one<topk_dsa<E, C, mixed, exact>>("topk_dsa.f32_i32_or_dense.exact"),
      checked_one<gtopk<E, C, entry, exact>>("gtopk.f32_i32.exact"),
      checked_one<dense_ring<E, C, float, std::int32_t>>("dense.ring.f32"),
  };
  return all;
}

#else

std::vector<subject<float>> const& all_checked() {
  static std::vector<subject<float>> const none;
  return none;
}

#endif

} // namespace

std::vector<oktopk_fuzz::facts> const& checked_facts() {
  static auto const all = [] {
    std::vector<oktopk_fuzz::facts> facts_of_all;
    for (auto const& each : all_checked()) {
      facts_of_all.push_back(each.about);
    }
    return facts_of_all;
  }();
  return all;
}

subject<float> const& checked_subject(std::string const& name) {
  for (auto const& each : all_checked()) {
    if (each.about.name == name) {
      return each;
    }
  }
  throw std::invalid_argument("there is no checked subject " + name);
}

} // namespace oktopk_simulate
