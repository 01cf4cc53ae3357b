// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/collect.hpp"
#include "support/messages.hpp"
#include "support/simulation.hpp"

#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>

#include <array>
#include <exception>
#include <stdexcept>

// What tests of communicators say in most of their lines.
namespace oktopk_tests {

using oktopk::fault;
using oktopk::in_process_communicator;
using oktopk::phase;
using oktopk::reduction;
using counted = oktopk::counted<in_process_communicator>;
using request = in_process_communicator::request;

/// What an allreduce of `numbers_of(rank)` of all ranks gives, combined in rank order.
template <class Numbers>
auto reduced(int ranks, oktopk::reduction op, Numbers const& numbers_of) {
  auto all = numbers_of(0);
  using value = typename decltype(all)::value_type;
  for (int rank = 1; rank < ranks; ++rank) {
    auto const more = numbers_of(rank);
    std::transform(all.begin(), all.end(), more.begin(), all.begin(), [op](value a, value b) {
      return op == oktopk::reduction::sum   ? static_cast<value>(a + b)
             : op == oktopk::reduction::min ? std::min(a, b)
                                            : std::max(a, b);
    });
  }
  return all;
}

/// ceil(log2 P): rounds of a collective that doubles.
constexpr int doublings(int ranks) {
  int rounds = 0;
  for (int reach = 1; reach < ranks; reach *= 2) {
    rounds += 1;
  }
  return rounds;
}

} // namespace oktopk_tests
