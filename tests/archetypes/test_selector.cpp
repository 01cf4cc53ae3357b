// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The concepts `selector` and `selection_group`: each part of them is asked for, and what `selection_group` asks for is
// enough. tests/extending runs ok_topk and sgd with this selector.

#include "archetypes/suite.hpp"
#include "extending/at_least_one.hpp"

#include <oktopk/select/exact.hpp>

using namespace oktopk_tests;

namespace {

using archetype = strict<at_least_one>;

static_assert(oktopk::selector<archetype>);

template <class Context>
using selection_of =
    oktopk::selection<typename Context::index_type, typename Context::value_type, typename Context::memory_space>;

// One defect each, of one part each.
template <class S>
inline constexpr bool only_undescribed =
    !oktopk::detail::has_selector_options<S> && oktopk::detail::bounds_its_selection<S> && !oktopk::selector<S>;
template <class S>
inline constexpr bool only_unbounded =
    oktopk::detail::has_selector_options<S> && !oktopk::detail::bounds_its_selection<S> &&
    oktopk::detail::selects_on<S, host_execution> && !oktopk::selector<S>;
template <class S>
inline constexpr bool only_idle = oktopk::detail::has_selector_options<S> && oktopk::detail::bounds_its_selection<S> &&
                                  !oktopk::detail::selects_on<S, host_execution> && !oktopk::selector<S>;
template <class S>
inline constexpr bool only_unsound =
    oktopk::detail::has_selector_options<S> && oktopk::detail::bounds_its_selection<S> &&
    !oktopk::detail::carries_state<S> && oktopk::detail::selects_on<S, host_execution> && !oktopk::selector<S>;

template <class S>
inline constexpr bool only_of_its_own =
    oktopk::detail::has_selector_options<S> && oktopk::detail::selects_on<S, host_execution> &&
    !oktopk::detail::derives_from_selector_base<S> && !oktopk::selector<S>;
DEFECT(only_of_its_own, gathers_some_candidates, archetype, static int gathers_candidates());

DEFECT(only_undescribed, without_options, archetype, using options = void);
struct options_cannot_be_copied : archetype {
  struct options {
    options(options const&) = delete;
  };
  explicit options_cannot_be_copied(options const&);
};
struct not_made_from_options : archetype {
  not_made_from_options();
};
struct uncopyable : archetype {
  using archetype::archetype;
  uncopyable(uncopyable const&) = delete;
};
DEFECT(only_undescribed, without_name, archetype, void name() = delete);
DEFECT(only_undescribed, without_describe, archetype, void describe() = delete);
DEFECT(only_undescribed, without_fault, archetype, void problem() = delete);
static_assert(only_undescribed<options_cannot_be_copied>);
static_assert(only_undescribed<not_made_from_options>);

DEFECT(only_unbounded, without_bounded, archetype, void bounded() = delete);
DEFECT(only_unbounded, bounded_by_number, archetype, int bounded() const);
DEFECT(only_unbounded, without_capacity, archetype, void capacity() = delete);
DEFECT(only_unbounded, capacity_is_narrow, archetype, int capacity(std::int64_t, std::int64_t) const);

template <class S>
inline constexpr bool only_silent =
    oktopk::detail::bounds_its_selection<S> && !oktopk::detail::states_promises<S> && !oktopk::selector<S>;
DEFECT(only_silent, without_promises, archetype, void promises() = delete);
DEFECT(only_silent, promises_a_number, archetype, double promises() const);

DEFECT(only_idle, without_state, archetype, template <class Value, class Unexpected> struct state);
// `select` of the archetype takes its own state, so these have a `select` of their own.
template <class State>
struct with_state : archetype {
  using archetype::archetype;
  template <class>
  using state = State;
  template <class Context, class Source>
  selection_of<Context> select(Context const&, Source const&, State&) const;
};
struct never_sound {
  void list_facts(oktopk::agreement&) const;
};
struct sound_by_number {
  int is_sound(std::int64_t) const;
  void list_facts(oktopk::agreement&) const;
};
struct without_facts {
  bool is_sound(std::int64_t) const;
};
struct state_cannot_be_copied {
  state_cannot_be_copied(state_cannot_be_copied const&) = delete;
  bool is_sound(std::int64_t) const;
  void list_facts(oktopk::agreement&) const;
};
static_assert(only_unsound<with_state<without_facts>>);
static_assert(only_unsound<with_state<never_sound>>);
static_assert(only_unsound<with_state<sound_by_number>>);
static_assert(only_unsound<with_state<state_cannot_be_copied>>);

DEFECT(only_idle, without_select, archetype, void select() = delete);
DEFECT(only_idle, select_tells_a_count, archetype,
       template <class... Arguments> std::int64_t select(Arguments&&...) const);
DEFECT(only_idle, select_changes_itself, archetype,
       template <class Context, class... Arguments> selection_of<Context> select(Context const&, Arguments&&...));

struct selects_from_memory_only : archetype {
  using archetype::archetype;
  template <class Context>
  selection_of<Context> select(Context const&,
                               oktopk::detail::candidates<typename Context::index_type, typename Context::value_type,
                                                          typename Context::memory_space>,
                               state<typename Context::value_type>&) const;
};

// A group that writes down what it is asked, and answers for one rank.
class archetype_group {
public:
  static constexpr bool alone = false;
  void sum(std::span<std::int64_t> counts) { summed_ += static_cast<std::int64_t>(counts.size()); }
  int rank() const { return 0; }
  std::int64_t affordable_row(std::int64_t) { return 3; }
  std::span<std::int64_t> gather_rows(std::span<std::int64_t const> row) {
    rows_.assign(row.begin(), row.end());
    return rows_;
  }
  std::span<std::int64_t const> adopt_counts(std::span<std::int64_t const> rows, std::size_t) {
    return gather_counts(rows.front());
  }
  std::span<std::int64_t const> gather_counts(std::int64_t count) {
    count_ = count;
    return {&count_, 1};
  }
  int kth_digit_bits(std::int64_t, int) { return 4; }

  std::int64_t summed() const { return summed_; }
  std::int64_t count() const { return count_; }

private:
  std::int64_t summed_ = 0;
  std::int64_t count_ = -1;
  std::vector<std::int64_t> rows_;
};

static_assert(oktopk::selection_group<archetype_group>);
template <class T>
inline constexpr bool no_selection_group = !oktopk::selection_group<T>;
DEFECT(no_selection_group, without_sum, archetype_group, void sum() = delete);
DEFECT(no_selection_group, sum_gives_a_number, archetype_group, int sum(std::span<std::int64_t>));
DEFECT(no_selection_group, without_rank, archetype_group, void rank() = delete);
DEFECT(no_selection_group, without_affordable_row, archetype_group, void affordable_row() = delete);
struct without_rows : archetype_group {
  void gather_rows() = delete;
};
DEFECT(no_selection_group, without_adopted_counts, archetype_group, void adopt_counts() = delete);
// One rank alone needs none of these three.
struct alone_without_rows : without_rows {
  static constexpr bool alone = true;
};
static_assert(oktopk::selection_group<alone_without_rows>);
DEFECT(no_selection_group, without_counts, archetype_group, void gather_counts() = delete);
DEFECT(no_selection_group, gathers_one_number, archetype_group, std::int64_t gather_counts(std::int64_t));
DEFECT(no_selection_group, without_digits, archetype_group, void kth_digit_bits() = delete);
DEFECT(no_selection_group, without_alone, archetype_group, void alone());
DEFECT(no_selection_group, digits_are_wide, archetype_group, std::int64_t kth_digit_bits(std::int64_t, int));
static_assert(!oktopk::selection_group<without_rows>);

} // namespace

TEST_CASE("a selector that cannot be copied is none, for the algorithms keep copies") {
  CHECK_FALSE(oktopk::selector<uncopyable>);
}

TEST_CASE("a selector that takes no accumulator in the making is none, for sgd hands those over") {
  CHECK_FALSE(oktopk::selector<selects_from_memory_only>);
}

TEST_CASE("selectors run in a group that has what the concept asks for and nothing else") {
  constexpr std::int64_t length = 500;
  auto const accumulator = seeded_whole_numbers<float>(length, 0);
  using workspace_type = oktopk::detail::selection_workspace<std::int32_t, float, host_execution>;
  using candidates_type = oktopk::detail::candidates<std::int32_t, float, host_memory>;
  workspace_type workspace;
  archetype_group group;
  oktopk::exact::state<float> none;
  host_execution const exec;
  auto const chosen = oktopk::exact().select(oktopk::selection_context{exec, 17, 0, group, workspace},
                                             candidates_type{accumulator, {}}, none);
  CHECK(chosen.entries.size() == 17);
  CHECK(chosen.counts.data() == group.gather_counts(17).data());
  CHECK(group.count() == 17);
  // Four bits at a time, and no more of the 31 than it takes until three candidates are left.
  CHECK((group.summed() % 16 == 0 && group.summed() > 0 && group.summed() < 7 * 16));
  auto const expected = top(all_entries(std::vector<float>(accumulator.data(), accumulator.data() + length)), 17);
  auto const got = chosen.entries;
  for (std::size_t i = 0; i < 17; ++i) {
    CHECK(got.indices(i) == expected.indices[i]);
    CHECK(got.values(i) == expected.values[i]);
  }
}
