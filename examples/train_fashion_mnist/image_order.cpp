// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "image_order.hpp"

#include <random>
#include <utility>

namespace fashion {

order_view in_order(execution const& exec, std::int64_t size) {
  order_view order("fashion::order", static_cast<std::size_t>(size));
  auto const host = Kokkos::create_mirror_view(order);
  for (std::int64_t i = 0; i < size; ++i) {
    host(i) = i;
  }
  Kokkos::deep_copy(exec, order, host);
  exec.fence();
  return order;
}

void shuffle(execution const& exec, order_view const& order, std::int64_t seed, std::int64_t epoch) {
  auto const host = Kokkos::create_mirror_view(order);
  auto const size = static_cast<std::int64_t>(host.extent(0));
  std::seed_seq seeds{seed & 0xffffffff, seed >> 32, epoch};
  std::mt19937_64 random(seeds);
  for (std::int64_t i = 0; i < size; ++i) {
    host(i) = i;
  }
  // By hand: std::shuffle differs between standard libraries.
  for (std::int64_t i = size - 1; i > 0; --i) {
    auto const other = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(i + 1));
    std::swap(host(i), host(other));
  }
  Kokkos::deep_copy(exec, order, host);
  exec.fence();
}

} // namespace fashion
