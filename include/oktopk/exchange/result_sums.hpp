// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/cost.hpp>

#include <concepts>
#include <string>

namespace oktopk {

/// What a result has at its indices: the sums of what was selected there (Algorithm 1), and nothing more is sent.
struct selected_sums {
  struct options {
    template <class Options, class Visit>
    static void each_option(Options&, Visit&) {}
  };

  selected_sums() = default;
  explicit selected_sums(options) {}

  static constexpr bool may_fill = false; ///< whether the step has `run`
  static constexpr bool fills = false;
  static std::string describe() { return "selected"; }

  template <class E, class Comm, class Format>
  struct step {
    explicit step(selected_sums) {}
    static double bound_words(int, std::int64_t) { return 0; }
    static detail::call_cost expected_cost(selected_sums, int, double) { return {}; }
  };
};

/// Which sums a result has: `selected_sums`, `full_sums`.
///
/// 1. `options`, as those of any policy; `describe()` — a text that the ranks compare.
/// 2. `fills` — whether `run` is called; `may_fill` — whether that can be, by the type.
/// 3. `step<E, Comm, Format>`, made from the policy — `bound_words(ranks, entries)`; `expected_cost(policy, ranks, k)`; with
///    `may_fill` `run(call, values, result)`, collective, which gives the result's indices with the sums.
template <class S, class E, class Comm, class Format>
concept result_sums = std::constructible_from<S, typename S::options> &&
                      std::constructible_from<typename S::template step<E, Comm, Format>, S> &&
                      requires(S const& sums, typename S::template step<E, Comm, Format> const& step) {
                        { S::may_fill } -> std::convertible_to<bool>;
                        { sums.fills } -> std::convertible_to<bool>;
                        { sums.describe() } -> std::convertible_to<std::string>;
                        { step.bound_words(1, std::int64_t(1)) } -> std::same_as<double>;
                        {
                          S::template step<E, Comm, Format>::expected_cost(sums, 1, 1.0)
                        } -> std::same_as<detail::call_cost>;
                      };

} // namespace oktopk
