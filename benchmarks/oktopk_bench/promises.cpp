// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "promises.hpp"

#include <oktopk/catalogue/algorithms.hpp>
#include <oktopk/core/checkpoint.hpp>

#include <algorithm>
#include <sstream>
#include <string>
#include <type_traits>

namespace oktopk_bench {

std::vector<std::int64_t> boundaries_of(oktopk::any_allreduce<space> const& algorithm, int ranks) {
  std::vector<std::int64_t> boundaries;
  auto const take_from = [&]<class Allreduce>(std::type_identity<Allreduce>) {
    auto const& checkpoint = algorithm.state().checkpoint;
    std::istringstream in(std::string(checkpoint.begin(), checkpoint.end()));
    boundaries = oktopk::load<typename Allreduce::state_type>(in).boundaries;
  };
  using format = oktopk::coo<>; // the state does not depend on it
  if (algorithm.name() == "ok_topk") {
    take_from(std::type_identity<oktopk::catalogue::any_ok_topk<space, oktopk::any_communicator, format>>());
  } else if (algorithm.name() == "paper_ok_topk") {
    take_from(std::type_identity<oktopk::paper_ok_topk<space, oktopk::any_communicator,
                                                       oktopk::with_format<format, oktopk::paper_policies>>>());
  } else {
    for (std::int64_t rank = 0; rank <= ranks; ++rank) {
      boundaries.push_back(algorithm.length() / ranks * rank + std::min(rank, algorithm.length() % ranks));
    }
  }
  return boundaries;
}

} // namespace oktopk_bench
