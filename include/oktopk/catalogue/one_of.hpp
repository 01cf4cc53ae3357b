// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/exchange/deliver.hpp>
#include <oktopk/exchange/schedule.hpp>
#include <oktopk/format/values/concept.hpp>
#include <oktopk/partition/concept.hpp>
#include <oktopk/select/concept.hpp>

#include <algorithm>
#include <tuple>
#include <utility>
#include <variant>

/// Policies that stand for one of several, chosen at run time. An algorithm that takes them is compiled once, not once
/// for each policy. Results, messages and bounds are those of the chosen one.
namespace oktopk::detail {

/// A policy that a text can name: a line of a list in `catalogue/policies.hpp`.
template <class Policy>
struct alternative {
  using type = Policy;
  std::string_view name;
  std::string_view about;
};

/// The options of one of several policies. Each has a type of its own, since policies may share their type of options.
template <class Policy>
struct choice_of {
  using type = Policy;
  typename Policy::options options;
};

/// `OneOf<Policies...>` for a list of `alternative<Policies>...`.
template <template <class...> class OneOf, class List>
struct one_of_list;

template <template <class...> class OneOf, class... Policies>
struct one_of_list<OneOf, std::tuple<alternative<Policies>...> const> {
  using type = OneOf<Policies...>;
};

/// Calls `action` with `index` as an `integral_constant`.
template <std::size_t Count, class Action>
void with_index(std::size_t index, Action const& action) {
  [&]<std::size_t... Each>(std::index_sequence<Each...>) {
    (void)((index == Each && (action(std::integral_constant<std::size_t, Each>()), true)) || ...);
  }(std::make_index_sequence<Count>());
}

/// Common part of selectors, partitioners and schedules that are one of several.
template <class... Policies>
class one_of {
public:
  struct options {
    std::variant<choice_of<Policies>...> chosen;
  };

  one_of() : one_of(options{}) {}
  explicit one_of(options const& how) {
    with_index<sizeof...(Policies)>(how.chosen.index(), [&](auto which) {
      chosen_.template emplace<which()>(std::get<which()>(how.chosen).options);
    });
  }

  std::string describe() const {
    return std::visit([](auto const& one) { return std::string(one.describe()); }, chosen_);
  }

  std::string problem() const {
    return std::visit([](auto const& one) { return std::string(one.problem()); }, chosen_);
  }

protected:
  std::variant<Policies...> chosen_;
};

/// The steps of policies that are one of several: that of the chosen one is made.
template <class... Steps>
class one_of_steps {
protected:
  template <class... Policies, class... More>
  explicit one_of_steps(std::variant<Policies...> const& chosen, More const&... more) {
    with_index<sizeof...(Policies)>(
        chosen.index(), [&](auto which) { step_.template emplace<which() + 1>(std::get<which()>(chosen), more...); });
  }

  /// What `action(step, which)` gives.
  template <class Action>
  auto with_step(Action const& action) {
    return result_with(step_, action);
  }
  template <class Action>
  auto with_step(Action const& action) const {
    return result_with(step_, action);
  }

private:
  template <class Chosen, class Action>
  static auto result_with(Chosen& step, Action const& action) {
    decltype(action(std::get<1>(step), std::integral_constant<std::size_t, 0>())) result{};
    with_index<sizeof...(Steps)>(step.index() - 1,
                                 [&](auto which) { result = action(std::get<which() + 1>(step), which); });
    return result;
  }

  std::variant<std::monostate, Steps...> step_;
};

/// A partitioner that is one of several.
template <class... Partitioners>
class one_of_partitioners : public one_of<Partitioners...>, public partitioner_base {
public:
  using one_of<Partitioners...>::one_of;

  bool due(std::int64_t iteration) const {
    return std::visit([&](auto const& one) { return one.due(iteration); }, this->chosen_);
  }
  double bound_words(int ranks, std::int64_t k, bool are_new) const {
    return std::visit([&](auto const& one) { return one.bound_words(ranks, k, are_new); }, this->chosen_);
  }
  int blocks() const {
    return std::visit([](auto const& one) { return one.blocks(); }, this->chosen_);
  }
  double most_load() const {
    return std::visit([](auto const& one) { return one.most_load(); }, this->chosen_);
  }

  template <execution_space E, communicator Comm>
  class step : one_of_steps<typename Partitioners::template step<E, Comm>...>, public partitioner_base::step_base {
    using steps = one_of_steps<typename Partitioners::template step<E, Comm>...>;

  public:
    explicit step(one_of_partitioners const& how) : steps(how.chosen_) {}

    template <gradient_index Index>
    std::span<std::int64_t const> run(call_context<E, Comm>& call,
                                      array_ref<Index const, typename E::memory_space> const& selected,
                                      bool were_uneven) {
      return steps::with_step([&](auto& one, auto) { return one.run(call, selected, were_uneven); });
    }

    template <gradient_index Index>
    bool fits(call_context<E, Comm>& call, array_ref<Index const, typename E::memory_space> const& selected,
              std::span<std::int64_t const> boundaries) {
      return steps::with_step([&](auto& one, auto) { return one.fits(call, selected, boundaries); });
    }
  };
};

/// A schedule that is one of several.
template <class... Schedules>
class one_of_schedules : public one_of<Schedules...>, public schedule_base {
public:
  static constexpr bool has_stages = (Schedules::has_stages || ...);

  using one_of<Schedules...>::one_of;

  int destination(int rank, int step, int ranks) const {
    return std::visit([&](auto const& one) { return one.destination(rank, step, ranks); }, this->chosen_);
  }
  int source(int rank, int step, int ranks) const {
    return std::visit([&](auto const& one) { return one.source(rank, step, ranks); }, this->chosen_);
  }
  int bucket() const {
    return std::visit([](auto const& one) { return one.bucket(); }, this->chosen_);
  }
  std::vector<int> groups(int ranks, std::int64_t length, std::int64_t k) const {
    return std::visit([&](auto const& one) { return one.groups(ranks, length, k); }, this->chosen_);
  }
};

/// A gather that is one of several.
template <class... Gathers>
class one_of_gathers : public one_of<Gathers...> {
public:
  using one_of<Gathers...>::one_of;

  template <execution_space E, communicator Comm, sparse_format Format>
  class step : one_of_steps<typename Gathers::template step<E, Comm, Format>...> {
    using steps = one_of_steps<typename Gathers::template step<E, Comm, Format>...>;

  public:
    step(one_of_gathers const& how, Format const& format) : steps(how.chosen_, format) {}

    gathered<Format, E> run(call_context<E, Comm>& call, entries_of<Format, E> mine,
                            std::span<std::int64_t const> sizes) {
      return steps::with_step([&](auto& one, auto) { return one.run(call, mine, sizes); });
    }

    word_bound bound_words(int ranks, std::int64_t length, std::int64_t entries) const {
      return steps::with_step([&](auto const& one, auto) { return one.bound_words(ranks, length, entries); });
    }

    static call_cost expected_cost(one_of_gathers const& how, Format const& format, int ranks, double length,
                                   double entries) {
      return std::visit(
          [&]<class One>(One const& one) {
            return One::template step<E, Comm, Format>::expected_cost(one, format, ranks, length, entries);
          },
          how.chosen_);
    }
  };
};

/// The state of one of several policies; after the first call that of the chosen one.
template <gradient_value Value, class... Policies>
struct one_of_states {
  std::variant<typename Policies::template state<Value>...> one;

  /// Of a policy; an empty one if it is that of another.
  template <std::size_t Which>
  auto& of() {
    if (one.index() != Which) {
      one.template emplace<Which>();
    }
    return std::get<Which>(one);
  }

  bool is_sound(std::int64_t iteration) const {
    return std::visit([&](auto const& own) { return own.is_sound(iteration); }, one);
  }

  void list_facts(agreement& terms) const {
    terms.fact("selector", name());
    std::visit([&](auto const& own) { own.list_facts(terms); }, one);
  }

  /// For `save` and `load`: the name of the policy, and its own state.
  template <class State, class Visit>
  static void each_part(State& carried, Visit& visit) {
    std::string const own = carried.name();
    std::vector<char> name(own.begin(), own.end());
    visit(name);
    if constexpr (!std::is_const_v<State>) {
      carried.become(std::string(name.begin(), name.end()));
    }
    with_index<sizeof...(Policies)>(carried.one.index(), [&](auto which) {
      std::variant_alternative_t<which(), decltype(one)>::each_part(std::get<which()>(carried.one), visit);
    });
  }

private:
  static std::vector<std::string> names() { return {std::string(Policies::name())...}; }
  std::string name() const { return names()[one.index()]; }

  void become(std::string const& name) {
    auto const all = names();
    auto const index = static_cast<std::size_t>(std::ranges::find(all, name) - all.begin());
    if (index == all.size()) {
      throw error(fault::bad_file, "the checkpoint holds the state of an unknown selector");
    }
    with_index<sizeof...(Policies)>(index, [&](auto which) { one.template emplace<which()>(); });
  }
};

/// A selector that is one of several.
template <class... Selectors>
class one_of_selectors : public one_of<Selectors...>, public selector_base {
public:
  using one_of<Selectors...>::one_of;

  template <gradient_value Value>
  using state = one_of_states<Value, Selectors...>;

  static std::string name() { return "one_of_selectors"; }

  bool bounded() const {
    return std::visit([](auto const& one) { return one.bounded(); }, this->chosen_);
  }

  selection_promises promises() const {
    return std::visit([](auto const& one) { return one.promises(); }, this->chosen_);
  }

  std::int64_t capacity(std::int64_t k, std::int64_t length) const {
    return std::visit([&](auto const& one) { return one.capacity(k, length); }, this->chosen_);
  }

  template <execution_space E, gradient_index Index, gradient_value Value, selection_group Group,
            selection_source Source>
    requires(selects_from<Selectors, E, Index, Value, Group, Source> && ...)
  selection<Index, Value, typename E::memory_space> select(selection_context<E, Index, Value, Group> const& context,
                                                           Source const& source, state<Value>& carried) const {
    selection<Index, Value, typename E::memory_space> result;
    with_index<sizeof...(Selectors)>(this->chosen_.index(), [&](auto which) {
      result = std::get<which()>(this->chosen_).select(context, source, carried.template of<which()>());
    });
    return result;
  }
};

/// The deliverer of a choice among the sums: its own, if it names one, or a search by it.
template <class Choice, class Gather>
struct deliverer_by {
  using type = search_and_gather<Choice, Gather>;
};

template <class Choice, class Gather>
  requires requires { typename Choice::template deliverer<Gather>; }
struct deliverer_by<Choice, Gather> {
  using type = typename Choice::template deliverer<Gather>;
};

/// A deliverer that is one of several, by its choice among the sums.
template <class Gather, class... Choices>
class one_of_deliverers : public one_of<typename deliverer_by<Choices, Gather>::type...> {
public:
  struct options {
    typename one_of<Choices...>::options global_select{};
    typename Gather::options gather{};

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("global", how.global_select, "selection among the sums");
      visit("gather", how.gather, "how parts reach all ranks");
    }
  };

  template <gradient_value Value>
  using state = one_of_states<Value, typename deliverer_by<Choices, Gather>::type...>;

  one_of_deliverers() : one_of_deliverers(options{}) {}
  explicit one_of_deliverers(options const& how) {
    with_index<sizeof...(Choices)>(how.global_select.chosen.index(), [&](auto which) {
      using chosen = std::tuple_element_t<which(), std::tuple<typename deliverer_by<Choices, Gather>::type...>>;
      auto const& own = std::get<which()>(how.global_select.chosen).options;
      if constexpr (std::is_constructible_v<chosen, decltype(own)>) { // has no gather
        this->chosen_.template emplace<which()>(own);
      } else {
        this->chosen_.template emplace<which()>(typename chosen::options{own, how.gather});
      }
    });
  }

  static std::string name() { return "one_of_selectors"; }

  delivery_promises promises() const {
    return std::visit([](auto const& one) { return one.promises(); }, this->chosen_);
  }

  template <execution_space E, communicator Comm, sparse_format Format>
  class step : one_of_steps<typename deliverer_by<Choices, Gather>::type::template step<E, Comm, Format>...> {
    using steps = one_of_steps<typename deliverer_by<Choices, Gather>::type::template step<E, Comm, Format>...>;

  public:
    step(one_of_deliverers const& how, Format const& format) : steps(how.chosen_, format) {}

    delivered<Format, E> run(call_context<E, Comm>& call, reduced<Format, E> const& mine, regions<E> const& owned,
                             state<typename Format::value_type>& carried) {
      return steps::with_step(
          [&](auto& one, auto which) { return one.run(call, mine, owned, carried.template of<which()>()); });
    }

    word_bound bound_words(call_size const& size) const {
      return steps::with_step([&](auto const& one, auto) { return one.bound_words(size); });
    }

    static call_cost expected_cost(one_of_deliverers const& how, Format const& format, int ranks, double length,
                                   double sums, double k) {
      return std::visit(
          [&]<class One>(One const& one) {
            return One::template step<E, Comm, Format>::expected_cost(one, format, ranks, length, sums, k);
          },
          how.chosen_);
    }
  };
};

/// A value codec that is one of several: on the wire the same as the chosen one.
template <value_codec... Codecs>
struct one_of_values : value_codec_base {
  std::int32_t chosen = 0; ///< its position in the list

  static constexpr bool lossless = (Codecs::lossless && ...);

  std::string name() const {
    std::string text;
    std::int32_t at = 0;
    (void)((at++ == chosen && (text = Codecs().name(), true)) || ...);
    return text;
  }

  /// True if the chosen codec rounds.
  bool is_lossy() const {
    std::int32_t at = 0;
    return ((at++ == chosen && !Codecs::lossless) || ...);
  }

  double expected_bits(int value_bytes, double) const {
    double bits = 0;
    std::int32_t at = 0;
    auto const of = [&](auto const& codec) {
      return value_bytes == 4 ? detail::expected_bits<float>(codec) : detail::expected_bits<double>(codec);
    };
    (void)((at++ == chosen && (bits = of(Codecs()), true)) || ...);
    return bits;
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION int most_bytes(int count) const {
    int bytes = 0;
    std::int32_t at = 0;
    (void)((at++ == chosen && (bytes = Codecs().template most_bytes<Value>(count), true)) || ...);
    return bytes;
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION std::byte* encode(Value const* values, int count, std::byte* out) const {
    std::int32_t at = 0;
    (void)((at++ == chosen && (out = Codecs().encode(values, count, out), true)) || ...);
    return out;
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION std::byte const* decode(std::byte const* in, std::byte const* end, int count,
                                                      Value* values) const {
    std::int32_t at = 0;
    (void)((at++ == chosen && (in = Codecs().decode(in, end, count, values), true)) || ...);
    return in;
  }
};

} // namespace oktopk::detail
