// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>

// The array types that the parts of the example share.
namespace fashion {

using execution = Kokkos::DefaultExecutionSpace;
using memory = execution::memory_space;

/// All parameters, or all their gradients, one after another.
using vector = Kokkos::View<float*, memory>;
using const_vector = Kokkos::View<float const*, memory>;

/// A matrix inside an array that somebody else owns. Row-major throughout: with one layout for all three operands
/// Kokkos-Kernels hands gemm to the BLAS, with mixed layouts it would use its own, far slower loops.
using matrix = Kokkos::View<float**, Kokkos::LayoutRight, memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
using const_matrix = Kokkos::View<float const**, Kokkos::LayoutRight, memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// A matrix that owns its memory.
using owned_matrix = Kokkos::View<float**, Kokkos::LayoutRight, memory>;

using labels_view = Kokkos::View<std::uint8_t*, memory>;
using images_view = Kokkos::View<std::uint8_t**, Kokkos::LayoutRight, memory>;

/// Positions in the rank's shard.
using order_view = Kokkos::View<std::int64_t*, memory>;

} // namespace fashion
