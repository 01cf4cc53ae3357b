// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "types.hpp"

#include <oktopk/allreduce.hpp>
#include <oktopk/mpi.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

// The algorithms that --algorithm can name. A new one is one line in the list.
namespace fashion {

using communicator = oktopk::counted<oktopk::mpi_communicator>;

template <class Allreduce>
struct entry {
  using type = Allreduce;
  std::string_view name;
};

inline constexpr std::tuple algorithms{
    entry<oktopk::ok_topk<execution, communicator>>{"ok_topk"},
    entry<oktopk::paper_ok_topk<execution, communicator>>{"paper_ok_topk"},
    entry<oktopk::dense<execution, communicator>>{"dense"},
};

inline std::vector<std::string> algorithm_names() {
  return std::apply([](auto const&... each) { return std::vector<std::string>{std::string(each.name)...}; },
                    algorithms);
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

/// Collective. Makes the named algorithm and calls `use` with it; the name must be one of `algorithm_names()`.
template <class Use>
void with_algorithm(std::string_view name, execution const& exec, communicator const& comm, std::int64_t length,
                    double density, Use const& use) {
  auto const try_one = [&]<class Allreduce>(entry<Allreduce> const& candidate) {
    if (candidate.name == name) {
      Allreduce allreduce(exec, comm, allreduce_options<Allreduce>(length, density));
      use(allreduce);
    }
  };
  std::apply([&](auto const&... each) { (try_one(each), ...); }, algorithms);
}

} // namespace fashion
