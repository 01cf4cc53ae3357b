// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

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

  static constexpr bool may_fill = false; ///< whether `step` is asked for
  static std::string describe() { return "selected"; }

  template <class E, class Comm, class Format>
  struct step {};
};

/// Which sums a result has: `selected_sums`, `full_sums`.
///
/// `options`, as those of any policy; `may_fill` — whether the policy has a `step`; `describe()` — a text that the ranks
/// compare. With `may_fill`: `fills` — whether its step is asked for; `step<E, Comm, Format>` — `run(call, values, result)`,
/// collective, gives the result's indices with the sums; `bound_words(ranks, entries)`; `expected_cost(ranks, k)`.
template <class S, class E, class Comm, class Format>
concept result_sums = std::constructible_from<S, typename S::options> && requires(S const& sums) {
  { S::may_fill } -> std::convertible_to<bool>;
  { sums.describe() } -> std::convertible_to<std::string>;
  typename S::template step<E, Comm, Format>;
};

} // namespace oktopk
