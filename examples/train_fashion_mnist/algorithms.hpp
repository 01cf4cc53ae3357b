// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "communicator.hpp"
#include "textbook_sum.hpp"
#include "types.hpp"

#include <oktopk/allreduce.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

// The algorithms that --algorithm can name. A new one is one line in the list; those of the textbook follow it.
namespace fashion {

template <class Allreduce>
struct entry {
  using type = Allreduce;
  std::string_view name;
};

/// Ok-Topk with thresholds that are reused as in the paper, and re-evaluated at once when they go stale.
using ok_topk_reused =
    oktopk::ok_topk<execution, communicator, oktopk::coo<>, oktopk::reused_threshold, oktopk::reused_threshold>;

inline constexpr std::tuple algorithms{
    entry<oktopk::ok_topk<execution, communicator>>{"ok_topk"},
    entry<ok_topk_reused>{"ok_topk_reused"},
    entry<oktopk::paper_ok_topk<execution, communicator>>{"paper_ok_topk"},
    entry<oktopk::dense<execution, communicator>>{"dense"},
    entry<oktopk::dense_rabenseifner<execution, communicator>>{"dense_rabenseifner"},
    entry<oktopk::dense_bfloat16<execution, communicator>>{"dense_bfloat16"},
    entry<oktopk::topk_a<execution, communicator>>{"topk_a"},
    entry<oktopk::topk_dsa<execution, communicator>>{"topk_dsa"},
    entry<oktopk::gtopk<execution, communicator>>{"gtopk"},
    entry<oktopk::gaussian_k<execution, communicator>>{"gaussian_k"},
};

inline std::vector<std::string> algorithm_names() {
  auto names =
      std::apply([](auto const&... each) { return std::vector<std::string>{std::string(each.name)...}; }, algorithms);
  names.insert(names.end(), textbook_names.begin(), textbook_names.end());
  return names;
}

/// Whether an algorithm exchanges a selection of the gradient, or all of it.
template <class Allreduce>
inline constexpr bool selects = requires(typename Allreduce::options how) { how.density; };

template <class Allreduce>
typename Allreduce::options allreduce_options(std::int64_t length, double density) {
  typename Allreduce::options how{};
  how.length = length;
  if constexpr (selects<Allreduce>) {
    how.density = density;
  }
  return how;
}

} // namespace fashion
