// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/caught.hpp"
#include "support/reference.hpp"

#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>

#include <bit>
#include <exception>
#include <utility>
#include <vector>

namespace oktopk_tests {

using execution = Kokkos::DefaultExecutionSpace;
using memory = execution::memory_space;
using counting = oktopk::counted<oktopk::in_process_communicator>;

/// The numbers of ranks that every algorithm must serve.
inline constexpr int rank_counts[] = {1, 2, 3, 4, 5, 7, 8, 13, 16};

/// A copy on the host of a rank-1 view in any memory.
template <class View>
std::vector<typename View::non_const_value_type> to_vector(View const& view) {
  using value_type = typename View::non_const_value_type;
  std::vector<value_type> copy(view.extent(0));
  if (!copy.empty()) {
    using host = Kokkos::View<value_type*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    Kokkos::deep_copy(host(copy.data(), copy.size()), view);
  }
  return copy;
}

/// Entries in memory, on the host.
template <class Entries>
auto entries_of(Entries const& entries) {
  execution().fence();
  sparse_vector<typename decltype(entries.values)::non_const_value_type> all;
  auto const indices = to_vector(entries.indices);
  all.indices.assign(indices.begin(), indices.end());
  all.values = to_vector(entries.values);
  return all;
}

/// A copy in the execution space's memory.
template <class Value>
Kokkos::View<Value*, memory> to_view(std::vector<Value> const& values) {
  Kokkos::View<Value*, memory> copy(Kokkos::view_alloc(std::string("test data"), Kokkos::WithoutInitializing),
                                    values.size());
  if (!values.empty()) {
    using host = Kokkos::View<Value const*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    Kokkos::deep_copy(copy, host(values.data(), values.size()));
  }
  return copy;
}

/// The bit patterns of floating-point numbers, for comparisons that tell -0 from 0 and NaN from NaN.
template <class Value>
auto bits(std::vector<Value> const& values) {
  using pattern = std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>;
  std::vector<pattern> patterns;
  for (Value const value : values) {
    patterns.push_back(std::bit_cast<pattern>(value));
  }
  return patterns;
}

/// To the bit, so that a NaN is itself.
template <class Value>
bool same(sparse_vector<Value> const& a, sparse_vector<Value> const& b) {
  return a.indices == b.indices && bits(a.values) == bits(b.values);
}

/// What every rank threw of `body(comm)` on so many ranks.
inline std::vector<outcome> outcomes_of(int ranks, std::function<void(oktopk::in_process_communicator)> const& body,
                                        oktopk::in_process::options const& how = {}) {
  std::vector<outcome> heard;
  for (std::exception_ptr const& thrown : oktopk::in_process::run_and_collect(ranks, body, how)) {
    heard.push_back(outcome_of(thrown));
  }
  return heard;
}

/// What is wrong when all ranks should have failed alike, with this code and these words; empty when nothing is.
inline std::string unlike(std::vector<outcome> const& all, oktopk::fault code, std::string const& words) {
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    std::string const who = "rank " + std::to_string(rank) + " of " + std::to_string(all.size());
    if (all[rank].code != code) {
      return who + " has " + std::string(name(all[rank].code)) + " (" + all[rank].text + "), expected " +
             std::string(name(code));
    }
    if (all[rank].text != all[0].text) {
      return who + " says \"" + all[rank].text + "\", rank 0 says \"" + all[0].text + "\"";
    }
    if (all[rank].text.find(words) == std::string::npos) {
      return "\"" + all[rank].text + "\" does not say \"" + words + "\"";
    }
  }
  return {};
}

} // namespace oktopk_tests
