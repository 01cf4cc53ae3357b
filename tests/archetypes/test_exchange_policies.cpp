// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Partitioner, schedule and gather: each part of what is asked of them is asked for. tests/extending runs ok_topk with these
// models.

#include "archetypes/suite.hpp"
#include "extending/aligned.hpp"
#include "extending/backwards.hpp"
#include "extending/without_balance.hpp"

#include <oktopk/comm/in_process.hpp>
#include <oktopk/format/coo.hpp>

using namespace oktopk_tests;
using ranks_type = oktopk::in_process_communicator;

namespace {

using host_indices = oktopk::array_ref<std::int32_t const, host_memory>;

using archetype_partitioner = strict<aligned>;

template <class P>
inline constexpr bool is_partitioner = oktopk::partitioner<P, host_execution, ranks_type>;
template <class P>
inline constexpr bool only_undescribed =
    !oktopk::detail::has_partitioner_options<P> && oktopk::detail::partitions_for<P, host_execution, ranks_type> &&
    !is_partitioner<P>;
template <class P>
inline constexpr bool only_idle = oktopk::detail::has_partitioner_options<P> &&
                                  !oktopk::detail::partitions_for<P, host_execution, ranks_type> && !is_partitioner<P>;

static_assert(is_partitioner<archetype_partitioner>);

// One defect each.
DEFECT(only_undescribed, partitioner_without_options, archetype_partitioner, using options = void);
struct partitioner_not_made_from_options : archetype_partitioner {
  partitioner_not_made_from_options();
};
DEFECT(only_undescribed, partitioner_without_describe, archetype_partitioner, void describe() = delete);
DEFECT(only_undescribed, partitioner_without_fault, archetype_partitioner, void problem() = delete);
DEFECT(only_undescribed, partitioner_without_due, archetype_partitioner, void due() = delete);
DEFECT(only_undescribed, partitioner_without_bound, archetype_partitioner, void bound_words() = delete);
DEFECT(only_undescribed, partitioner_due_at_some_time, archetype_partitioner, std::int64_t due(std::int64_t) const);
DEFECT(only_idle, partitioner_without_step, archetype_partitioner, using step = void);
struct partitioner_whose_step_is_not_made_from_it : archetype_partitioner {
  using archetype_partitioner::archetype_partitioner;
  template <class E, class Comm>
  struct step : archetype_partitioner::step<E, Comm> {
    step();
  };
};
struct partitioner_that_answers_nothing : archetype_partitioner {
  using archetype_partitioner::archetype_partitioner;
  template <class E, class Comm>
  struct step : archetype_partitioner::step<E, Comm> {
    using archetype_partitioner::step<E, Comm>::step;
    void run(oktopk::call_context<E, Comm>&, host_indices, bool);
  };
};
struct partitioner_for_others : archetype_partitioner {
  using archetype_partitioner::archetype_partitioner;
  template <class E, class Comm>
  struct step : archetype_partitioner::step<E, Comm> {
    using archetype_partitioner::step<E, Comm>::step;
    std::span<std::int64_t const> run(std::vector<int>&, host_indices, bool);
  };
};
static_assert(only_undescribed<partitioner_not_made_from_options>);
static_assert(only_idle<partitioner_whose_step_is_not_made_from_it>);
static_assert(only_idle<partitioner_that_answers_nothing>);
static_assert(only_idle<partitioner_for_others>);

using archetype_schedule = strict<backwards>;
static_assert(oktopk::schedule<archetype_schedule>);

// One defect each.
template <class T>
inline constexpr bool no_schedule = !oktopk::schedule<T>;
DEFECT(no_schedule, schedule_without_options, archetype_schedule, using options = void);
struct schedule_not_made_from_options : archetype_schedule {
  schedule_not_made_from_options();
};
struct schedule_that_cannot_be_copied : archetype_schedule {
  using archetype_schedule::archetype_schedule;
  schedule_that_cannot_be_copied(schedule_that_cannot_be_copied const&) = delete;
};
DEFECT(no_schedule, schedule_without_destination, archetype_schedule, void destination() = delete);
DEFECT(no_schedule, schedule_without_source, archetype_schedule, void source() = delete);
DEFECT(no_schedule, schedule_with_wide_source, archetype_schedule, std::int64_t source(int, int, int) const);
DEFECT(no_schedule, schedule_without_bucket, archetype_schedule, void bucket() = delete);
DEFECT(no_schedule, schedule_without_describe, archetype_schedule, void describe() = delete);
DEFECT(no_schedule, schedule_without_fault, archetype_schedule, void problem() = delete);
static_assert(!oktopk::schedule<schedule_not_made_from_options>);

using archetype_gather = strict<without_balance>;

template <class G>
inline constexpr bool is_gather = oktopk::gather_policy<G, host_execution, ranks_type, oktopk::coo<>>;
template <class G>
inline constexpr bool only_unoptioned = !oktopk::detail::has_gather_options<G> && !is_gather<G>;
template <class G>
inline constexpr bool only_inactive = oktopk::detail::has_gather_options<G> && !is_gather<G>;

static_assert(is_gather<archetype_gather>);

DEFECT(only_unoptioned, gather_without_options, archetype_gather, using options = void);
struct gather_not_made_from_options : archetype_gather {
  gather_not_made_from_options();
};
DEFECT(only_unoptioned, gather_without_describe, archetype_gather, void describe() = delete);
DEFECT(only_unoptioned, gather_without_fault, archetype_gather, void problem() = delete);
DEFECT(only_inactive, gather_without_step, archetype_gather, template <class, class> struct step);
struct gather_of_entries_alone : archetype_gather {
  using archetype_gather::archetype_gather;
  template <class E, class Comm, class Format>
  struct step {
    step(archetype_gather const&, Format const&);
    template <class... Arguments>
    oktopk::entries_of<Format, E> run(Arguments&&...);
    oktopk::word_bound bound_words(int, std::int64_t, std::int64_t) const;
  };
};
struct gather_without_bound : archetype_gather {
  using archetype_gather::archetype_gather;
  template <class E, class Comm, class Format>
  struct step : archetype_gather::step<E, Comm, Format> {
    using archetype_gather::step<E, Comm, Format>::step;
    void bound_words() = delete;
  };
};
static_assert(only_unoptioned<gather_not_made_from_options>);
static_assert(only_inactive<gather_of_entries_alone>);
static_assert(only_inactive<gather_without_bound>);

} // namespace

TEST_CASE("a schedule that cannot be copied is none, for the exchange keeps a copy") {
  CHECK_FALSE(oktopk::schedule<schedule_that_cannot_be_copied>);
}
