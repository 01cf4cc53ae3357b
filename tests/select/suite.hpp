// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "exchange/parts.hpp"
#include "select/distributions.hpp"
#include "support/call.hpp"

#include <oktopk/core/checkpoint.hpp>
#include <oktopk/exchange/global_selection.hpp>
#include <oktopk/select/concept.hpp>

#include <set>
#include <sstream>

// What every selector must pass: include this, name the type, and call `check_selector` in a test case.
namespace oktopk_tests::selecting {

/// How a selector is tried.
struct scope {
  bool several_ranks = true; ///< all ranks together select as one rank would that has everything
  std::int64_t chunk = 0;    ///< selects in each chunk of so many values by itself; 0 where it selects among all
};

/// What it promises itself beyond the contract that all of them keep, and how it is tried.
struct promises : oktopk::selection_promises, scope {};

/// A selector's state as a checkpoint holds it.
template <class State>
struct stored {
  State state{};

  static std::string type_name() { return "state of a selector"; }

  template <class Stored, class Visit>
  static void each_part(Stored& all, Visit& visit) {
    State::each_part(all.state, visit);
  }
};

template <class State>
std::string saved(State const& state) {
  std::ostringstream out;
  oktopk::save(out, stored<State>{state});
  return out.str();
}

template <class State>
State loaded(std::string const& bytes) {
  std::istringstream in(bytes);
  return oktopk::load<stored<State>>(in).state;
}

/// The largest of each chunk, as many as were chosen of it.
template <class Value>
sparse_vector<Value> largest_of_chunks(std::vector<Value> const& values, std::int64_t chunk,
                                       sparse_vector<Value> const& chosen) {
  sparse_vector<Value> all;
  auto const size = static_cast<std::int64_t>(values.size());
  for (std::int64_t begin = 0; begin < size; begin += chunk) {
    std::int64_t const end = std::min(begin + chunk, size);
    auto const own = std::count_if(chosen.indices.begin(), chosen.indices.end(),
                                   [&](std::int64_t i) { return i >= begin && i < end; });
    auto const of_chunk = largest(std::vector<Value>(values.begin() + begin, values.begin() + end), own);
    for (std::size_t i = 0; i < of_chunk.indices.size(); ++i) {
      all.push_back(begin + of_chunk.indices[i], of_chunk.values[i]);
    }
  }
  return all;
}

/// The entries at the chosen indices.
template <class Value>
sparse_vector<Value> entries_at(std::vector<std::int64_t> const& indices, std::vector<Value> const& values) {
  sparse_vector<Value> all;
  for (std::int64_t const i : indices) {
    all.push_back(i, values.at(static_cast<std::size_t>(i)));
  }
  return all;
}

/// Promises 1 to 4, of a selection of k from these values by all ranks together: it is ascending and unique; by one
/// threshold, with ties to the lower index, where the largest are promised; as many as are promised; nothing where k is 0; all that is not finite, or k of them. With chunks, one threshold for each of them; and of what is not
/// finite, something.
template <class Value>
void check_chosen(sparse_vector<Value> const& chosen, std::vector<Value> const& values, std::int64_t k,
                  promises const& given) {
  auto const size = static_cast<std::int64_t>(values.size());
  REQUIRE(chosen.size() <= size);
  CHECK((k > 0 || chosen.size() == 0));
  auto const wanted = static_cast<double>(k);
  auto const count = static_cast<double>(chosen.size());
  CHECK((chosen.size() == size || count >= given.low * wanted));
  CHECK((k == 0 || count <= given.high * wanted));
  auto const not_finite = [](Value x) { return !std::isfinite(x); };
  std::int64_t const lost = std::min<std::int64_t>(k, std::count_if(values.begin(), values.end(), not_finite));
  auto const& indices = chosen.indices;
  CHECK(std::adjacent_find(indices.begin(), indices.end(), std::greater_equal<>()) == indices.end());
  CHECK(same(chosen, given.chunk > 0             ? largest_of_chunks(values, given.chunk, chosen)
                     : given.largest || lost > 0 ? largest(values, chosen.size())
                                                 : entries_at(indices, values)));
  CHECK((given.chunk > 0 || chosen.size() >= lost));
  CHECK((lost == 0 || std::any_of(chosen.values.begin(), chosen.values.end(), not_finite)));
}

/// A selector with its state and buffers, on a rank of a group.
template <class Index, class Value, class Selector>
struct subject {
  using state_type = typename Selector::template state<Value>;

  Selector selector;
  state_type state{};
  oktopk::detail::selection_workspace<Index, Value, execution> workspace{};

  /// Promise 5: a selection is no larger than the capacity, counts are those of all ranks, and the state is sound.
  template <class Group, class Source>
  sparse_vector<Value> select(Group& group, Source const& source, std::int64_t k, std::int64_t iteration,
                              std::int64_t length, bool finite = true) {
    execution const exec;
    oktopk::selection_context const context{exec, k, iteration, group, workspace};
    auto const result = selector.select(context, source, state);
    std::int64_t const count = result.entries.size();
    CHECK(count <= selector.capacity(k, length));
    REQUIRE(result.counts.size() > static_cast<std::size_t>(group.rank()));
    CHECK(result.counts[static_cast<std::size_t>(group.rank())] == count);
    CHECK((!finite || state.is_sound(iteration + 1)));
    return entries_of(result.entries);
  }
};

/// The accumulation that makes these values, in parts that add up exactly.
template <class Index, class Value>
struct in_the_making {
  explicit in_the_making(std::vector<Value> const& values)
      : residual(to_view(std::vector<Value>(values.size(), Value(0)))), gradient(to_view(values)),
        accumulator(to_view(std::vector<Value>(values.size(), Value(-1)))) {
    source.residual = oktopk::array_ref<Value const, memory>(residual.data(), values.size());
    source.gradient = oktopk::array_ref<Value const, memory>(gradient.data(), values.size());
    source.accumulator = oktopk::array_ref<Value, memory>(accumulator.data(), values.size());
    source.rate = 1;
  }

  Kokkos::View<Value*, memory> residual;
  Kokkos::View<Value*, memory> gradient;
  Kokkos::View<Value*, memory> accumulator;
  oktopk::detail::accumulation<Index, Value, memory> source;
};

/// Promises 6 to 8, of one rank alone over some iterations: a source that is formed as it is read is formed whole, and
/// gives the same as one in memory; the same state gives the same selections and states, whatever the buffers were used
/// for; a state that was saved goes on as the one it was saved from.
template <class Index, class Value, class Selector>
void check_one_rank(Selector const& selector, std::vector<std::vector<Value>> const& iterations, std::int64_t k,
                    promises const& given, bool finite = true) {
  using subject_type = subject<Index, Value, Selector>;
  oktopk::detail::one_rank alone;
  subject_type first{selector};
  subject_type forming{selector};
  CHECK(first.state.is_sound(0));
  for (std::size_t i = 0; i < iterations.size(); ++i) {
    auto const& values = iterations[i];
    auto const length = static_cast<std::int64_t>(values.size());
    auto const iteration = static_cast<std::int64_t>(i);
    subject_type restored{selector};
    restored.state = loaded<typename subject_type::state_type>(saved(first.state));
    auto const view = to_view(values);
    auto const from = candidates_in<Index>(view);
    auto const chosen = first.select(alone, from, k, iteration, length, finite);
    check_chosen(chosen, values, k, given);

    CHECK(same(restored.select(alone, from, k, iteration, length, finite), chosen));
    CHECK(saved(restored.state) == saved(first.state));

    auto const sums_of = [](std::vector<Value> each) { // -0 becomes 0; a GPU makes another NaN of a NaN than a CPU
      for (Value& x : each) {
        x = x != x ? std::numeric_limits<Value>::quiet_NaN() : Value(0) + x;
      }
      return each;
    };
    in_the_making<Index, Value> const made(values);
    auto const formed = forming.select(alone, made.source, k, iteration, length, finite);
    CHECK(formed.indices == chosen.indices);
    CHECK(bits(sums_of(to_vector(made.accumulator))) == bits(sums_of(values)));
    CHECK(saved(forming.state) == saved(first.state));
  }
}

/// Promise 9, of several ranks, each with candidates of a region of its own: together they select as promised, know
/// each other's counts, and carry the same state.
template <class Index, class Value, class Selector>
void check_ranks(Selector const& selector, int ranks, std::vector<std::vector<Value>> const& iterations, std::int64_t k,
                 promises const& given) {
  using format = oktopk::coo<Value, Index>;
  std::vector<std::vector<sparse_vector<Value>>> chosen(iterations.size());
  std::vector<std::vector<std::string>> states(iterations.size());
  for (auto& each : chosen) {
    each.resize(static_cast<std::size_t>(ranks));
  }
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator inner) {
    counting comm(inner);
    auto const rank = static_cast<std::size_t>(comm.rank());
    subject<Index, Value, Selector> mine{selector};
    oktopk::detail::all_ranks<execution, counting, format> group;
    for (std::size_t i = 0; i < iterations.size(); ++i) {
      auto const& values = iterations[i];
      sparse_vector<Value> region; // uneven: the first of several ranks has nothing
      std::size_t const parts = ranks == 1 ? 1 : static_cast<std::size_t>(ranks) - 1;
      for (std::size_t place = 0; place < values.size(); ++place) {
        if (place * parts / values.size() + (ranks == 1 ? 0 : 1) == rank) {
          region.push_back(static_cast<std::int64_t>(place), values[place]);
        }
      }
      device_part<format> const own(region);
      auto const length = static_cast<std::int64_t>(values.size());
      auto call = call_on(comm, length);
      group.begin(call, length);
      chosen[i][rank] = mine.select(group, oktopk::detail::candidates<Index, Value, memory>(own.entries), k,
                                    static_cast<std::int64_t>(i), length);
      states[i].push_back(saved(mine.state));
    }
  });
  for (std::size_t i = 0; i < iterations.size(); ++i) {
    check_chosen(joined(chosen[i]), iterations[i], k, given);
    CHECK(states[i] == std::vector<std::string>(static_cast<std::size_t>(ranks), states[i][0]));
  }
}

template <class Index, class Value, class Selector>
void check_types(Selector const& selector, promises const& given) {
  auto kinds = distributions<Value>();
  kinds.push_back({"with NaN", [](std::uint64_t b) { return b % 17 == 0 ? std::nan("") : static_cast<Value>(b % 9); }});
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    auto const& [name, from] = kinds[kind];
    bool const finite = name != "with infinities" && name != "with NaN";
    for (std::int64_t const size : {0, 1, 2, 64, 333, 3000}) {
      std::vector<std::vector<Value>> iterations;
      for (std::uint64_t i = 0; i < (finite ? 4U : 1U); ++i) { // no algorithm goes on after what is not finite
        iterations.push_back(drawn<Value>(from, size, i + static_cast<std::uint64_t>(size)));
      }
      for (std::int64_t const k :
           std::set<std::int64_t>{0, std::min<std::int64_t>(1, size), size / 20, size / 2, size}) {
        CAPTURE(name, size, k);
        using source = oktopk::detail::candidates<Index, Value, memory>;
        if constexpr (oktopk::detail::selects_from<Selector, execution, Index, Value, oktopk::detail::one_rank,
                                                   source>) {
          check_one_rank<Index, Value>(selector, iterations, k, given, finite);
        }
        if (given.several_ranks && finite && size < 1000) {
          for (int const ranks : {1, 3, 8}) {
            CAPTURE(ranks);
            check_ranks<Index, Value>(selector, ranks, iterations, k, given);
          }
        }
      }
    }
  }
}

/// All that `selector` promises; see there.
template <class Selector>
void check_selector(Selector const& selector = Selector(), scope const& tried = {}) {
  promises const given{selector.promises(), tried};
  CHECK(given.rule == std::string(selector.describe()));
  static_assert(oktopk::detail::has_selector_options<Selector> && oktopk::detail::bounds_its_selection<Selector>);
  static_assert(oktopk::detail::carries_state<Selector> && std::copy_constructible<Selector>);
  CHECK(std::string(selector.problem()).empty());
  CHECK(!std::string(selector.describe()).empty());
  CHECK(!std::string(Selector::name()).empty());
  CHECK((!selector.bounded() || selector.capacity(10, 1'000'000'000) < 1'000'000));
  check_types<std::int32_t, float>(selector, given);
  check_types<std::int64_t, double>(selector, given);
}

} // namespace oktopk_tests::selecting

namespace oktopk_tests {

using selecting::check_selector;

} // namespace oktopk_tests
