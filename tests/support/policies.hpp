// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/select/reused_threshold.hpp>

namespace oktopk_tests {

template <class Global, class Gather>
struct deliverer_of {
  using type = oktopk::search_and_gather<Global, Gather>;
};

template <class Foreseen, class Gather>
  requires requires { typename Foreseen::search; }
struct deliverer_of<Foreseen, Gather> {
  using type = Foreseen;
};

/// Policies in a list, which is shorter in tests of many of them. `Global` may be `foreseen<>` too, which is a deliverer.
template <class Format, class Local = oktopk::exact, class Global = oktopk::exact, class Partitioner = oktopk::sampled,
          class Schedule = oktopk::rotated, class Gather = oktopk::balanced_allgatherv>
struct policies_of : oktopk::default_policies {
  using format = Format;
  using local_selector = Local;
  using partitioner = Partitioner;
  using schedule = Schedule;
  using deliverer = typename deliverer_of<Global, Gather>::type;
};

/// Thresholds that are reused, local and global.
using reused_policies = policies_of<oktopk::coo<>, oktopk::reused_threshold, oktopk::reused_threshold>;

} // namespace oktopk_tests
