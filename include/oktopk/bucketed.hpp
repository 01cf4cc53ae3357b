// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// Several tensors: buckets of gradients, reduced while the backward pass still computes others.

#include <oktopk/algorithm/concept.hpp>
#include <oktopk/algorithm/options.hpp>
#include <oktopk/comm/agreement.hpp>
#include <oktopk/comm/concept.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/instance.hpp>
#include <oktopk/core/kokkos_ext/kernels.hpp>
#include <oktopk/core/kokkos_ext/launch_turn.hpp>
#include <oktopk/error_feedback.hpp>
#include <oktopk/training/announced_tensors.hpp>
#include <oktopk/training/bucket_agreement.hpp>
#include <oktopk/training/bucket_part.hpp>
#include <oktopk/training/bucket_parts.hpp>
#include <oktopk/training/bucketed_options.hpp>
#include <oktopk/training/bucketed_state.hpp>
#include <oktopk/training/buckets.hpp>
#include <oktopk/training/communication_thread.hpp>
#include <oktopk/training/overlap_times.hpp>
#include <oktopk/training/step_clock.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace oktopk {

/// Gradients of several tensors, fused into buckets; each bucket has an allreduce and an error feedback of its own
/// (paper, section 5.1: DenseOvlp; here for every scheme).
///
/// In a step each gradient is written to `gradient(tensor)` and announced by `ready(tensor)`, in any order. When all
/// tensors of a bucket are there, and all buckets before it are under way, its call begins: on one thread of this
/// object's own while the caller goes on, in the same order on all ranks. `wait()` ends the step, and
/// `gradient(tensor)` then holds the average over the ranks.
///
/// In the background calls need a communicator that `takes_other_threads` (MPI: MPI_THREAD_SERIALIZED) and a Kokkos
/// that launches from any thread (every release for Serial, from 4.4 on for others but Threads). Elsewhere, and with
/// `overlap` off, `ready` makes the call itself. From the first `ready` of a step until `wait` returns, nobody else
/// uses the communicator; with MPI_THREAD_SERIALIZED no other thread calls MPI at all, which MPI_THREAD_MULTIPLE
/// allows. Before Kokkos 4.4, what the caller does with Kokkos in that time stands within a `launch_turn`, copies of
/// managed views included; calls lend their turn while their communicator waits. On a device the allreduce's instance
/// should have a stream of its own; a call waits for all that the caller's instance was given before it.
///
/// Holds the gradients of all tensors beside what `error_feedback` holds. One bucket gives the bits of one call for a
/// flat vector. A tensor that was not announced counts as zeros. A step that has begun is ended by `wait()`, on all
/// ranks, also where a rank cannot go on with it. An error of any call is thrown by `wait()` on all ranks, and
/// residuals and velocities are then as before the step; an error of the communicator reaches only the ranks that
/// the communicator can tell. The clip_norm is that of all tensors together: each bucket gets a share, the square root
/// of its share of the length.
template <gradient_allreduce Allreduce>
class bucketed {
  using feedback_type = error_feedback<Allreduce>;

public:
  using execution_space = typename Allreduce::execution_space;
  using communicator_type = typename Allreduce::communicator_type;
  using value_type = typename Allreduce::value_type;
  using memory_space = typename execution_space::memory_space;
  /// Of memory of this object; counts no references, which two threads must not do at once.
  using vector_type = Kokkos::View<value_type*, memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  using update_type = typename Allreduce::update_type;
  using options = bucketed_options;
  using state_type = bucketed_state<value_type>;

  /// Collective. `lengths` are those of the tensors, by number; `make(bucket)` gives the allreduce for one bucket, of
  /// its length and density. `exec` is the instance on which the caller writes gradients. An `error` on every rank for
  /// options that make no sense, where lengths or options differ, and for an allreduce of another length.
  template <class Make>
  bucketed(execution_space exec, communicator_type comm, std::span<std::int64_t const> lengths, Make const& make,
           bucketed_options const& how = {})
      : exec_(std::move(exec)), comm_(std::move(comm)) {
    detail::agree_on_buckets(comm_, lengths, how.plan, how.feedback);
    plan_ = plan_buckets(lengths, sizeof(value_type), how.plan);
    std::int64_t const length = std::accumulate(lengths.begin(), lengths.end(), std::int64_t(0));
    for (bucket const& each : plan_.buckets) {
      error_feedback_options of = how.feedback;
      of.clip_norm *=
          std::sqrt(static_cast<double>(each.length) / static_cast<double>(std::max<std::int64_t>(length, 1)));
      parts_.make(exec_, each, make, of);
    }
    detail::agree_on_lengths(
        comm_, plan_, [this](std::size_t bucket) { return parts_.at(static_cast<int>(bucket)).allreduce.length(); });
    announced_ = detail::announced_tensors(plan_);
    clock_ = detail::step_clock(parts_.size());
    if (how.overlap && oktopk::takes_other_threads(comm_) && detail::launches_from_any_thread<execution_space>()) {
      thread_ = std::make_unique<detail::communication_thread>();
    }
  }

  /// Waits for calls under way; on all ranks alike, or others wait for this one.
  ~bucketed() {
    launch_pause const lent;
    thread_.reset();
  }

  bucketed(bucketed const&) = delete;
  bucketed& operator=(bucketed const&) = delete;

  bucket_plan const& plan() const { return plan_; }
  /// Whether calls are made in the background.
  bool overlaps() const { return thread_ != nullptr; }
  Allreduce& allreduce(int bucket) { return parts_.at(bucket).allreduce; }

  /// The values of a tensor: its gradient until it is `ready`, its average after `wait`. The same memory in all steps.
  vector_type gradient(int tensor) const {
    detail::expect_number("tensor", tensor, plan_.places.size());
    tensor_place const& place = plan_.places[static_cast<std::size_t>(tensor)];
    auto const begin = static_cast<std::size_t>(place.offset);
    return vector_type(parts_.at(place.bucket).gradient.data() + begin, static_cast<std::size_t>(place.length));
  }

  /// The update of a bucket, after a `wait` that has thrown nothing and until the next step: sums, with indices from
  /// the bucket's begin. An `error` before the first one.
  update_type const& update(int bucket) const {
    if (parts_.at(bucket).update == nullptr) {
      throw error(fault::option_out_of_range, "bucketed: there was no step yet, and so no update");
    }
    return *parts_.at(bucket).update;
  }
  /// The error feedback of a bucket: its residual, or a hook before its calls, which runs on the thread that makes
  /// them. Not while calls are under way; the bucket makes the calls.
  feedback_type& feedback(int bucket) { return parts_.at(bucket).feedback; }

  /// The factor of the gradients in steps from now on, 1 at first: the learning rate, where that stands inside the
  /// accumulator. Not while calls are under way.
  void set_scale(double scale) { scale_ = scale; }
  double scale() const { return scale_; }

  /// Another density of a bucket's selection, in (0, 1], from the next step on. Collective, between steps; an `error`
  /// on every rank where one of them is out of range or differs.
  void set_density(int bucket, double density) {
    agreement terms("bucketed::set_density");
    std::int64_t k = 0;
    if (std::string const sentence = detail::number_fault("bucket", bucket, parts_.size()); !sentence.empty()) {
      terms.note(fault::option_out_of_range, sentence);
    } else {
      k = detail::resolve_k(parts_.at(bucket).allreduce.length(), std::nullopt, density, terms);
    }
    terms.fact("bucket", bucket).fact("density", density).check_on(comm_);
    parts_.at(bucket).allreduce.set_k(k);
  }

  /// Announces that `gradient(tensor)` is written. A number that is none, or announced twice in a step, makes the step
  /// fail on all ranks, or the next one where all calls of this step are under way.
  void ready(int tensor) {
    clock_.begin_if_first();
    if (auto const complete = announced_.announce(tensor)) {
      clock_.of(*complete).ready = clock_.now();
      launch_complete();
    }
  }

  /// Copies the gradient from elsewhere, and announces it. The values are those of the caller's instance. Takes a
  /// `launch_turn`, and so may wait for kernels of a call that is under way.
  template <class Gradient>
    requires gradient_view<Gradient, value_type, execution_space>
  void ready(int tensor, Gradient const& values) {
    if (announced_.knows(tensor)) {
      tensor_place const& place = plan_.places[static_cast<std::size_t>(tensor)];
      if (static_cast<std::int64_t>(values.extent(0)) != place.length) {
        clock_.begin_if_first();
        announced_.misuse(place.bucket, fault::length_mismatch,
                          "tensor " + std::to_string(tensor) + " has " + std::to_string(place.length) +
                              " values, and " + std::to_string(values.extent(0)) + " were given");
        return;
      }
      if (!announced_.has(tensor)) { // else its call may be under way
        launch_turn const turn;
        detail::copy_array("oktopk::bucketed::copy", exec_, values, place.length, gradient(tensor));
        detail::fence(exec_, "oktopk::bucketed::ready");
      }
    }
    ready(tensor);
  }

  /// Announces that a tensor takes no part in this step, on all ranks alike, in place of `ready`: its residual and
  /// velocity stay, and its average is zero. For a parameter that is frozen.
  void withhold(int tensor) {
    if (announced_.knows(tensor) && !announced_.has(tensor)) {
      tensor_place const& place = plan_.places[static_cast<std::size_t>(tensor)];
      parts_.at(place.bucket).withheld.push_back({place.offset, place.offset + place.length});
      launch_turn const turn;
      Kokkos::deep_copy(exec_, gradient(tensor), value_type(0)); // for the norm that clips
      detail::fence(exec_, "oktopk::bucketed::withhold");
    }
    ready(tensor);
  }

  /// Ends the step: reduces what is left, and waits for all buckets. Throws the first error of the step, on every rank.
  void wait() {
    clock_.begin_if_first();
    clock_.wait_begins();
    add_absent();
    launch_complete();
    if (thread_) {
      launch_pause const lent;
      thread_->wait();
    }
    clock_.wait_ends();
    if (failed_) {
      parts_.undo_step();
    }
    std::exception_ptr const failed = std::exchange(failed_, nullptr);
    clock_.end_step();
    announced_.begin_step();
    parts_.begin_step();
    if (failed) {
      std::rethrow_exception(failed);
    }
    if (plan_.buckets.empty()) {
      detail::agree_on_misuse(comm_, announced_.take_late());
    }
  }

  /// Times of the last step, and the number of tensors that this rank did not announce in it.
  overlap_times const& last_step() const { return clock_.times(); }

  /// A copy of all that is carried on; between steps.
  state_type state() const { return detail::joined_by_tensor<value_type>(plan_, parts_.states()); }

  /// Goes on from the state of an object with the same tensors, whatever its plan. Collective; an `error` on every rank
  /// where it does not fit. Residuals and velocities go on always; thresholds and regions where the plans are the same,
  /// else each bucket's allreduce begins anew.
  void restore(state_type const& saved) {
    agreement terms("bucketed::restore");
    auto states = parts_.states();
    terms.fact("the same plan", detail::has_plan(saved, plan_));
    std::string const sentence = detail::put_by_tensor(saved, plan_, parts_.fresh(), states);
    if (!sentence.empty()) {
      terms.note(fault::bad_state, sentence);
    }
    terms.check_on(comm_);
    parts_.restore(states);
  }

private:
  using part = detail::bucket_part<Allreduce, feedback_type>;

  void launch_complete() {
    while (auto const complete = announced_.next_complete()) {
      if (thread_) {
        thread_->submit([this, bucket = *complete] { call(bucket); });
      } else {
        call(*complete);
      }
      announced_.give_out(); // not before: where `submit` throws, the bucket is still to be called
    }
  }

  void add_absent() {
    launch_turn const turn;
    for (int tensor = 0; announced_.knows(tensor); ++tensor) {
      if (!announced_.has(tensor)) {
        clock_.note_absent();
        Kokkos::deep_copy(exec_, gradient(tensor), value_type(0));
        if (auto const complete = announced_.announce(tensor)) {
          clock_.of(*complete).ready = clock_.times().wait_began;
        }
      }
    }
    detail::fence(exec_, "oktopk::bucketed::absent");
  }

  // One bucket's call; on the communication thread where there is one.
  void call(int bucket) {
    if (failed_) {
      return; // on all ranks, for they have heard of it in the same bucket
    }
    std::optional<launch_turn> turn;
    if (thread_ && detail::launches_need_turns) {
      turn.emplace();
    }
    bucket_times& times = clock_.of(bucket);
    part& of = parts_.at(bucket);
    times.began = clock_.now();
    try {
      of.call(scale_, announced_.misuse_of(bucket));
    } catch (...) {
      failed_ = std::current_exception();
    }
    times.ended = clock_.now();
  }

  execution_space exec_; // the caller's
  communicator_type comm_;
  bucket_plan plan_;
  detail::bucket_parts<part> parts_;
  detail::announced_tensors announced_;
  double scale_ = 1;
  detail::step_clock clock_;
  std::exception_ptr failed_;
  std::unique_ptr<detail::communication_thread> thread_; // last: it uses the others
};

} // namespace oktopk
