// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/catalogue/one_of.hpp>
#include <oktopk/partition/concept.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <variant>

namespace oktopk {

/// A partitioner that is one of several, chosen at run time by its options. Regions and messages are those of the
/// chosen one.
template <class... Partitioners>
class one_of_partitioners {
public:
  struct options {
    std::variant<detail::choice_of<Partitioners>...> chosen;
  };

  one_of_partitioners() : one_of_partitioners(options{}) {}
  explicit one_of_partitioners(options const& how) : chosen_(detail::made_from(how.chosen)) {}

  std::string describe() const {
    return std::visit([](auto const& one) { return std::string(one.describe()); }, chosen_);
  }

  std::string problem() const {
    return std::visit([](auto const& one) { return std::string(one.problem()); }, chosen_);
  }

  bool due(std::int64_t iteration) const {
    return std::visit([&](auto const& one) { return one.due(iteration); }, chosen_);
  }

  double bound_words(int ranks) const {
    return std::visit([&](auto const& one) { return one.bound_words(ranks); }, chosen_);
  }

  /// The step of the chosen one.
  template <execution_space E, communicator Comm>
  class step {
  public:
    explicit step(one_of_partitioners const& how) {
      detail::with_index<sizeof...(Partitioners)>(how.chosen_.index(), [&](auto which) {
        chosen_.template emplace<which() + 1>(std::get<which()>(how.chosen_));
      });
    }

    template <gradient_index Index>
    std::span<std::int64_t const> run(call_context<E, Comm>& call,
                                      array_ref<Index const, typename E::memory_space> const& selected) {
      std::span<std::int64_t const> boundaries;
      detail::with_index<sizeof...(Partitioners)>(
          chosen_.index() - 1, [&](auto which) { boundaries = std::get<which() + 1>(chosen_).run(call, selected); });
      return boundaries;
    }

  private:
    std::variant<std::monostate, typename Partitioners::template step<E, Comm>...> chosen_;
  };

private:
  std::variant<Partitioners...> chosen_;
};

} // namespace oktopk
