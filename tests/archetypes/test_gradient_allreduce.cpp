// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The concept `gradient_allreduce`: what it asks for is enough for sgd, and each part of it is asked for.

#include "archetypes/suite.hpp"

#include <oktopk/comm/in_process.hpp>
#include <oktopk/sgd.hpp>

using namespace oktopk_tests;

namespace {

using accumulator_type = Kokkos::View<double const*, host_memory>;

// Reduces nothing: what it is asked for is seen when it is compiled.
class archetype {
public:
  using execution_space = host_execution;
  using communicator_type = oktopk::in_process_communicator;
  using value_type = double;
  using index_type = std::int64_t;
  using update_type = oktopk::sparse_update<std::int64_t, double, host_memory>;
  struct state_type {
    std::int64_t iteration = 0;
  };

  explicit archetype(communicator_type comm) : comm_(comm) {}
  archetype(archetype const&) = delete;
  archetype& operator=(archetype const&) = delete;

  std::int64_t length() const { return 0; }
  std::int64_t k() const { return 0; }
  char const* name() const { return "archetype"; }
  double bound_words() const { return 0; }
  oktopk::call_statistics const& last_call() const { return statistics_; }
  execution_space const& execution() const { return exec_; }
  communicator_type& comm() { return comm_; }
  state_type const& state() const { return state_; }
  void restore(state_type const& saved) { state_ = saved; }
  update_type const& operator()(accumulator_type const&) { return update_; }
  void fail(oktopk::detail::fault_report const& why) { throw why.as_error(name(), comm_.rank(), length()); }

private:
  execution_space exec_;
  communicator_type comm_;
  state_type state_;
  oktopk::call_statistics statistics_;
  update_type update_;
};

static_assert(oktopk::gradient_allreduce<archetype>);

// One defect each, of one part each.
template <class A>
inline constexpr bool only_untyped =
    !oktopk::detail::names_allreduce_types<A> && oktopk::detail::saves_its_state<A> && !oktopk::gradient_allreduce<A>;
template <class A>
inline constexpr bool only_undescribed =
    oktopk::detail::names_allreduce_types<A> && !oktopk::detail::describes_itself<A> &&
    oktopk::detail::saves_its_state<A> && oktopk::detail::reduces_accumulators<A> && !oktopk::gradient_allreduce<A>;
template <class A>
inline constexpr bool only_forgetful = oktopk::detail::describes_itself<A> && !oktopk::detail::saves_its_state<A> &&
                                       oktopk::detail::reduces_accumulators<A> && !oktopk::gradient_allreduce<A>;
template <class A>
inline constexpr bool only_idle = oktopk::detail::describes_itself<A> && oktopk::detail::saves_its_state<A> &&
                                  !oktopk::detail::reduces_accumulators<A> && !oktopk::gradient_allreduce<A>;

DEFECT(only_untyped, runs_nowhere, archetype, using execution_space = host_memory);
DEFECT(only_untyped, talks_to_nobody, archetype, using communicator_type = int);
DEFECT(only_untyped, sums_integers, archetype, using value_type = std::int64_t);
DEFECT(only_untyped, indexes_by_floats, archetype, using index_type = float);

DEFECT(only_undescribed, length_is_narrow, archetype, int length() const);
DEFECT(only_undescribed, without_k, archetype, void k() = delete);
DEFECT(only_undescribed, without_name, archetype, void name() = delete);
DEFECT(only_undescribed, name_is_number, archetype, int name() const);
DEFECT(only_undescribed, without_bound, archetype, void bound_words() = delete);
DEFECT(only_undescribed, bound_is_integer, archetype, std::int64_t bound_words() const);
DEFECT(only_undescribed, last_call_is_copied, archetype, oktopk::call_statistics last_call() const);
DEFECT(only_undescribed, without_execution, archetype, void execution() = delete);
DEFECT(only_undescribed, execution_is_copied, archetype, execution_space execution() const);
DEFECT(only_undescribed, comm_is_fixed, archetype, communicator_type const& comm());

struct state_cannot_be_copied : archetype {
  struct state_type {
    state_type(state_type const&) = delete;
  };
};
DEFECT(only_forgetful, state_is_another, archetype, int state() const);
DEFECT(only_forgetful, without_restore, archetype, void restore() = delete);
DEFECT(only_forgetful, restore_answers, archetype, bool restore(state_type const&));
static_assert(!oktopk::detail::names_allreduce_types<state_cannot_be_copied> &&
              !oktopk::gradient_allreduce<state_cannot_be_copied>);

DEFECT(only_idle, without_call, archetype, void operator()() = delete);
DEFECT(only_idle, takes_other_values, archetype,
       update_type const& operator()(Kokkos::View<float const*, host_memory> const&));
DEFECT(only_idle, wants_to_write, archetype, update_type const& operator()(Kokkos::View<double*, host_memory> const&));
DEFECT(only_idle, update_is_copied, archetype, update_type operator()(accumulator_type const&));

template <class A>
inline constexpr bool only_silent =
    oktopk::detail::reduces_accumulators<A> && !oktopk::detail::reports_faults<A> && !oktopk::gradient_allreduce<A>;
DEFECT(only_silent, without_fail, archetype, void fail() = delete);
DEFECT(only_silent, fail_answers, archetype, bool fail(oktopk::detail::fault_report const&));

struct update_is_number : archetype {
  using update_type = int;
  int const& operator()(accumulator_type const&);
};

// sgd asks for no more. What it does is tried in tests/sgd and, over every algorithm, in tests/fuzz.
[[maybe_unused]] void use_in_sgd(archetype& allreduce, Kokkos::View<double*, host_memory> const& vector) {
  oktopk::sgd<archetype> optimizer(host_execution(), allreduce, {.learning_rate = 0.5});
  optimizer.before_allreduce([](accumulator_type const&) {});
  optimizer.step(vector, vector);
  optimizer.restore(optimizer.state());
}

} // namespace

TEST_CASE("what has no entries is no update") {
  CHECK_FALSE(oktopk::gradient_allreduce<update_is_number>);
}
