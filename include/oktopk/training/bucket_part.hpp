// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/concept.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/instance.hpp>
#include <oktopk/core/kokkos_ext/kernels.hpp>
#include <oktopk/training/bucketed_state.hpp>
#include <oktopk/training/buckets.hpp>
#include <oktopk/training/error_feedback_options.hpp>

#include <optional>
#include <string>
#include <vector>

namespace oktopk::detail {

/// One bucket of `bucketed`: its gradients, and the allreduce and the `error_feedback` that reduce them. Stays where it
/// is made: the error feedback refers to the allreduce.
template <gradient_allreduce Allreduce, class Feedback>
struct bucket_part {
  using execution_space = typename Allreduce::execution_space;
  using value_type = typename Allreduce::value_type;
  using memory_space = typename execution_space::memory_space;

  template <class Make>
  bucket_part(execution_space const& exec, bucket const& what, Make const& make, error_feedback_options const& how)
      : allreduce(made_for(what, make)), feedback(exec, allreduce, how),
        gradient(Kokkos::view_alloc(exec, std::string("oktopk::bucketed::gradient")),
                 static_cast<std::size_t>(what.length)),
        fresh(checkpoint_of(allreduce.state())) {}

  /// Reduces the gradients and puts the averages in their place. Collective; throws on every rank where some rank has a
  /// fault or gives a misuse: that rank throws its misuse, the others that a length was wrong.
  void call(double scale, std::optional<error> const& misuse) {
    if (misuse) {
      try {
        feedback.fail_on_all(allreduce.length() + 1);
      } catch (error const& heard) {
        if (breaks_communicator(heard.code())) {
          throw;
        } // else what this rank did says more
      }
      throw error(*misuse);
    }
    // Two threads must not count references to one array.
    Kokkos::View<value_type*, memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>> const values(gradient.data(),
                                                                                                  gradient.extent(0));
    update = &feedback(values, scale, withheld);
    done = true;
    feedback.average(*update, values);
    for (entry_range const range : withheld) { // what a lossy format makes of zeros
      fill_array("oktopk::bucketed::withhold", allreduce.execution(), values.data() + range.begin,
                 range.end - range.begin, value_type(0));
    }
    fence(allreduce.execution(), "oktopk::bucketed::call");
  }

  /// `make(what)`; where that refuses the density 0 of a bucket that was given none, the error says where to give one.
  template <class Make>
  static auto made_for(bucket const& what, Make const& make) -> decltype(make(what)) {
    try {
      return make(what);
    } catch (error const& refused) {
      if (refused.code() != fault::density_out_of_range || what.density > 0) {
        throw;
      }
      throw error(refused.code(),
                  "bucketed: plan.densities is empty, so a bucket has density 0: " + refused.sentence());
    }
  }

  Allreduce allreduce;
  Feedback feedback;
  Kokkos::View<value_type*, memory_space> gradient; ///< and averages
  std::string fresh;                                ///< checkpoint of an allreduce without a past
  typename Allreduce::update_type const* update = nullptr;
  bool done = false;                 ///< in this step
  std::vector<entry_range> withheld; ///< in this step
};

} // namespace oktopk::detail
