// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/message_group.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/dense/concept.hpp>

namespace oktopk {

/// The allreduce that the communicator brings along (`MPI_Allreduce`), for sums, maxima and minima.
///
/// In place, on any number of ranks; `count` and `op` are the same on all. Messages and the order of operations are the
/// communicator's; any allreduce sends 2n(P-1)/P values at least (Table 1 of the paper). Where the communicator does
/// not reach the vector, or takes maxima and minima in host memory alone, it is copied to page-locked host memory and
/// back. The copy back is enqueued on `exec`: this object must live until `exec` has been waited for.
template <execution_space E, communicator Comm, gradient_value Value>
class native_allreduce : public dense_reduce_base {
public:
  static constexpr bool lossless = true;
  static constexpr bool starts_no_messages = true;

  static std::string_view name() { return "native"; }

  /// Assumes reduce-scatter and allgather; the communicator's library may choose another algorithm.
  static double expected_messages(std::int64_t, int ranks) { return 2 * static_cast<double>(detail::ceil_log2(ranks)); }

  static double bound_words(std::int64_t count, int ranks) {
    return 2 * static_cast<double>(count) * (ranks - 1) / ranks * (sizeof(Value) / 4.0);
  }

  void run(E const& exec, Comm& comm, Value* values, Value* lost, std::int64_t count, reduction op = reduction::sum) {
    detail::begin_lossless(exec, op, lost, count);
    auto const size = static_cast<std::size_t>(count);
    detail::cancel_on_unwind const guard(comm);
    bool const on_host = Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename E::memory_space>::accessible;
    bool const staged = op != reduction::sum && !on_host && comm.template can_access<Kokkos::HostSpace>();
    if (!staged && comm.template can_access<typename E::memory_space>()) {
      detail::fence(exec, "oktopk::native_allreduce::ready");
      comm.allreduce(std::span<Value>(values, size), op, phase::reduce);
      return;
    }
    using wire_space = detail::host_staging_space<E>;
    staging_.reserve(exec, count);
    array_ref<Value, typename E::memory_space> const device(values, size);
    array_ref<Value, wire_space> const host(staging_.data(), size);
    Kokkos::deep_copy(exec, host, device);
    detail::fence(exec, "oktopk::native_allreduce::staged");
    comm.allreduce(std::span<Value>(staging_.data(), size), op, phase::reduce);
    Kokkos::deep_copy(exec, device, host);
  }

private:
  detail::buffer<Value, detail::host_staging_space<E>> staging_{"oktopk::native_allreduce::staging"};
};

} // namespace oktopk
