// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// Gradients of several tensors, fused into buckets that are reduced while the backward pass computes other gradients.

#include <oktopk/algorithm/options.hpp>
#include <oktopk/direction_feedback.hpp>
#include <oktopk/training/bucket_engine.hpp>
#include <oktopk/training/communication_thread.hpp>

#include <algorithm>
#include <utility>

namespace oktopk {

namespace detail {

/// Options of `bucketed`; the same on all ranks.
struct bucketed_options {
  bucket_options plan{};             ///< which tensors are reduced together
  error_feedback_options feedback{}; ///< of each bucket
  /// Residuals of directions, with the shapes of the tensors by their numbers; none: of gradients.
  std::optional<direction_options> directions{};
  bool overlap = true; ///< reduces in the background where communicator and Kokkos allow it
};

/// The tensors that were announced in a step, and the bucket whose call is next. The calls are made in the order of the
/// buckets, which is the same on all ranks, whatever the order in which tensors are announced.
///
/// For the thread that announces. The thread that makes the call of a bucket may also read `usage_error_of`: the error
/// of that bucket does not change from its call until `begin_step`, which must not run while a call is under way.
class announced_tensors {
public:
  explicit announced_tensors(bucket_plan plan) : plan_(std::move(plan)) { begin_step(); }

  /// Forgets the step before. A usage error that came too late for the calls of that step makes the first call of this
  /// step fail.
  void begin_step() {
    next_ = 0;
    pending_.clear();
    for (bucket const& each : plan_.buckets) {
      pending_.push_back(each.tensors.size());
    }
    order_.clear();
    has_come_.assign(plan_.places.size(), false);
    std::optional<error> late = take_late();
    usage_errors_.assign(pending_.size() + 1, std::nullopt);
    usage_errors_.front() = std::move(late);
  }

  bool knows(int tensor) const { return tensor >= 0 && static_cast<std::size_t>(tensor) < has_come_.size(); }
  /// True if a known tensor was announced in this step.
  bool has(int tensor) const { return has_come_[static_cast<std::size_t>(tensor)]; }
  /// The tensors that were announced in this step, the first one first.
  std::vector<int> const& order() const { return order_; }

  /// Announces a tensor. Returns the bucket that the tensor completes, if it completes one. A tensor that cannot be
  /// announced is a usage error.
  std::optional<int> announce(int tensor) {
    if (!knows(tensor)) {
      usage_error(static_cast<int>(pending_.size()) - 1, fault::option_out_of_range,
                  number_fault("tensor", tensor, has_come_.size()));
      return std::nullopt;
    }
    int const bucket = plan_.places[static_cast<std::size_t>(tensor)].bucket;
    if (has(tensor)) {
      usage_error(bucket, fault::option_out_of_range,
                  "tensor " + std::to_string(tensor) + " was ready already in this step");
      return std::nullopt;
    }
    has_come_[static_cast<std::size_t>(tensor)] = true;
    order_.push_back(tensor);
    return --pending_[static_cast<std::size_t>(bucket)] == 0 ? std::optional(bucket) : std::nullopt;
  }

  /// Makes the call of the bucket fail on all ranks. If that call was given out already, the next call that was not
  /// fails instead, if need be in the next step. The first usage error stays.
  void usage_error(int bucket, fault code, std::string const& sentence) {
    std::optional<error>& first = usage_errors_[static_cast<std::size_t>(std::max(bucket, next_))];
    if (!first) {
      first.emplace(code, "bucketed: " + sentence);
    }
  }

  /// Returns the usage error that is left for the next step, and forgets it.
  std::optional<error> take_late() { return std::exchange(usage_errors_.back(), std::nullopt); }

  std::optional<error> const& usage_error_of(int bucket) const {
    return usage_errors_[static_cast<std::size_t>(bucket)];
  }

  /// The next bucket in order, if all its tensors were announced.
  std::optional<int> next_complete() const {
    auto const next = static_cast<std::size_t>(next_);
    return next < pending_.size() && pending_[next] == 0 ? std::optional(next_) : std::nullopt;
  }

  /// Notes that the call of the next bucket is under way.
  void give_out() { next_ += 1; }

private:
  bucket_plan plan_;
  std::vector<std::size_t> pending_; // tensors of each bucket that were not announced yet
  std::vector<int> order_;
  std::vector<bool> has_come_;
  std::vector<std::optional<error>> usage_errors_ = std::vector<std::optional<error>>(1); // the last: for the next step
  int next_ = 0;
};

} // namespace detail

/// Gradients of several tensors, fused into buckets; each bucket has an allreduce and an error feedback of its own
/// (paper, section 5.1: DenseOvlp; here for every scheme).
///
/// In a step each gradient is written to `gradient(tensor)` and announced by `ready(tensor)`, in any order. When all
/// tensors of a bucket are announced, and the calls of all buckets before it are under way, its call begins: on a
/// thread of this object while the caller continues, in the same order on all ranks. `wait()` ends the step, and
/// `gradient(tensor)` then holds the average over the ranks.
///
/// In the background calls need a communicator that `takes_other_threads` (MPI: MPI_THREAD_SERIALIZED) and a Kokkos
/// that launches from any thread (every release for Serial, from 4.4 on for others but Threads). Elsewhere, and with
/// `overlap` off, `ready` makes the call itself. From the first `ready` of a step until `wait` returns, nobody else
/// uses the communicator; with MPI_THREAD_SERIALIZED no other thread calls MPI at all, which MPI_THREAD_MULTIPLE
/// allows. Before Kokkos 4.4 the caller holds a `launch_lock` for all that it does with Kokkos in that time, copies of
/// managed views included; calls release their lock while their communicator waits. On a device the allreduce's
/// instance should have a stream of its own; a call waits for all work that was enqueued on the caller's instance
/// before it.
///
/// Holds the gradients of all tensors beside what `error_feedback` holds. A single bucket gives the same bits as one
/// call for a flat vector. A tensor that was not announced counts as zeros. Every rank ends a step that has begun by
/// `wait()`, also a rank that cannot continue the step. An error of any call is thrown by `wait()` on all ranks, and
/// residuals and velocities are then as before the step; an error of the communicator reaches only the ranks that the
/// communicator can tell. `clip_norm` is the bound for all tensors together: each bucket is scaled by it over the norm
/// of the gradients of the buckets up to this one. So nothing is scaled where the norm of all is below the bound, the
/// last bucket is scaled as all together would be, and earlier ones, which cannot know what comes, by less.
template <gradient_allreduce Allreduce>
class bucketed {
  using feedback_type = direction_feedback<Allreduce>;
  using engine_type = detail::bucket_engine<feedback_type>;

public:
  using execution_space = typename Allreduce::execution_space;
  using communicator_type = typename Allreduce::communicator_type;
  using value_type = typename Allreduce::value_type;
  using memory_space = typename execution_space::memory_space;
  /// A view of memory of this object. It counts no references, because two threads must not count them at once.
  using vector_type = Kokkos::View<value_type*, memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  using update_type = typename Allreduce::update_type;
  using options = detail::bucketed_options;
  using state_type = typename engine_type::state_type;

  /// Collective. `lengths` holds the length of each tensor, by number. `make(bucket)` returns the allreduce for one
  /// bucket, with its length and density. `exec` is the instance on which the caller writes gradients. An `error` on
  /// every rank if options make no sense, if lengths or options differ between ranks, or if an allreduce has another
  /// length than its bucket.
  template <class Make>
  bucketed(execution_space exec, communicator_type comm, std::span<std::int64_t const> lengths, Make const& make,
           options const& how = {})
      : exec_(exec), engine_(std::move(exec), std::move(comm), lengths, how.feedback, how.directions),
        announced_(make_buckets(lengths, make, how)) {
    engine_.times().buckets.resize(gradients_.size());
    if (how.overlap && engine_.comm().takes_other_threads() && detail::launches_from_any_thread<execution_space>()) {
      thread_ = std::make_unique<detail::communication_thread>();
    }
  }

  /// Waits for calls under way. To be destroyed on all ranks at the same point; otherwise other ranks wait for this
  /// one.
  ~bucketed() {
    detail::launch_unlock const lent;
    thread_.reset();
  }

  bucketed& operator=(bucketed&&) = delete;

  detail::bucket_plan const& plan() const { return engine_.plan(); }
  /// True if calls are made in the background.
  bool overlaps() const { return thread_ != nullptr; }
  Allreduce& allreduce(int bucket) { return engine_.at(bucket).allreduce; }

  /// The values of a tensor: its gradient until it is `ready`, its average after `wait`. The same memory in all steps.
  vector_type gradient(int tensor) const {
    detail::expect_number("tensor", tensor, plan().places.size());
    detail::tensor_place const& place = place_of(tensor);
    return vector_type(gradients_[static_cast<std::size_t>(place.bucket)].data() + place.offset,
                       static_cast<std::size_t>(place.length));
  }

  /// The update of a bucket, after a `wait` that has thrown nothing and until the next step: sums, with indices from
  /// the bucket's begin. An `error` before the first one.
  update_type const& update(int bucket) const {
    if (engine_.at(bucket).update == nullptr) {
      throw error(fault::option_out_of_range, "bucketed: there was no step yet, and so no update");
    }
    return *engine_.at(bucket).update;
  }
  /// The error feedback of a bucket, for its residual or for a hook before its calls; the hook runs on the thread that
  /// makes the calls. Not to be used while calls are under way, nor to make calls.
  feedback_type& feedback(int bucket) { return engine_.at(bucket).feedback; }

  /// The factor of the gradients in steps from now on, 1 at first: the learning rate, if it is part of the accumulator.
  /// Not while calls are under way.
  void set_scale(double scale) { scale_ = scale; }
  double scale() const { return scale_; }

  /// Changes the density of a bucket's selection, in (0, 1], from the next step on. Collective, between steps; an
  /// `error` on every rank if an argument is out of range or differs between ranks.
  void set_density(int bucket, double density) {
    agreement terms("bucketed::set_density");
    std::string const fault_of_number = detail::number_fault("bucket", bucket, gradients_.size());
    terms.note(fault::option_out_of_range, fault_of_number);
    std::int64_t const length = fault_of_number.empty() ? allreduce(bucket).length() : 0;
    std::int64_t const k = detail::resolve_k(length, std::nullopt, density, terms);
    terms.fact("bucket", bucket).fact("density", density).check_on(engine_.comm());
    allreduce(bucket).set_k(k);
  }

  /// Announces that `gradient(tensor)` is written. A number that is out of range, or that is announced twice in a step,
  /// makes the step fail on all ranks; the next step, if all calls of this step are under way.
  void ready(int tensor) {
    begin_step_if_first();
    if (auto const complete = announced_.announce(tensor)) {
      engine_.times().buckets[static_cast<std::size_t>(*complete)].ready = engine_.times().now();
      launch_complete();
    }
  }

  /// The same after `write()`, which writes the gradient. `write` is not called for a tensor that was announced
  /// already: the call that reads the gradient may be under way. If it throws, the step fails on all ranks, with what
  /// was thrown on this one.
  template <std::invocable Write>
  void ready_after(int tensor, Write const& write) {
    if (announced_.knows(tensor) && !is_ready(tensor)) {
      try {
        write();
      } catch (...) { // the other ranks make the call of this bucket
        error const why = detail::error_of_rank(std::current_exception());
        announced_.usage_error(place_of(tensor).bucket, why.code(),
                               "tensor " + std::to_string(tensor) + ": " + why.sentence());
      }
    }
    ready(tensor);
  }

  /// Copies the gradient from another view, and announces it. The copy runs on the caller's instance. Takes a
  /// `launch_lock`, and so may wait for kernels of a call that is under way.
  template <class Gradient>
    requires detail::gradient_view<Gradient, value_type, execution_space>
  void ready(int tensor, Gradient const& values) {
    auto const length = static_cast<std::int64_t>(values.extent(0));
    if (announced_.knows(tensor) && length != place_of(tensor).length) {
      begin_step_if_first();
      announced_.usage_error(place_of(tensor).bucket, fault::length_mismatch,
                             "tensor " + std::to_string(tensor) + " has " + std::to_string(place_of(tensor).length) +
                                 " values, and " + std::to_string(length) + " were given");
      return;
    }
    ready_after(tensor, [&] {
      launch_lock const launching;
      detail::copy_array("oktopk::bucketed::copy", exec_, values, length, gradient(tensor));
      detail::fence(exec_, "oktopk::bucketed::ready");
    });
  }

  /// Announces that a tensor takes no part in this step, on all ranks alike, in place of `ready`: its residual and
  /// velocity stay, and its average is zero. For a parameter that is frozen.
  void withhold(int tensor) {
    ready_after(tensor, [&] {
      engine_.withhold(tensor);
      launch_lock const launching;
      Kokkos::deep_copy(exec_, gradient(tensor), value_type(0)); // the average
      detail::fence(exec_, "oktopk::bucketed::withhold");
    });
  }

  /// True if a tensor was announced in this step. The number must be in range.
  bool is_ready(int tensor) const { return announced_.has(tensor); }
  /// The tensors that were announced in this step, the first one first.
  std::vector<int> const& ready_order() const { return announced_.order(); }

  /// Ends the step: starts the remaining calls, and waits for all buckets. Throws the first error of the step, on every
  /// rank.
  void wait() {
    begin_step_if_first();
    engine_.times().wait_began = engine_.times().now();
    add_absent();
    launch_complete();
    if (thread_) {
      detail::launch_unlock const lent;
      thread_->wait();
    }
    engine_.times().wait_ended = engine_.times().now();
    is_running_ = false;
    announced_.begin_step();
    if (std::exception_ptr const failed = engine_.begin_step()) {
      std::rethrow_exception(failed);
    }
    if (gradients_.empty()) { // no call tells the others of a usage error
      agreement terms("a step without tensors");
      if (std::optional<error> const usage_error = announced_.take_late()) {
        terms.note(usage_error->code(), usage_error->sentence());
      }
      terms.check_on(engine_.comm());
    }
  }

  /// Undoes the last step: residuals and velocities are as before it, for a caller that throws its averages away. On
  /// every rank, after `wait` and before the next `ready`. Sends nothing. A step that has failed, or was undone, leaves
  /// nothing to undo, and nor does one before `restore`. The allreduces' own states stay; they hold no gradients.
  void undo() {
    launch_lock const launching;
    engine_.undo();
  }

  /// Times of the last step, and the number of tensors that this rank did not announce in it.
  detail::overlap_times const& last_step() const { return engine_.times(); }

  /// A copy of all that one step hands to the next; between steps.
  state_type state() const { return engine_.state(); }

  /// Continues from the state of an object with the same tensors, whatever its plan. Collective; an `error` on every
  /// rank if the state does not fit. Residuals and velocities are always restored. Thresholds and regions are restored
  /// if the plans are the same; else each bucket's allreduce starts anew: by its `reset()`, or with a
  /// default-constructed state.
  void restore(state_type const& saved) { engine_.restore(saved); }

private:
  // Makes the buckets, and returns their plan.
  template <class Make>
  detail::bucket_plan const& make_buckets(std::span<std::int64_t const> lengths, Make const& make, options const& how) {
    agree_on(lengths, how);
    agreement terms("bucketed");
    // If `make` refuses density 0 because the plan gives the bucket no density, the error names the option to set.
    auto const made = [&](bucket const& what) {
      try {
        return make(what);
      } catch (error const& refused) {
        if (refused.code() != fault::density_out_of_range || what.density > 0) {
          throw;
        }
        throw error(refused.code(),
                    "bucketed: plan.densities is empty, so a bucket has density 0: " + refused.sentence());
      }
    };
    for (bucket const& each : detail::plan_buckets(lengths, sizeof(value_type), how.plan).buckets) {
      engine_.add(each.tensors, each.density, made);
      auto const number = std::ssize(gradients_);
      if (std::int64_t const length = allreduce(static_cast<int>(number)).length(); length != each.length) {
        terms.note(fault::length_mismatch, "bucket " + std::to_string(number) + " has " + std::to_string(each.length) +
                                               " values, and its allreduce is made for " + std::to_string(length));
      }
      gradients_.emplace_back(Kokkos::view_alloc(exec_, std::string("oktopk::bucketed::gradient")),
                              static_cast<std::size_t>(each.length));
    }
    terms.check_on(engine_.comm());
    return plan();
  }

  // (Options of `feedback` are compared by `error_feedback`.)
  void agree_on(std::span<std::int64_t const> lengths, options const& how) {
    agreement terms("bucketed");
    terms.note(fault::option_out_of_range, detail::problem_of(lengths, how.plan));
    terms.note(fault::option_out_of_range, how.feedback.problem());
    terms.fact("tensors", lengths.size()).fact("bucket_bytes", how.plan.bucket_bytes);
    for (std::int64_t const length : lengths) {
      terms.fact("length of a tensor", length);
    }
    for (int const tensor : how.plan.order) {
      terms.fact("next in order", tensor);
    }
    for (double const density : how.plan.densities) {
      terms.fact("density of a tensor", density);
    }
    terms.fact("directions", how.directions.has_value());
    if (how.directions) {
      terms.note(fault::option_out_of_range, how.directions->template problem<value_type>(how.feedback));
      terms.note(fault::option_out_of_range, shape_fault(lengths, how.directions->shapes));
      how.directions->add_facts(terms);
    }
    terms.check_on(engine_.comm());
  }

  static std::string shape_fault(std::span<std::int64_t const> lengths, detail::tensor_shapes const& shapes) {
    if (!shapes.empty() && shapes.size() != lengths.size()) {
      return "there are " + std::to_string(shapes.size()) + " shapes for " + std::to_string(lengths.size()) +
             " tensors";
    }
    for (std::size_t tensor = 0; tensor < shapes.size(); ++tensor) {
      if (std::string const sentence = detail::problem_of({shapes[tensor]}, lengths[tensor]); !sentence.empty()) {
        return "tensor " + std::to_string(tensor) + ": " + sentence;
      }
    }
    return {};
  }

  detail::tensor_place const& place_of(int tensor) const { return plan().places[static_cast<std::size_t>(tensor)]; }

  // A step begins with its first announcement, or with `wait`.
  void begin_step_if_first() {
    if (!std::exchange(is_running_, true)) {
      engine_.times() = {std::vector<detail::bucket_times>(gradients_.size())};
    }
  }

  void launch_complete() {
    while (auto const complete = announced_.next_complete()) {
      if (thread_) {
        thread_->submit([this, bucket = *complete] { call(bucket); });
      } else {
        call(*complete);
      }
      announced_.give_out(); // after the call: if `submit` throws, the bucket is still to be called
    }
  }

  void add_absent() {
    launch_lock const launching;
    detail::overlap_times& times = engine_.times();
    for (int tensor = 0; announced_.knows(tensor); ++tensor) {
      if (!announced_.has(tensor)) {
        times.absent += 1;
        Kokkos::deep_copy(exec_, gradient(tensor), value_type(0));
        if (auto const complete = announced_.announce(tensor)) {
          times.buckets[static_cast<std::size_t>(*complete)].ready = times.wait_began;
        }
      }
    }
    detail::fence(exec_, "oktopk::bucketed::absent");
  }

  // One bucket's call; on the communication thread where there is one.
  void call(int bucket) {
    if (engine_.failed()) {
      return; // on all ranks: all have heard of the error in the same bucket
    }
    std::optional<launch_lock> launching;
    if (thread_ && detail::launches_need_lock) {
      launching.emplace();
    }
    auto const& values = gradients_[static_cast<std::size_t>(bucket)];
    // Two threads must not count references to one array.
    engine_.reduce(bucket, vector_type(values.data(), values.extent(0)), scale_, announced_.usage_error_of(bucket));
  }

  execution_space exec_; // the caller's
  engine_type engine_;
  std::vector<Kokkos::View<value_type*, memory_space>> gradients_; // and averages, of each bucket
  detail::announced_tensors announced_;
  double scale_ = 1;
  bool is_running_ = false;
  std::unique_ptr<detail::communication_thread> thread_; // last: it uses the others
};

} // namespace oktopk
