// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>

namespace oktopk {

/// Half-open range of the gradient's index space.
struct region {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  constexpr std::int64_t width() const { return end - begin; }
};

/// Unmanaged arrays: arguments and results whose memory another object owns.
template <class T, class MemorySpace>
using array_ref = Kokkos::View<T*, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

namespace detail {

/// The width of gradients' entries, for kernels that take any: a constant, so that their loops over it vanish. A kernel of
/// a device cannot call the conversion of `std::integral_constant`.
struct width_of_one {
  width_of_one() = default;
  constexpr explicit width_of_one(std::int64_t) {}
  KOKKOS_INLINE_FUNCTION constexpr operator std::int64_t() const { return 1; } // NOLINT(google-explicit-constructor)
};

} // namespace detail

/// Entries of a sparse vector: indices, ascending and unique, and `width` values of each, one after the other (a row).
/// Gradients have a width of 1.
template <gradient_index Index, wire_value Value, class MemorySpace>
struct sparse_ref {
  array_ref<Index const, MemorySpace> indices;
  array_ref<Value const, MemorySpace> values;
  std::int64_t width = 1;

  sparse_ref() = default;
  sparse_ref(Index const* index_data, Value const* value_data, std::int64_t count, std::int64_t values_of_each = 1)
      : indices(index_data, static_cast<std::size_t>(count)),
        values(value_data, static_cast<std::size_t>(count * values_of_each)), width(values_of_each) {}

  std::int64_t size() const { return static_cast<std::int64_t>(indices.extent(0)); }

  /// The entries at positions [first, last).
  sparse_ref slice(std::int64_t first, std::int64_t last) const {
    return {indices.data() + first, values.data() + first * width, last - first, width};
  }
};

/// The result of a gradient allreduce.
///
/// All views lie in the algorithm's workspace, in the memory of its execution space, and are valid until its next call.
template <gradient_index Index, gradient_value Value, class MemorySpace>
class sparse_update {
public:
  using index_type = Index;
  using value_type = Value;
  using entries_type = sparse_ref<Index, Value, MemorySpace>;
  using indices_type = array_ref<Index const, MemorySpace>;
  using values_type = array_ref<Value const, MemorySpace>;

  sparse_update() = default;
  sparse_update(entries_type sums, indices_type const& contributed, entries_type returned)
      : sums_(sums), contributed_(contributed), returned_(returned) {}

  /// The number of entries.
  std::int64_t size() const { return sums_.size(); }
  /// Ascending and unique; the same on every rank.
  indices_type const& indices() const { return sums_.indices; }
  /// The sums (not averages) over ranks at `indices()`; bit-identical on every rank.
  values_type const& values() const { return sums_.values; }
  /// This rank's selected indices that are in the result (Algorithm 1, line 14), ascending.
  indices_type const& contributed() const { return contributed_; }
  /// Entries to add back to this rank's residual: sums that a scheme dropped, or parts that a lossy format rounded off.
  entries_type const& returned() const { return returned_; }

private:
  entries_type sums_;
  indices_type contributed_;
  entries_type returned_;
};

/// Figures of one call of an algorithm, as this rank saw it.
struct call_statistics {
  std::int64_t local_selected = 0;  ///< entries this rank put in
  std::int64_t global_selected = 0; ///< entries of the update
  double select_seconds = 0;        ///< local and global selection, messages of the global one included
  double exchange_seconds = 0;      ///< the rest of the call
  bool local_reevaluated = false;
  bool global_reevaluated = false;
  bool repartitioned = false;
  bool balanced = false;
};

} // namespace oktopk
