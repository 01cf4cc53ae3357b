// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/cancel_on_unwind.hpp>
#include <oktopk/comm/staging.hpp>
#include <oktopk/dense/concept.hpp>

#include <cstdint>
#include <span>
#include <string_view>

namespace oktopk {

/// The communicator's own allreduce: what it does inside is its own affair. 2n(P-1)/P values at least (Table 1).
template <execution_space E, communicator Comm, gradient_value Value>
class own_allreduce {
public:
  static constexpr bool lossless = true;

  static std::string_view name() { return "dense"; }

  static double bound_words(std::int64_t count, int ranks) {
    return 2 * static_cast<double>(count) * (ranks - 1) / ranks * (sizeof(Value) / 4.0);
  }

  void run(E const& exec, Comm& comm, Value* values, Value*, std::int64_t count) {
    auto const size = static_cast<std::size_t>(count);
    cancel_on_unwind const guard(comm);
    if (comm.template reaches<typename E::memory_space>()) {
      detail::fence(exec, "oktopk::own_allreduce::ready");
      comm.allreduce(std::span<Value>(values, size), reduction::sum, phase::reduce);
      return;
    }
    using wire_space = detail::host_staging_space<E>;
    staging_.reserve(exec, count);
    array_ref<Value, typename E::memory_space> const device(values, size);
    array_ref<Value, wire_space> const host(staging_.data(), size);
    Kokkos::deep_copy(exec, host, device);
    detail::fence(exec, "oktopk::own_allreduce::staged");
    comm.allreduce(std::span<Value>(staging_.data(), size), reduction::sum, phase::reduce);
    Kokkos::deep_copy(exec, device, host);
  }

private:
  buffer<Value, detail::host_staging_space<E>> staging_{"oktopk::own_allreduce::staging"};
};

} // namespace oktopk
