// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The concept `selection_source`: what it asks for is enough for selectors, and each part of it is asked for.

#include "archetypes/suite.hpp"

#include <oktopk/select/exact.hpp>
#include <oktopk/select/reused_threshold.hpp>

using namespace oktopk_tests;

namespace {

using candidates_type = oktopk::detail::candidates<std::int64_t, double, host_memory>;

// Twice the values of some array, at every third index; made as they are loaded.
class archetype {
public:
  using index_type = std::int64_t;
  using value_type = double;

  archetype(vector_of<double> from, vector_of<double> made, vector_of<std::int64_t> indices)
      : from_(from), made_(made), indices_(indices) {}

  std::int64_t size() const { return static_cast<std::int64_t>(from_.extent(0)); }
  std::int64_t index(std::int64_t position) const { return 3 * position; }
  double peek(std::int64_t position) const { return 2 * from_(position); }
  double load(std::int64_t position) const {
    indices_(position) = index(position);
    return made_(position) = peek(position);
  }
  double loaded(std::int64_t position) const { return made_(position); }

  void load_blocks(std::int64_t begin, int count, std::uint64_t reach, std::uint64_t* masks) const {
    for (int i = 0; i < 64 * count; ++i) {
      std::uint64_t const own = oktopk::detail::magnitude_bits(load(begin + i)) >= reach ? 1 : 0;
      masks[i / 64] = (i % 64 == 0 ? 0 : masks[i / 64]) | own << (i % 64);
    }
  }

  candidates_type materialized() const { return {made_, indices_}; }

  void materialize(host_execution const&) const {
    for (std::int64_t i = 0; i < size(); ++i) {
      load(i);
    }
  }

private:
  vector_of<double> from_;
  vector_of<double> made_;
  vector_of<std::int64_t> indices_;
};

static_assert(oktopk::selection_source<archetype>);
static_assert(oktopk::selection_source<oktopk::detail::candidates<std::int32_t, float, host_memory>>);
static_assert(oktopk::selection_source<oktopk::detail::accumulation<std::int32_t, float, host_memory>>);

// One defect each.
template <class T>
inline constexpr bool no_selection_source = !oktopk::selection_source<T>;
DEFECT(no_selection_source, index_is_unsigned, archetype, using index_type = std::uint64_t);
DEFECT(no_selection_source, value_is_integer, archetype, using value_type = std::int64_t);
DEFECT(no_selection_source, without_size, archetype, void size() = delete);
DEFECT(no_selection_source, size_is_narrow, archetype, int size() const);
DEFECT(no_selection_source, without_index, archetype, void index() = delete);
DEFECT(no_selection_source, index_is_wider_than_it_says, archetype, using index_type = std::int32_t);
DEFECT(no_selection_source, without_peek, archetype, void peek() = delete);
DEFECT(no_selection_source, without_load, archetype, void load() = delete);
DEFECT(no_selection_source, load_changes_it, archetype, double load(std::int64_t));
DEFECT(no_selection_source, without_loaded, archetype, void loaded() = delete);
DEFECT(no_selection_source, without_blocks, archetype, void load_blocks() = delete);
DEFECT(no_selection_source, blocks_of_values, archetype,
       double load_blocks(std::int64_t, int, std::uint64_t, std::uint64_t*) const);
DEFECT(no_selection_source, never_materialized, archetype, void materialized() = delete);

} // namespace

TEMPLATE_TEST_CASE("selectors read a source that has what the concept asks for and nothing else", "", oktopk::exact,
                   oktopk::reused_threshold) {
  for (std::size_t const size : {std::size_t(0), std::size_t(5), std::size_t(100), std::size_t(5001)}) {
    for (std::int64_t const k : {std::int64_t(0), std::int64_t(1), std::int64_t(60)}) {
      vector_of<double> const from("from", size);
      sparse_vector<double> all;
      seeded draw(21);
      for (std::size_t i = 0; i < size; ++i) {
        from(i) = draw.uniform() - 0.5;
        all.push_back(3 * static_cast<std::int64_t>(i), 2 * from(i));
      }
      archetype const source(from, vector_of<double>("made", size), vector_of<std::int64_t>("indices", size));
      oktopk::detail::selection_workspace<std::int64_t, double, host_execution> workspace;
      typename TestType::template state<double> carried;
      oktopk::detail::one_rank alone;
      host_execution const exec;
      for (std::int64_t call = 0; call < 2; ++call) {
        oktopk::selection_context const context{exec, k, call, alone, workspace};
        auto const got = TestType().select(context, source, carried).entries;
        sparse_vector<double> selected;
        for (std::int64_t i = 0; i < got.size(); ++i) {
          selected.push_back(got.indices(i), got.values(i));
        }
        CHECK((selected == top(all, k)));
        bool all_loaded = true;
        for (std::size_t i = 0; i < size; ++i) {
          all_loaded = all_loaded && source.loaded(static_cast<std::int64_t>(i)) == 2 * from(i);
        }
        CHECK(all_loaded);
      }
    }
  }
}
