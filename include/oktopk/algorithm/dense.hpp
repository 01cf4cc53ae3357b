// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/accumulator.hpp>
#include <oktopk/algorithm/concept.hpp>
#include <oktopk/algorithm/options.hpp>
#include <oktopk/comm/staging.hpp>
#include <oktopk/select/compact.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace oktopk {

/// The communicator's own allreduce of the whole accumulator: the yardstick that sparse schemes are measured against.
///
/// The update has every index. 2n(P-1)/P words at least; what the communicator really does is its own affair. Nothing
/// is added for errors: a rank with a bad accumulator contributes NaN, all ranks see it in the result, and only then do
/// they ask whose it is.
template <execution_space E, communicator Comm, gradient_value Value = float, gradient_index Index = std::int32_t>
class dense {
public:
  using execution_space = E;
  using communicator_type = Comm;
  using index_type = Index;
  using value_type = Value;
  using memory_space = typename E::memory_space;
  using update_type = sparse_update<Index, Value, memory_space>;

  struct options {
    std::int64_t length = 0; ///< of the accumulators
  };

  struct state_type {
    std::int64_t iteration = 0;

    /// For `save` and `load`.
    template <class State, class Visit>
    static void each_part(State& state, Visit& visit) {
      visit(state.iteration);
    }
  };

  /// Collective.
  dense(E exec, Comm comm, options const& how) : exec_(std::move(exec)), comm_(std::move(comm)), length_(how.length) {
    agreement terms("dense");
    detail::check_length<Index>(length_, terms);
    terms.fact("length", length_).fact("value bits", 8 * sizeof(Value)).fact("index bits", 8 * sizeof(Index));
    terms.settle(comm_);
    sums_.reserve(exec_, comm_, length_ * static_cast<std::int64_t>(sizeof(Value)));
    indices_.reserve(exec_, length_);
    number_indices();
  }

  dense(dense const&) = delete;
  dense& operator=(dense const&) = delete;

  std::int64_t length() const { return length_; }
  std::int64_t k() const { return length_; }
  std::string_view name() const { return "dense"; }
  Comm& comm() { return comm_; }
  E const& execution() const { return exec_; }
  call_statistics const& last_call() const { return statistics_; }

  /// The lower bound of any allreduce, 2n(P-1)/P (Table 1).
  double bound_words() const {
    double const ranks = comm_.size();
    return 2 * static_cast<double>(length_) * (ranks - 1) / ranks * (static_cast<double>(sizeof(Value)) / 4);
  }

  state_type const& state() const { return state_; }

  /// Goes on from a saved state. Collective; an `error` on every rank where it differs between ranks.
  void restore(state_type const& saved) {
    agreement terms("dense::restore");
    if (saved.iteration < 0) {
      terms.note(fault::bad_state, "the saved state does not fit or is damaged");
    }
    terms.fact("iteration", saved.iteration).settle(comm_);
    state_ = saved;
  }

  /// Collective. The accumulator is only read.
  template <accumulator_view<Value, E> View>
  update_type const& operator()(View const& accumulator) {
    auto const start = std::chrono::steady_clock::now();
    fault_report const mine = detail::check_accumulator(accumulator, length_);
    auto const bytes = length_ * static_cast<std::int64_t>(sizeof(Value));
    array_ref<Value, memory_space> const sums(reinterpret_cast<Value*>(sums_.data()),
                                              static_cast<std::size_t>(length_));
    if (mine) {
      fill(sums, std::numeric_limits<Value>::quiet_NaN());
    } else {
      copy(array_ref<Value const, memory_space>(accumulator.data(), accumulator.extent(0)), sums);
    }
    sums_.push(exec_, 0, bytes);
    detail::fence(exec_, "oktopk::dense::ready");
    comm_.allreduce(
        std::span<Value>(reinterpret_cast<Value*>(sums_.wire(0, bytes).data()), static_cast<std::size_t>(length_)),
        reduction::sum, phase::reduce);
    sums_.pull(exec_, 0, bytes);
    std::int64_t const bad = first_non_finite<E, Value>(exec_, array_ref<Value const, memory_space>(sums));
    if (bad < length_ || (length_ == 0 && mine)) {
      explain(accumulator, mine, bad);
    }
    state_.iteration += 1;
    statistics_ = {length_, length_, 0,
                   std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
    update_ = update_type({indices_.data(), sums.data(), length_}, indices_.data(), length_, {});
    return update_;
  }

  /// Kernels; public because nvcc wants the functions around them to be.
  void number_indices() const {
    Index* const indices = indices_.data();
    Kokkos::parallel_for(
        "oktopk::dense::indices", Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>(exec_, 0, length_),
        KOKKOS_LAMBDA(std::int64_t i) { indices[i] = static_cast<Index>(i); });
  }

  void copy(array_ref<Value const, memory_space> from, array_ref<Value, memory_space> to) const {
    Kokkos::parallel_for(
        "oktopk::dense::copy", Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>(exec_, 0, length_),
        KOKKOS_LAMBDA(std::int64_t i) { to(i) = from(i); });
  }

  void fill(array_ref<Value, memory_space> to, Value value) const {
    Kokkos::parallel_for(
        "oktopk::dense::fill", Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>(exec_, 0, length_),
        KOKKOS_LAMBDA(std::int64_t i) { to(i) = value; });
  }

private:
  // All ranks are here together, for the sums are the same everywhere.
  template <class View>
  [[noreturn]] void explain(View const& accumulator, fault_report mine, std::int64_t bad_sum) {
    if (!mine) {
      std::int64_t const bad = first_non_finite<E, Value>(
          exec_, array_ref<Value const, memory_space>(accumulator.data(), accumulator.extent(0)));
      if (bad < length_) {
        mine = {fault::non_finite, bad};
      }
    }
    auto const packed = static_cast<std::int64_t>(mine.packed());
    std::vector<std::int64_t> reports(static_cast<std::size_t>(comm_.size()));
    collective_workspace room;
    allgather(comm_, std::span<std::int64_t const>(&packed, 1), std::span<std::int64_t>(reports), phase::control, room);
    for (std::size_t rank = 0; rank < reports.size(); ++rank) {
      auto const report = fault_report::unpacked(static_cast<std::uint64_t>(reports[rank]));
      if (report) {
        throw report.as_error("dense", static_cast<int>(rank), length_);
      }
    }
    throw error(fault::non_finite, "dense: the sum at index " + std::to_string(bad_sum) + " overflows");
  }

  E exec_;
  Comm comm_;
  std::int64_t length_;
  state_type state_;
  call_statistics statistics_;
  update_type update_;
  message_buffer<E> sums_{"oktopk::dense::sums"};
  buffer<Index, memory_space> indices_{"oktopk::dense::indices"};
};

} // namespace oktopk
