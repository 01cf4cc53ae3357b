// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/agreement.hpp>
#include <oktopk/training/norm.hpp>
#include <oktopk/training/second_moments.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <numeric>
#include <optional>
#include <utility>

namespace oktopk {

/// Tensors that are reduced together, as one accumulator: one after the other, in this order.
struct bucket {
  std::vector<int> tensors; ///< their numbers
  std::int64_t length = 0;  ///< of all of them together
  double density = 0;       ///< of the selection; 0 where none was given
};

namespace detail {

/// Options of a plan of buckets.
struct bucket_options {
  std::int64_t bucket_bytes = std::int64_t(25) << 20; ///< the most bytes of a bucket, unless one tensor takes more
  std::vector<int> order{};        ///< of the tensors, as their gradients become ready; empty: as they are numbered
  std::vector<double> densities{}; ///< of each tensor's selection, or one for all; tensors of a bucket share it
};

/// The place of a tensor.
struct tensor_place {
  int bucket = 0;
  std::int64_t offset = 0; ///< of its first value in the bucket
  std::int64_t length = 0;
};

/// Tensors put into buckets; a plain value, the same on all ranks.
struct bucket_plan {
  std::vector<bucket> buckets;
  std::vector<tensor_place> places; ///< of each tensor, by its number

  /// Puts a tensor behind those of the last bucket.
  void put(int tensor, std::int64_t length) {
    bucket& last = buckets.back();
    places[static_cast<std::size_t>(tensor)] = {static_cast<int>(buckets.size()) - 1, last.length, length};
    last.tensors.push_back(tensor);
    last.length += length;
  }
};

/// The sentence that says what is wrong with such options; empty if nothing is.
inline std::string problem_of(std::span<std::int64_t const> lengths, bucket_options const& how) {
  if (how.bucket_bytes < 1) {
    return "bucket_bytes = " + std::to_string(how.bucket_bytes) + " is not positive";
  }
  for (std::int64_t const length : lengths) {
    if (length < 0) {
      return "the length of a tensor, " + std::to_string(length) + ", is negative";
    }
  }
  if (!how.order.empty()) {
    std::vector<bool> seen(lengths.size());
    for (int const tensor : how.order) {
      if (tensor < 0 || static_cast<std::size_t>(tensor) >= lengths.size() || seen[static_cast<std::size_t>(tensor)]) {
        return "order is no permutation of the tensors' numbers: " + std::to_string(tensor) + " is not there, or twice";
      }
      seen[static_cast<std::size_t>(tensor)] = true;
    }
    if (how.order.size() != lengths.size()) {
      return "order names " + std::to_string(how.order.size()) + " of " + std::to_string(lengths.size()) + " tensors";
    }
  }
  if (how.densities.size() > 1 && how.densities.size() != lengths.size()) {
    return "there are " + std::to_string(how.densities.size()) + " densities for " + std::to_string(lengths.size()) +
           " tensors";
  }
  for (double const density : how.densities) {
    if (!detail::is_finite_magnitude(density) || density == 0 || density > 1) {
      return "the density " + detail::decimal_text(density) + " is not in (0, 1]";
    }
  }
  return {};
}

/// Fills buckets with tensors in the order in which their gradients become ready, so that a bucket is full early in the
/// backward pass. A new bucket begins if the next tensor would make the last one larger than `bucket_bytes`, or has
/// another density. `how` has no problem.
inline bucket_plan plan_buckets(std::span<std::int64_t const> lengths, std::size_t value_bytes,
                                bucket_options const& how) {
  bucket_plan plan;
  plan.places.resize(lengths.size());
  std::vector<int> order = how.order;
  if (order.empty()) {
    order.resize(lengths.size());
    std::iota(order.begin(), order.end(), 0);
  }
  std::int64_t const most = how.bucket_bytes / static_cast<std::int64_t>(value_bytes);
  for (int const tensor : order) {
    auto const number = static_cast<std::size_t>(tensor);
    double const density = how.densities.empty() ? 0 : how.densities[how.densities.size() == 1 ? 0 : number];
    bool const fits = !plan.buckets.empty() && plan.buckets.back().density == density &&
                      lengths[number] <= most - plan.buckets.back().length;
    if (!fits) {
      plan.buckets.push_back({{}, 0, density});
    }
    plan.put(tensor, lengths[number]);
  }
  return plan;
}

/// Times of one bucket in a step, in seconds since the step began.
struct bucket_times {
  double ready = 0; ///< its last gradient was there
  double began = 0; ///< its call
  double ended = 0;
};

/// Times of a step, and how much of its communication the backward pass has hidden.
struct overlap_times {
  std::vector<bucket_times> buckets; ///< in the order of their calls
  double wait_began = 0;             ///< the backward pass was over: `wait` was called
  double wait_ended = 0;             ///< all averages were there
  int absent = 0;                    ///< tensors that this rank did not announce, which counted as zeros
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();

  /// Seconds since the step began.
  double now(std::chrono::steady_clock::time_point when = std::chrono::steady_clock::now()) const {
    return std::chrono::duration<double>(when - began).count();
  }

  /// Seconds of all calls: selection, messages and sums.
  double communication() const {
    return std::accumulate(buckets.begin(), buckets.end(), 0.0,
                           [](double sum, bucket_times const& each) { return sum + (each.ended - each.began); });
  }

  /// Seconds of calls that ran before `wait` was called.
  double hidden() const {
    return std::accumulate(buckets.begin(), buckets.end(), 0.0, [this](double sum, bucket_times const& each) {
      return sum + before_wait(each.began, each.ended);
    });
  }

  /// The most seconds that could have been hidden: calls of the same lengths, each as early as its gradients and the
  /// call before it allow, up to the end of the backward pass.
  double hideable() const {
    double free_at = 0;
    double sum = 0;
    for (bucket_times const& each : buckets) {
      double const begin = std::max(free_at, each.ready);
      double const end = begin + (each.ended - each.began);
      sum += before_wait(begin, end);
      free_at = end;
    }
    return sum;
  }

private:
  double before_wait(double begin, double end) const {
    return std::max(0.0, std::min(end, wait_began) - std::min(begin, wait_began));
  }
};

/// All that buckets carry from one step to the next, on the host; a plain value. Residuals are kept by tensor, so that
/// they fit any other plan.
template <gradient_value Value, class AllreduceState>
struct bucketed_state {
  std::vector<std::int64_t> lengths;        ///< of the tensors, by number
  std::vector<Value> residual;              ///< of all tensors, by number
  std::vector<Value> velocity;              ///< the same; empty without momentum
  std::vector<std::int64_t> bucket_sizes;   ///< tensors of each bucket of the plan that the rest belongs to
  std::vector<std::int64_t> bucket_tensors; ///< the tensors of all buckets, one after the other
  std::vector<AllreduceState> allreduces;   ///< of the buckets
  moments_state<Value> moments;             ///< of all tensors, by number; empty without directions

  /// The order of the tensors for a plan, if it has no problem.
  std::vector<int> order() const { return {bucket_tensors.begin(), bucket_tensors.end()}; }

  /// For `for_other_ranks`: the state then belongs to no plan.
  void forget_ranks() {
    bucket_sizes.clear();
    bucket_tensors.clear();
    allreduces.clear();
  }

  /// For `save` and `load`.
  static std::string type_name() {
    return "bucketed, " + std::to_string(8 * sizeof(Value)) + "-bit values, over " + AllreduceState::type_name();
  }

  template <class State, class Visit>
  static void each_part(State& state, Visit& visit) {
    visit(state.lengths);
    visit(state.residual);
    visit(state.velocity);
    visit(state.bucket_sizes);
    visit(state.bucket_tensors);
    auto count = static_cast<std::int64_t>(state.allreduces.size());
    visit(count);
    for (std::size_t i = 0; static_cast<std::int64_t>(i) < count; ++i) {
      if constexpr (!std::is_const_v<State>) { // one at a time: a damaged count ends with the bytes, not the memory
        state.allreduces.resize(std::max(state.allreduces.size(), i + 1));
      }
      AllreduceState::each_part(state.allreduces[i], visit);
    }
  }

  bool has_later_parts() const { return !moments.steps.empty(); }

  template <class State, class Visit>
  static void each_later_part(State& state, Visit& visit) {
    visit(state.moments.squares);
    visit(state.moments.rows);
    visit(state.moments.steps);
  }
};

/// A sentence if `number` is none of the numbers of `count` things, which are called `what`; else empty.
inline std::string number_fault(char const* what, int number, std::size_t count) {
  bool const known = number >= 0 && static_cast<std::size_t>(number) < count;
  return known ? ""
               : "there is no " + std::string(what) + " " + std::to_string(number) + " among " + std::to_string(count);
}

/// Throws that sentence (option_out_of_range), unless it is empty.
inline void expect_number(char const* what, int number, std::size_t count) {
  if (std::string const sentence = number_fault(what, number, count); !sentence.empty()) {
    throw error(fault::option_out_of_range, "bucketed: " + sentence);
  }
}

/// Tensors in buckets, each with an allreduce and an error feedback of its own: the base of `bucketed` and of the
/// Python module.
///
/// Residuals and velocities belong to tensors: they are kept here while a tensor is in no bucket, and the next bucket
/// of the tensor continues with them. A step is a call of some buckets, by one thread. If a call fails, on all ranks,
/// no other call of the step is made, and residuals and velocities are as before the step.
template <class Feedback>
class bucket_engine {
public:
  using feedback_type = Feedback;
  using allreduce_type = typename Feedback::allreduce_type;
  using execution_space = typename allreduce_type::execution_space;
  using communicator_type = typename allreduce_type::communicator_type;
  using value_type = typename allreduce_type::value_type;
  using update_type = typename allreduce_type::update_type;
  using state_type = bucketed_state<value_type, typename allreduce_type::state_type>;

  /// One bucket. Stays where it is made: the error feedback refers to the allreduce.
  struct part {
    template <class Make>
    part(execution_space const& exec, bucket const& what, Make const& make, error_feedback_options const& how,
         std::optional<direction_options> const& by)
        : allreduce(make(what)), feedback(exec, allreduce, how, by) {}

    allreduce_type allreduce;
    feedback_type feedback;
    update_type const* update = nullptr; ///< of the last call
    std::vector<entry_range> withheld;   ///< of its next call, which forgets them
  };

  /// Not collective. `lengths` are those of the tensors, by number; none is in a bucket yet. With directions these have
  /// their shapes, or none.
  bucket_engine(execution_space exec, communicator_type comm, std::span<std::int64_t const> lengths,
                error_feedback_options const& how, std::optional<direction_options> const& by = std::nullopt)
      : exec_(std::move(exec)), comm_(std::move(comm)), how_(how), by_(by) {
    for (std::size_t tensor = 0; tensor < lengths.size(); ++tensor) {
      add_tensor(lengths[tensor], by && tensor < by->shapes.size() ? by->shapes[tensor] : std::vector<std::int64_t>());
    }
  }

  /// Adds a tensor that is in no bucket yet; gives its number. `shape` has its dimensions, as its values lie in memory;
  /// none: one. Not collective.
  int add_tensor(std::int64_t length, std::vector<std::int64_t> shape = {}) {
    plan_.places.push_back({-1, 0, length});
    length_ += length;
    waiting_.emplace_back();
    shapes_.push_back(shape.empty() ? std::vector<std::int64_t>{length} : std::move(shape));
    return static_cast<int>(waiting_.size()) - 1;
  }

  communicator_type& comm() { return comm_; }
  /// Of all tensors together.
  std::int64_t length() const { return length_; }
  std::vector<std::int64_t> lengths() const {
    std::vector<std::int64_t> all;
    for (tensor_place const& each : plan_.places) {
      all.push_back(each.length);
    }
    return all;
  }
  /// A tensor that is in no bucket has the place -1.
  bucket_plan const& plan() const { return plan_; }
  bool has_directions() const { return by_.has_value(); }
  /// Of the tensors, by number.
  tensor_shapes const& shapes() const { return shapes_; }

  /// An `error` (option_out_of_range) if there is no such bucket.
  part& at(int bucket) const {
    expect_number("bucket", bucket, parts_.size());
    return *parts_[static_cast<std::size_t>(bucket)];
  }

  /// Makes a bucket of tensors that are in none, in this order, with the allreduce `make(bucket)`. Collective.
  template <class Make>
  void add(std::vector<int> const& tensors, double density, Make const& make) {
    bucket next{tensors, 0, density};
    for (int const tensor : tensors) {
      next.length += plan_.places[index(tensor)].length;
    }
    if (by_) {
      by_->shapes = shapes_of(tensors);
    }
    auto made = std::make_unique<part>(exec_, next, make, how_, by_);
    if (std::any_of(tensors.begin(), tensors.end(), [&](int each) { return waiting_[index(each)].carries(); })) {
      auto state = made->feedback.state();
      position at;
      for (int const tensor : tensors) {
        copy(waiting_[index(tensor)], {}, state, at, tensor);
        at = behind(at, tensor);
      }
      made->feedback.restore(state);
    }
    plan_.buckets.push_back({{}, 0, density});
    for (int const tensor : tensors) {
      waiting_[index(tensor)] = {};
      plan_.put(tensor, plan_.places[index(tensor)].length);
    }
    parts_.push_back(std::move(made));
  }

  /// Removes a bucket; residuals and velocities of its tensors are kept for other buckets. The numbers of the buckets
  /// behind it decrease by 1.
  void remove(int number) {
    auto const state = at(number).feedback.state();
    position from;
    for (int const tensor : plan_.buckets[index(number)].tensors) {
      waiting_[index(tensor)] = zeros<carried>({tensor});
      copy(state, from, waiting_[index(tensor)], {}, tensor);
      from = behind(from, tensor);
      plan_.places[index(tensor)].bucket = -1;
    }
    plan_.buckets.erase(plan_.buckets.begin() + number);
    std::erase(withholding_, &at(number));
    std::erase(done_, &at(number));
    parts_.erase(parts_.begin() + number);
    for (tensor_place& each : plan_.places) {
      each.bucket -= each.bucket > number ? 1 : 0;
    }
  }

  /// Moves the values that a tensor carries to other places of it: the i-th is then the one that was at `from[i]`, a
  /// permutation. On all ranks alike, before the tensor's next call. Collective where the tensor is in a bucket. With
  /// directions it moves whole columns of the tensor as a matrix, or is an `error` (option_out_of_range).
  void reorder(int tensor, std::span<std::int64_t const> from) {
    tensor_place const& where = plan_.places[index(tensor)];
    if (where.bucket < 0) {
      reorder(waiting_[index(tensor)], {}, tensor, from);
      return;
    }
    auto state = at(where.bucket).feedback.state();
    reorder(state, place_in_bucket(tensor), tensor, from);
    at(where.bucket).feedback.restore(state);
  }

  /// The times of the step: whoever begins a step makes them new, with an entry of each call whose gradients are there.
  overlap_times& times() { return times_; }
  overlap_times const& times() const { return times_; }

  /// The tensor takes no part in the next call of its bucket, on all ranks alike.
  void withhold(int tensor) {
    tensor_place const& place = plan_.places[index(tensor)];
    part& of = at(place.bucket);
    of.withheld.push_back({place.offset, place.offset + place.length});
    withholding_.push_back(&of);
  }

  /// Begins a step; returns the error of the step before, if that has failed.
  std::exception_ptr begin_step() {
    for (part* const each : std::exchange(withholding_, {})) {
      each->withheld.clear();
    }
    is_new_step_ = true;
    continue_step();
    return std::exchange(failed_, nullptr);
  }

  /// The calls that follow belong to the step of those before: they fail, and are undone, together. Their gradients are
  /// clipped apart, and their times count anew.
  void continue_step() {
    clipped_ = {};
    calls_ = 0;
  }

  /// True if the last step has made calls that `undo` can undo.
  bool can_undo() const { return !done_.empty(); }

  /// Undoes the calls of the last step: residuals and velocities are as before it. On all ranks alike, after the step
  /// and before the next one.
  void undo() {
    swap_done();
    done_.clear();
  }

  /// The first error of this step; null if there is none.
  std::exception_ptr const& failed() const { return failed_; }

  /// One bucket's call: gradients in, averages out; values of ranges that are withheld stay, and count for no norm.
  /// Collective; not after a call that has failed in this step. Clips to the norm by the gradients of the step that have
  /// come, this bucket's included: so all together are never scaled while their norm is below the bound. A usage error
  /// makes the call fail on all ranks: this rank gets the usage error, the others an error of its code that names this
  /// rank.
  template <class Values>
  void reduce(int bucket, Values const& values, double scale = 1,
              std::optional<error> const& usage_error = std::nullopt) {
    part& of = at(bucket);
    times_.buckets.resize(std::max(times_.buckets.size(), ++calls_));
    bucket_times& times = times_.buckets[calls_ - 1];
    times.began = times_.now();
    forget_last_step();
    bool has_kept = false;
    try {
      if (usage_error) {
        of.feedback.fail_on_all(std::make_exception_ptr(*usage_error));
      }
      keep_withheld(of, values);
      has_kept = true;
      of.update = &of.feedback(values, scale, of.withheld, &clipped_);
      done_.push_back(&of);
      of.feedback.average(*of.update, values);
    } catch (...) {
      fail(std::current_exception());
    }
    if (has_kept) {
      copy_withheld(of, values, true);
    }
    fence(of.allreduce.execution(), "oktopk::bucketed::call");
    of.withheld.clear();
    times.ended = times_.now();
  }

  /// Notes that the step has failed, on all ranks alike.
  void fail(std::exception_ptr why) {
    failed_ = std::move(why);
    forget_last_step();
    undo();
  }

  /// The Euclidean norm of this rank's residuals; between steps. Reads all of them.
  double residual_norm() const {
    norm_in_order<execution_space, value_type> norm;
    double all = 0;
    for (auto const& each : parts_) {
      all = std::hypot(all, static_cast<double>(norm.of(each->allreduce.execution(), each->feedback.residual())));
    }
    for (carried const& each : waiting_) {
      for (value_type const value : each.residual) {
        all = std::hypot(all, static_cast<double>(value));
      }
    }
    return all;
  }

  /// A copy of all that one step hands to the next; between steps.
  state_type state() const {
    std::vector<int> all(waiting_.size());
    std::iota(all.begin(), all.end(), 0);
    auto saved = zeros<state_type>(all);
    saved.lengths = lengths();
    std::vector<position> const begins = begins_of(all);
    for (std::size_t tensor = 0; tensor < waiting_.size(); ++tensor) {
      copy(waiting_[tensor], {}, saved, begins[tensor], all[tensor]);
    }
    for (std::size_t bucket = 0; bucket < parts_.size(); ++bucket) {
      auto state = parts_[bucket]->feedback.state();
      position from;
      for (int const tensor : plan_.buckets[bucket].tensors) {
        copy(state, from, saved, begins[index(tensor)], tensor);
        from = behind(from, tensor);
      }
      saved.allreduces.push_back(std::move(state.allreduce));
    }
    list_plan(saved);
    return saved;
  }

  /// The state from before the calls of the last step, or of the step that is under way.
  state_type state_before_step() {
    if (is_new_step_) { // and has changed nothing
      return state();
    }
    swap_done();
    state_type before = state();
    swap_done();
    return before;
  }

  /// Continues from a state of the same tensors, in any buckets. Collective; an `error` on every rank if the state does
  /// not fit, and then all is as before. If the buckets differ, each allreduce starts anew.
  void restore(state_type const& saved) {
    bool const same_plan = has_plan_of(saved);
    agreement terms("bucketed::restore");
    terms.fact("the same plan", same_plan);
    terms.note(fault::bad_state, fault_of(saved, same_plan));
    if (by_) {
      saved.moments.add_facts(terms);
    }
    terms.check_on(comm_);
    done_.clear();
    std::vector<typename feedback_type::state_type> before;
    std::vector<int> all(waiting_.size());
    std::iota(all.begin(), all.end(), 0);
    std::vector<position> const begins = begins_of(all);
    for (auto const& each : parts_) {
      before.push_back(each->feedback.state());
    }
    for (std::size_t bucket = 0; bucket < parts_.size(); ++bucket) {
      try {
        auto next = before[bucket];
        position into;
        for (int const tensor : plan_.buckets[bucket].tensors) {
          copy(saved, begins[index(tensor)], next, into, tensor);
          into = behind(into, tensor);
        }
        next.allreduce = same_plan ? saved.allreduces[bucket] : begun_anew(parts_[bucket]->allreduce);
        parts_[bucket]->feedback.restore(next);
      } catch (error const& why) { // on all ranks, in the same bucket
        if (breaks_communicator(why.code())) {
          throw; // no rank can restore anything over this communicator
        }
        for (std::size_t done = 0; done <= bucket; ++done) {
          parts_[done]->feedback.restore(before[done]);
        }
        throw;
      }
    }
    for (std::size_t tensor = 0; tensor < waiting_.size(); ++tensor) {
      if (plan_.places[tensor].bucket < 0) {
        waiting_[tensor] = zeros<carried>({all[tensor]});
        copy(saved, begins[tensor], waiting_[tensor], {}, all[tensor]);
      }
    }
  }

private:
  struct carried {
    std::vector<value_type> residual;
    std::vector<value_type> velocity;
    moments_state<value_type> moments;

    bool carries() const { return !residual.empty() || !moments.steps.empty(); }
  };

  /// Where a tensor's part begins in vectors of several tensors.
  struct position {
    std::int64_t value = 0;
    std::int64_t statistic = 0;
    std::int64_t number = 0;
  };

  static std::size_t index(int number) { return static_cast<std::size_t>(number); }

  position behind(position const& at, int tensor) const {
    return {at.value + plan_.places[index(tensor)].length, at.statistic + statistics(tensor), at.number + 1};
  }

  /// None without directions.
  tensor_shapes shapes_of(std::vector<int> const& tensors) const {
    tensor_shapes of;
    for (int const tensor : by_ ? tensors : std::vector<int>()) {
      of.push_back(shapes_[index(tensor)]);
    }
    return of;
  }

  std::int64_t statistics(int tensor) const { return by_ ? statistics_of(shapes_[index(tensor)]) : 0; }

  /// Of each of these tensors, one after the other, and the end.
  std::vector<position> begins_of(std::vector<int> const& tensors) const {
    std::vector<position> begins(1);
    for (int const tensor : tensors) {
      begins.push_back(behind(begins.back(), tensor));
    }
    return begins;
  }

  position place_in_bucket(int tensor) const {
    position at;
    for (int const each : plan_.buckets[index(plan_.places[index(tensor)].bucket)].tensors) {
      if (each == tensor) {
        break;
      }
      at = behind(at, each);
    }
    return at;
  }

  /// Zeros for tensors, in any type with a residual, a velocity and moments.
  template <class Carried>
  Carried zeros(std::vector<int> const& tensors) const {
    position const end = begins_of(tensors).back();
    Carried made;
    made.residual.resize(static_cast<std::size_t>(end.value));
    made.velocity.resize(has_velocity() ? made.residual.size() : 0);
    made.moments = moments_state<value_type>::of(shapes_of(tensors));
    return made;
  }

  /// Copies what a tensor carries; nothing where `from` has none.
  template <class From, class To>
  void copy(From const& from, position const& begin, To& to, position const& at, int tensor) const {
    auto const copy_part = [](auto const& values, std::int64_t first, auto& into, std::int64_t there,
                              std::int64_t count) {
      if (!values.empty()) {
        std::copy_n(values.begin() + first, count, into.begin() + there);
      }
    };
    std::int64_t const length = plan_.places[index(tensor)].length;
    copy_part(from.residual, begin.value, to.residual, at.value, length);
    copy_part(from.velocity, begin.value, to.velocity, at.value, length);
    copy_part(from.moments.squares, begin.statistic, to.moments.squares, at.statistic, statistics(tensor));
    copy_part(from.moments.steps, begin.number, to.moments.steps, at.number, by_ ? 1 : 0);
  }

  template <class Carried>
  void reorder(Carried& in, position const& at, int tensor, std::span<std::int64_t const> from) const {
    auto const move_in = [&](std::vector<value_type>& values, std::int64_t begin, std::int64_t count) {
      std::vector<value_type> const before = values;
      for (std::int64_t i = 0; i < count && !before.empty(); ++i) {
        values[static_cast<std::size_t>(begin + i)] =
            before[static_cast<std::size_t>(begin + from[static_cast<std::size_t>(i)])];
      }
    };
    if (by_) {
      matrix_place const of = place_behind({}, shapes_[index(tensor)]);
      for (std::int64_t i = 0; i < std::ssize(from); ++i) {
        if (from[static_cast<std::size_t>(i)] !=
            i / of.width * of.width + from[static_cast<std::size_t>(i % of.width)]) {
          throw error(fault::option_out_of_range,
                      "bucketed: the values of tensor " + std::to_string(tensor) +
                          " lie in another order, in which its rows are others: second moments are of its rows");
        }
      }
      move_in(in.moments.squares, at.statistic + of.column_statistics(), of.width);
    }
    move_in(in.residual, at.value, std::ssize(from));
    move_in(in.velocity, at.value, std::ssize(from));
  }

  static typename allreduce_type::state_type begun_anew(allreduce_type& allreduce) {
    if constexpr (requires { allreduce.reset(); }) {
      allreduce.reset();
      return allreduce.state();
    } else {
      return {};
    }
  }

  bool has_velocity() const { return how_.momentum > 0; }

  void swap_done() {
    for (part* const each : done_) {
      each->feedback.undo();
    }
  }

  void forget_last_step() {
    if (std::exchange(is_new_step_, false)) {
      done_.clear();
    }
  }

  // Values of withheld ranges are kept beside the averages: they must not become what a lossy format makes of zeros.
  // During the call they are zero if gradients are clipped.
  template <class Values>
  void keep_withheld(part& of, Values const& values) {
    if (of.withheld.empty()) {
      return;
    }
    fence(exec_, "oktopk::bucketed::withhold"); // the caller has written them
    std::int64_t count = 0;
    for (entry_range const range : of.withheld) {
      count += range.end - range.begin;
    }
    {
      cancel_on_unwind const alone(comm_); // room may be missing on one rank
      kept_.reserve(of.allreduce.execution(), count);
    }
    copy_withheld(of, values, false);
    for (auto const [begin, end] : of.withheld) {
      if (how_.clip_norm > 0) {
        fill_array("oktopk::bucketed::withhold", of.allreduce.execution(), values.data() + begin, end - begin,
                   value_type(0));
      }
    }
  }

  template <class Values>
  void copy_withheld(part& of, Values const& values, bool back) {
    value_type* kept = kept_.data();
    for (auto const [begin, end] : of.withheld) {
      value_type* const there = values.data() + begin;
      copy_array("oktopk::bucketed::withhold", of.allreduce.execution(), back ? kept : there, end - begin,
                 back ? there : kept);
      kept += end - begin;
    }
  }

  void list_plan(state_type& in) const {
    for (bucket const& each : plan_.buckets) {
      in.bucket_sizes.push_back(static_cast<std::int64_t>(each.tensors.size()));
      in.bucket_tensors.insert(in.bucket_tensors.end(), each.tensors.begin(), each.tensors.end());
    }
  }

  bool has_plan_of(state_type const& saved) const {
    state_type own;
    list_plan(own);
    return saved.bucket_sizes == own.bucket_sizes && saved.bucket_tensors == own.bucket_tensors;
  }

  // The sentence that says what is wrong with a saved state; empty if nothing is.
  std::string fault_of(state_type const& saved, bool same_plan) const {
    if (saved.lengths != lengths()) {
      return "the saved state is of other tensors";
    }
    auto const size = static_cast<std::size_t>(length());
    if (saved.residual.size() != size || saved.velocity.size() != (has_velocity() ? size : 0)) {
      return "the saved state is of another length or has another momentum";
    }
    if (std::string sentence = saved.moments.problem(by_ ? shapes_ : tensor_shapes()); !sentence.empty()) {
      return sentence;
    }
    bool const has_allreduces = !same_plan || saved.allreduces.size() == parts_.size();
    return are_finite(saved.residual) && are_finite(saved.velocity) && has_allreduces ? ""
                                                                                      : "the saved state is damaged";
  }

  execution_space exec_; // the caller's
  communicator_type comm_;
  error_feedback_options how_;
  std::optional<direction_options> by_; // its shapes are those of the last bucket
  tensor_shapes shapes_;                // of each tensor
  bucket_plan plan_;
  std::int64_t length_ = 0;      // of all tensors
  wide_number clipped_;          // the norm of the gradients of this step, bucket by bucket
  std::vector<carried> waiting_; // of tensors that are in no bucket
  std::vector<std::unique_ptr<part>> parts_;
  std::vector<part*> withholding_; // in the next calls
  std::vector<part*> done_;        // their calls, in the last step
  bool is_new_step_ = false;       // a step, whose first call has not come
  std::exception_ptr failed_;
  overlap_times times_;
  std::size_t calls_ = 0; // in this step
  buffer<value_type, typename execution_space::memory_space> kept_{"oktopk::bucketed::withheld"};
};

} // namespace detail
} // namespace oktopk
