// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ledger.hpp"

#include <Kokkos_Core.hpp>

namespace device_cost {
namespace {

ledger* listener = nullptr;

struct region_part {
  std::string_view region;
  part which;
};

constexpr region_part known[] = {
    {"oktopk::local_selection", part::selection}, {"oktopk::space_repartition", part::partition},
    {"oktopk::split_and_reduce", part::reduce},   {"oktopk::global_selection", part::global_selection},
    {"oktopk::balance", part::balance},           {"oktopk::allgatherv", part::gather},
};

part part_of(std::string_view region) {
  for (region_part const& each : known) {
    if (each.region == region) {
      return each.which;
    }
  }
  return part::rest;
}

} // namespace

std::string_view name(part which) {
  constexpr std::string_view names[] = {"selection", "partition", "reduce", "global selection",
                                        "balance",   "gather",    "rest"};
  return names[static_cast<std::size_t>(which)];
}

void ledger::settle() {
  counts const now = count_now();
  auto const& open = regions_[rank_];
  totals_[static_cast<std::size_t>(open.empty() ? part::rest : open.back())] += now - last_;
  last_ = now;
}

void ledger::enter(int rank) {
  settle();
  rank_ = static_cast<std::size_t>(rank);
}

void ledger::push(std::string_view region) {
  settle();
  regions_[rank_].push_back(part_of(region));
}

void ledger::pop() {
  settle();
  if (!regions_[rank_].empty()) { // one that was opened before anybody listened
    regions_[rank_].pop_back();
  }
}

void ledger::reset() {
  totals_ = {};
  last_ = count_now();
}

void ledger::listen() {
  listener = this;
  Kokkos::Tools::Experimental::set_push_region_callback([](char const* region) { listener->push(region); });
  Kokkos::Tools::Experimental::set_pop_region_callback([] { listener->pop(); });
}

} // namespace device_cost
