// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "engine/catalogue.hpp"
#include "engine/value_buffer.hpp"

#include <oktopk/algorithm/options.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/direction_feedback.hpp>
#include <oktopk/training/bucket_engine.hpp>

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace oktopk::detail {

/// One call: gradients of tensors of the averager, one after the other in a buffer, which gets the averages.
struct tensor_arrival {
  value_buffer buffer;               ///< until `done` is called; may have a length alone where there is a fault
  std::vector<int> tensors;          ///< empty for a call by key
  std::string key;                   ///< of a call by key; a new one adds a tensor
  std::vector<std::int64_t> shape{}; ///< of that tensor, as its values lie in memory; none: one dimension
  /// Tensors whose values lie in another order now: the i-th is that which was at the i-th index.
  std::vector<std::pair<int, std::vector<std::int64_t>>> reordered;
  std::vector<int> used;           ///< 1 if this rank has a gradient of the tensor, else 0; empty if all ranks have all
  std::string fault;               ///< a sentence if the gradients cannot be used; the call then fails on all ranks
  std::string subject;             ///< the call, in words that ranks compare before its step; empty: they do not
  bool is_first = true;            ///< of its step: a step that fails changes no residual
  bool is_last = true;             ///< of its step
  bool continues = false;          ///< with `is_first`: the step of the calls before it, which fails as a whole
  double loss_scale = 1;           ///< a factor of the gradients that residuals do not have
  std::optional<double> density{}; ///< from this step on; none for the one before
  bool zero_on_error = false;      ///< the values of a call that fails are 0
  std::function<void(std::exception_ptr)> done{}; ///< called once, with null where all went well
};

/// The arguments of `tensor_averager::load` beside the states.
struct tensor_loading {
  std::vector<std::string> keys; ///< of the saved tensors
  std::string fault;             ///< of this rank, in words
  /// None: the state is of this rank. Else another number of ranks has saved, and this is the factor of the residuals; 0
  /// where the states are of a rank whose residual and velocity are not for this one.
  std::optional<double> share{};
  bool in_part = false;            ///< takes what both have, by the keys; zeros for the other tensors
  std::int32_t saved_by = -1;      ///< the rank; -1 if not known, or if there are several
  int steps_of_borders = 1;        ///< after which DDP has built its buckets anew
  std::optional<double> density{}; ///< that `set_density` had set
  std::string called = "load";     ///< as the program calls it, for its errors
};

/// What a step with values that are not finite gives: with zeros or infinities it is skipped.
enum class on_non_finite { error, zeros, infinities };

/// What the buffers of a step that is skipped get.
constexpr float value_of_skipped(on_non_finite gives) {
  return gives == on_non_finite::zeros ? 0 : std::numeric_limits<float>::infinity();
}

/// Figures of the last step of a `tensor_averager`.
struct step_figures {
  std::int64_t steps = 0;   ///< of all time
  std::int64_t skipped = 0; ///< of these
  bool was_skipped = false;
  double words = 0;       ///< of 4 bytes, that this rank has sent
  double step_values = 0; ///< that have come
  overlap_times times;
  int buckets = 0;   ///< as they are now
  double values = 0; ///< in them
  double selected = 0;
  int ranks = 1;
};

/// Averages of tensors over the ranks, each call with an allreduce of the catalogue and error feedback; behind
/// the C interface. DDP is PyTorch's DistributedDataParallel, which has its buckets averaged here.
///
/// A step is a backward pass, or the calls by key up to the next call of a key that was in it. Where a call of a step
/// fails, all of its calls are undone, and those that follow in it fail.
///
/// Sums and residuals are of type `Value`; values of other types are copied. All work on values is that of one instance of
/// `engine_space`, which `done` comes behind. Tensors that come together are a bucket.
/// All members are called on one thread, in the same order on all ranks. Calls with a `subject` are compared before
/// their step, in ceil(log2 P) messages of 4 words; then calls in another order, and the fault of one rank, are an
/// error that names them on every rank. After a call that has failed, ranks tell each other what was wrong: an
/// `agreement`.
///
/// DDP builds other buckets after its first iteration, after its second one for a static graph:
/// then residuals and velocities move with their tensors, and the allreduces start anew. After `load` so many steps use
/// the buckets of the saved state, whatever buckets arrive, so that a program that continues does the same as one that
/// was never interrupted. In these steps all tensors are reduced when all have arrived.
///
/// With directions the averages are of these, and each tensor has second moments by its shape.
///
/// DDP drops the average of a parameter that no rank has used in a backward pass. So such a tensor
/// takes no part in the call of its bucket: its residual and velocity stay until some rank uses it. Ranks agree on that
/// in one reduction of an integer a tensor before each call, where `used` is given.
template <gradient_value Value>
class tensor_averager {
  using space = engine_space;
  using rooms = value_rooms<Value, space>;
  using communicator_type = counted<any_communicator>;
  using allreduce = any_allreduce<space, any_communicator, Value>;
  using engine = detail::bucket_engine<direction_feedback<allreduce>>;
  using state_type = typename engine::state_type;
  using view = array_ref<Value, typename space::memory_space>;

public:
  /// Collective. `text` names an algorithm, of density 0.01 unless the text has another. Without tensors here, they come
  /// with their keys. `caller` is the name of the library in errors. Throws an `error` on every rank.
  tensor_averager(any_communicator comm, std::string caller, std::string text, error_feedback_options const& how,
                  std::optional<direction_options> const& by, std::vector<std::string> names,
                  std::vector<std::int64_t> const& lengths, on_non_finite gives, std::string const& fault)
      : comm_(std::move(comm)), caller_(std::move(caller)), text_(std::move(text)), how_(how), by_(by),
        on_non_finite_(gives), tensors_come_(lengths.empty() ? coming::by_key : coming::in_buckets),
        used_(lengths.size()), engine_(new_engine(lengths, by ? by->shapes : tensor_shapes())) {
    set_names(std::move(names));
    if (!fault.empty()) {
      agreement terms(caller_);
      terms.note(fault::option_out_of_range, fault);
      terms.check_on(comm_);
    }
    try_text(0); // finds what is wrong before the first call, as the next line does
    any_communicator over(comm_);
    error_feedback<allreduce>::validate(how_, over);
    agreement terms(caller_);
    terms.fact("directions", by_.has_value());
    if (by_) {
      terms.note(fault::option_out_of_range, by_->problem<Value>(how_));
      by_->add_facts(terms);
    }
    terms.check_on(comm_);
  }

  tensor_averager& operator=(tensor_averager&&) = delete;

  /// The calls of a step that was broken off get their error.
  ~tensor_averager() { break_off(); }

  /// Collective. An error is passed to `done`, and to the `done` of all later calls of the same step.
  void arrive(tensor_arrival what) {
    if (what.is_first) {
      break_off(); // the pass before, whose gradients the program has thrown away
      begin_step(what);
    }
    double const ready = engine_->times().now();
    engine_->times().buckets.push_back({ready, ready, ready});
    bool const is_last = what.is_last;
    is_open_ = !is_last;
    last_.step_values += static_cast<double>(what.buffer.length);
    try { // also where the step has failed: the caller knows that it is done
      for (auto const& [tensor, from] : what.reordered) {
        engine_->reorder(tensor, from);
      }
    } catch (...) {
      engine_->fail(std::current_exception());
    }
    arrived_.push_back({std::move(what), nullptr, nullptr});
    attempt([&] { take(arrived_.back()); });
    if (is_last && steps_in_saved_buckets_ > 0) {
      attempt([&] { reduce_together(); });
    }
    if (is_last || (steps_in_saved_buckets_ == 0 && !skips())) {
      deliver(engine_->failed());
    }
    steps_in_saved_buckets_ -= is_last && steps_in_saved_buckets_ > 0 ? 1 : 0;
  }

  /// Collective, between steps.
  void set_density(double density) {
    agreement terms(caller_ + ": set_density");
    detail::resolve_k(1, std::nullopt, density, terms);
    terms.fact("density", density).check_on(comm_);
    if (engine_->plan().buckets.empty()) {
      try_text(density);
    }
    for (int number = 0; number < bucket_count(); ++number) {
      set_density_of(engine_->at(number).allreduce, density);
    }
    density_ = density;
  }

  /// Collective, between steps. Undoes the last step: residuals and velocities are as before it, for a caller that
  /// throws its averages away; also one that was broken off. Nothing where it has failed or was skipped, which has undone
  /// it. An `error` (bad_state) where there is no step, or none since the last `undo` or `load`.
  void undo() {
    break_off();
    agreement terms(caller_ + ": undo");
    if (!engine_->can_undo() && !engine_->failed()) {
      terms.note(fault::bad_state, "there is no step to take back");
    }
    terms.fact("step", last_.steps).check_on(comm_);
    engine_->undo();
  }

  /// The bytes that `save` writes of a state of `bucketed` over an `any_allreduce`. In the middle of a step those of the
  /// state before it, to which the weights belong.
  std::vector<char> save() const {
    return detail::checkpoint_of(is_open_ ? engine_->state_before_step() : engine_->state());
  }

  /// The same from before the last step, where `undo` goes back to; of a step that has failed, or was undone, that of now.
  std::vector<char> save_before_step() { return detail::checkpoint_of(engine_->state_before_step()); }

  /// Collective; the residuals of all `saved` add up. An `error` on every rank if a rank has a fault or the states do
  /// not fit; then nothing has changed.
  void load(std::vector<std::span<char const>> const& saved, tensor_loading const& how) {
    break_off();
    agreement terms(caller_ + ": " + how.called);
    state_type state;
    note_fault(terms, [&] {
      if (!how.fault.empty()) {
        throw error(fault::bad_state, how.fault);
      }
      state = sum_of(saved, how);
    });
    terms.fact("other_ranks", how.share.has_value()).fact("partial", how.in_part);
    for (std::string const& each : how.keys) {
      terms.fact("key", each);
    }
    for (std::int64_t const each : state.bucket_sizes) {
      terms.fact("parameters of a bucket", each);
    }
    for (auto const each : state.bucket_tensors) {
      terms.fact("next parameter", each);
    }
    if (how.density) {
      detail::resolve_k(1, std::nullopt, *how.density, terms);
    }
    terms.fact("density", how.density.value_or(0)).check_on(comm_);
    if (how.share) {
      expect_different(how);
    }
    double const density = how.density.value_or(density_);
    auto fresh = new_engine(state.lengths, tensors_come_ == coming::by_key ? shapes_of(state)
                                           : by_                           ? by_->shapes
                                                                           : tensor_shapes());
    auto next = state.bucket_tensors.begin();
    agreement fitting(caller_ + ": " + how.called);
    for (std::size_t i = 0; i < state.bucket_sizes.size(); ++i) {
      add_bucket({next, next + state.bucket_sizes[i]}, *fresh, density);
      next += state.bucket_sizes[i];
      if (how.share) {
        note_fault(fitting, [&] {
          state.allreduces.at(i) = fresh->at(static_cast<int>(i)).allreduce.for_other_ranks(state.allreduces.at(i));
        });
      }
    }
    fitting.check_on(comm_);
    fresh->restore(state);
    fresh->times() = engine_->times();
    engine_ = std::move(fresh);
    density_ = density;
    if (tensors_come_ == coming::by_key) {
      set_names(how.keys);
    }
    used_.assign(state.lengths.size(), 0);
    steps_in_saved_buckets_ = tensors_come_ == coming::by_key || state.bucket_sizes.empty() ? 0 : how.steps_of_borders;
  }

  /// Of the tensors, by their numbers: names or keys, and lengths.
  std::vector<std::string> names() const { return names_; }
  std::vector<std::int64_t> lengths() const { return engine_->lengths(); }

  double residual_norm() const { return engine_->residual_norm(); }
  double words_sent() const { return comm_.total().words_sent(); }

  /// Figures of the last step, and of all of them.
  step_figures last_step() const {
    step_figures now = last_;
    now.times = engine_->times();
    now.buckets = bucket_count();
    now.ranks = comm_.size();
    for (int number = 0; number < now.buckets; ++number) {
      auto const& of = engine_->at(number).allreduce;
      now.values += static_cast<double>(of.length());
      now.selected += static_cast<double>(of.k());
    }
    return now;
  }

  /// The algorithm of each bucket, as it runs.
  std::vector<std::string> schemes() const {
    std::vector<std::string> all;
    for (int number = 0; number < bucket_count(); ++number) {
      auto const& of = engine_->at(number).allreduce;
      std::string const told = of.explain();
      all.push_back(of.text() + ", which is " + std::string(of.name()) + ": " + std::to_string(of.k()) + " of " +
                    std::to_string(of.length()) + " values" + (told == of.text() ? "" : " (" + told + ")"));
    }
    return all;
  }

  /// Notes when the backward pass of the last step ended.
  void backward_ended(std::chrono::steady_clock::time_point when) {
    engine_->times().wait_began = engine_->times().now(when);
  }

private:
  enum class coming { by_key, in_buckets };

  struct arrived : tensor_arrival {
    typename rooms::room copied;
    Value* values; ///< of the type of the sums, without the factor: the buffer's, or those that were copied; null: none
  };

  static std::size_t index(int number) { return static_cast<std::size_t>(number); }

  int bucket_count() const { return static_cast<int>(engine_->plan().buckets.size()); }

  static constexpr char const* incomplete = "a backward pass ended before all buckets had come";

  bool skips() const { return on_non_finite_ != on_non_finite::error; }

  // A backward pass that was broken off has changed nothing.
  void break_off() {
    if (std::exchange(is_open_, false)) {
      engine_->fail(std::make_exception_ptr(error(fault::length_mismatch, incomplete)));
      deliver(engine_->failed());
    }
  }

  void begin_step(tensor_arrival const& first) {
    if (first.continues) {
      engine_->continue_step();
    } else {
      engine_->begin_step();
    }
    engine_->times() = {};
    last_.step_values = 0;
    words_before_ = words_sent();
    loss_scale_ = first.loss_scale;
    attempt([&] {
      if (!first.subject.empty()) {
        agreement terms(caller_ + ": average");
        terms.note(fault::option_out_of_range, first.fault);
        terms.fact("call", first.subject).fact("density", first.density.value_or(0));
        if (tensors_come_ == coming::by_key) {
          terms.note(fault::option_out_of_range, length_fault(first));
          terms.fact("values of " + first.subject, first.buffer.length);
        }
        terms.check_on(comm_);
      }
    });
    if (first.density && *first.density != density_) { // an invalid density is an error there
      attempt([&] { set_density(*first.density); });
    }
  }

  /// Notes what the job throws as the fault of this rank, in a saved state.
  template <class Job>
  static void note_fault(agreement& terms, Job const& job) {
    try {
      job();
    } catch (...) { // whatever it is: the other ranks wait for what this one says
      terms.note(fault::bad_state, error_of_rank(std::current_exception()).sentence());
    }
  }

  // An error on every rank if two ranks go on from what the same rank has saved.
  void expect_different(tensor_loading const& how) {
    std::vector<std::int32_t> all(index(comm_.size()));
    allgather(comm_, std::span<std::int32_t const>(&how.saved_by, 1), std::span(all), phase::control, workspace_);
    for (auto one = all.begin(); one != all.end(); ++one) {
      if (auto const other = std::find(std::next(one), all.end(), *one); *one >= 0 && other != all.end()) {
        throw error(fault::bad_state, caller_ + ": " + how.called + ": rank " + std::to_string(one - all.begin()) +
                                          " and rank " + std::to_string(other - all.begin()) +
                                          " both have the saved state of rank " + std::to_string(*one) +
                                          ", whose residuals would count twice");
      }
    }
  }

  template <class Job>
  void attempt(Job const& job) {
    try {
      engine_->failed() ? void() : job();
    } catch (...) {
      engine_->fail(std::current_exception());
    }
  }

  void set_names(std::vector<std::string> names) {
    names_ = std::move(names);
    numbers_.clear();
    for (std::size_t i = 0; i < names_.size(); ++i) {
      numbers_.emplace(names_[i], static_cast<int>(i));
    }
  }

  /// A sentence if a key comes with another length than before; else empty.
  std::string length_fault(tensor_arrival const& what) const {
    auto const found = numbers_.find(what.key);
    if (!what.fault.empty() || found == numbers_.end()) {
      return {};
    }
    std::int64_t const length = engine_->plan().places[index(found->second)].length;
    return length == what.buffer.length
               ? ""
               : "the tensor of key '" + what.key + "' has " + std::to_string(what.buffer.length) +
                     " values, and had " + std::to_string(length) + " before";
  }

  int number_of_key(tensor_arrival const& what) {
    auto const [found, is_new] = numbers_.emplace(what.key, static_cast<int>(names_.size()));
    if (is_new) {
      names_.push_back(what.key);
      used_.push_back(0);
      engine_->add_tensor(what.buffer.length, what.shape);
    }
    return found->second;
  }

  void take(arrived& what) {
    if (tensors_come_ == coming::by_key) {
      what.tensors = {number_of_key(what)};
    }
    for (std::size_t i = 0; i < what.used.size(); ++i) {
      used_[index(what.tensors[i])] = what.used[i];
    }
    if (what.fault.empty()) {
      if (what.buffer.type == element_of<Value>) {
        what.values = static_cast<Value*>(what.buffer.data);
      } else {
        what.copied = rooms_.take(exec(), what.buffer.length);
        what.values = what.copied->data();
        widen(exec(), what.buffer, what.values);
      }
      multiply_all(what, 1 / loss_scale_);
    }
    if (steps_in_saved_buckets_ == 0) {
      int const number = number_of(what.tensors);
      auto const values = what.fault.empty() ? view(what.values, static_cast<std::size_t>(what.buffer.length)) : view();
      reduce(number < 0 ? adopt(what.tensors) : number, values, what, what.fault);
    }
  }

  void multiply_all(arrived const& what, double factor) const {
    if (factor != 1) {
      multiply(exec(), what.values, what.buffer.length, static_cast<Value>(factor));
    }
  }

  /// Ends the calls that have arrived: with their averages, or with an error.
  void deliver(std::exception_ptr why) {
    if (arrived_.empty()) {
      return;
    }
    try {
      if (!why) {
        write_averages();
      }
    } catch (...) {
      engine_->fail(std::current_exception());
    }
    why = why ? why : engine_->failed();
    last_.was_skipped = why && skips() && error_of_rank(why).code() == fault::non_finite;
    last_.steps += arrived_.back().is_last ? 1 : 0;
    last_.skipped += last_.was_skipped ? 1 : 0;
    last_.words = words_sent() - words_before_;
    try {
      for (arrived const& each : arrived_) {
        if (each.buffer.data != nullptr && why && (last_.was_skipped || each.zero_on_error)) {
          fill(exec(), each.buffer, last_.was_skipped ? value_of_skipped(on_non_finite_) : 0);
        }
      }
      // Whoever hears of the end reads the values.
      fence(exec(), "oktopk::engine::deliver");
    } catch (...) { // the device is lost
      why = std::current_exception();
      last_.was_skipped = false;
    }
    for (arrived& each : std::exchange(arrived_, {})) {
      if (each.copied) {
        rooms_.give_back(std::move(each.copied));
      }
      each.done(last_.was_skipped ? nullptr : why);
    }
  }

  /// Enqueues what the program gets. Throws where an average is too large for the program's type.
  void write_averages() {
    for (arrived const& each : arrived_) {
      multiply_all(each, loss_scale_);
      if (each.copied) {
        narrow(exec(), each.values, each.buffer);
        if (skips() && !are_finite(exec(), each.buffer, found_)) { // of fewer bits, on all ranks
          throw error(fault::non_finite, "an average overflows");
        }
      }
    }
  }

  // The sum of this rank's share of the saved states.
  state_type sum_of(std::vector<std::span<char const>> const& saved, tensor_loading const& how) const {
    bool const by_key = tensors_come_ == coming::by_key;
    state_type state;
    for (std::size_t i = 0; i < saved.size(); ++i) {
      auto next = oktopk::detail::state_of<state_type>(saved[i]);
      if (how.in_part) {
        next = part_of(next, how.keys);
      }
      if (next.bucket_tensors.size() < next.lengths.size()) { // some in no bucket yet: all are put into new ones
        next.bucket_sizes.clear();
        next.bucket_tensors.clear();
        next.allreduces.clear();
      }
      if ((!by_key && next.lengths != engine_->lengths()) ||
          !detail::problem_of(next.lengths, {.order = next.order()}).empty() || !has_sound_buckets(next) ||
          (!how.in_part && next.lengths.size() != how.keys.size()) ||
          (i > 0 && (next.lengths != state.lengths || next.residual.size() != state.residual.size()))) {
        throw error(fault::bad_state, "the saved state is of other parameters");
      }
      if (i == 0) {
        state = std::move(next);
        continue;
      }
      if (next.moments.squares != state.moments.squares) {
        throw error(fault::bad_state,
                    "the saved states have different second moments, which are the same on all ranks");
      }
      std::transform(state.residual.begin(), state.residual.end(), next.residual.begin(), state.residual.begin(),
                     std::plus<>());
    }
    double const factor = how.share.value_or(1);
    for (Value& each : state.residual) {
      each = factor == 0 ? Value(0) : each * static_cast<Value>(factor);
    }
    if (factor == 0) {
      std::fill(state.velocity.begin(), state.velocity.end(), Value(0));
    }
    return state;
  }

  // What a saved state has of this model's tensors, which are in no buckets then.
  state_type part_of(state_type const& saved, std::vector<std::string> const& keys) const {
    std::vector<std::int64_t> begins{0};
    for (std::int64_t const length : saved.lengths) {
      begins.push_back(begins.back() + std::max<std::int64_t>(length, 0));
    }
    if (saved.lengths.size() != keys.size() || std::ssize(saved.residual) != begins.back() ||
        (!saved.velocity.empty() && std::ssize(saved.velocity) != begins.back()) ||
        !saved.moments.problem(shapes_of(saved)).empty()) {
      throw error(fault::bad_state, "the saved state is damaged");
    }
    state_type taken;
    taken.lengths = engine_->lengths();
    if (engine_->has_directions() != saved.has_later_parts()) {
      throw error(fault::bad_state, "the saved state has second moments, and this averager has none, or the reverse");
    }
    taken.moments = moments_state<Value>::of(engine_->has_directions() ? engine_->shapes() : tensor_shapes());
    std::int64_t statistic = 0; // of the tensor among those of now
    for (std::size_t i = 0; i < names_.size(); ++i) {
      std::int64_t const length = taken.lengths[i];
      auto const place = static_cast<std::size_t>(std::find(keys.begin(), keys.end(), names_[i]) - keys.begin());
      bool const is_saved = place < keys.size();
      if (is_saved && saved.lengths[place] != length) {
        throw error(fault::bad_state, names_[i] + " has " + std::to_string(length) + " values, and had " +
                                          std::to_string(saved.lengths[place]) + " when the state was saved");
      }
      auto const append = [&](std::vector<Value> const& from, std::vector<Value>& to) {
        to.resize(to.size() + static_cast<std::size_t>(length));
        if (is_saved) {
          std::copy_n(from.begin() + begins[place], length, to.end() - length);
        }
      };
      append(saved.residual, taken.residual);
      if (!saved.velocity.empty()) {
        append(saved.velocity, taken.velocity);
      }
      if (engine_->has_directions()) {
        if (is_saved && saved.moments.rows[place] != taken.moments.rows[i]) {
          throw error(fault::bad_state, names_[i] + " has another shape than when the state was saved");
        }
        std::int64_t const count = statistics_of(engine_->shapes()[i]);
        if (is_saved) {
          tensor_shapes const before = shapes_of(saved);
          std::int64_t begin = 0;
          for (std::size_t other = 0; other < place; ++other) {
            begin += statistics_of(before[other]);
          }
          std::copy_n(saved.moments.squares.begin() + begin, count, taken.moments.squares.begin() + statistic);
          taken.moments.steps[i] = saved.moments.steps[place];
        }
        statistic += count;
      }
    }
    return taken;
  }

  /// Of the tensors of a saved state with directions, as matrices; none without.
  static tensor_shapes shapes_of(state_type const& saved) {
    tensor_shapes shapes;
    for (std::size_t i = 0; i < std::min(saved.moments.rows.size(), saved.lengths.size()); ++i) {
      std::int64_t const rows = std::max<std::int64_t>(saved.moments.rows[i], 1);
      shapes.push_back({rows, saved.lengths[i] / rows});
    }
    return shapes;
  }

  static bool has_sound_buckets(state_type const& state) {
    auto const& sizes = state.bucket_sizes;
    return std::all_of(sizes.begin(), sizes.end(), [](std::int64_t size) { return size > 0; }) &&
           std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0)) == std::ssize(state.bucket_tensors) &&
           sizes.size() == state.allreduces.size();
  }

  std::unique_ptr<engine> new_engine(std::vector<std::int64_t> const& lengths, tensor_shapes const& shapes) const {
    std::optional<direction_options> by = by_;
    if (by) {
      by->shapes = shapes;
    }
    return std::make_unique<engine>(exec(), comm_, lengths, how_, by);
  }

  allreduce made_by_text(std::int64_t length) const {
    try {
      return make_allreduce<Value>(exec(), comm_, text_, {.length = length, .k = {}, .density = 0.01});
    } catch (error const& found) { // programs know no function of this name
      std::string const said = found.sentence();
      std::string const maker = "make_allreduce: ";
      throw error(found.code(), said.starts_with(maker) ? caller_ + ": " + said.substr(maker.size()) : said);
    }
  }

  /// Makes an allreduce of all values for the errors alone: of the text before there is a bucket, and of another density
  /// beside it, if that is not 0. A text with a k, which is invalid for 0 values, is tried with the first tensor that
  /// comes by its key.
  void try_text(double density) const {
    std::optional<allreduce> of_whole;
    try {
      of_whole.emplace(made_by_text(engine_->length()));
    } catch (error const& found) {
      if (tensors_come_ == coming::in_buckets || found.code() != fault::k_out_of_range) {
        throw;
      }
      return;
    }
    set_density_of(*of_whole, density);
  }

  static void set_density_of(allreduce& of, double density) {
    if (density > 0) {
      of.set_k(detail::entries_at(density, of.length()));
    }
  }

  void add_bucket(std::vector<int> const& tensors, engine& to, double density) const {
    to.add(tensors, 0, [&](bucket const& of) {
      auto made = made_by_text(of.length);
      set_density_of(made, density);
      return made;
    });
  }

  /// The number of the bucket with exactly these tensors in this order; negative if there is none.
  int number_of(std::vector<int> const& tensors) const {
    int const found = tensors.empty() ? -1 : engine_->plan().places[index(tensors.front())].bucket;
    return found >= 0 && engine_->plan().buckets[index(found)].tensors == tensors ? found : -1;
  }

  /// Makes a bucket of these tensors, and removes the buckets that they are in.
  int adopt(std::vector<int> const& tensors) {
    for (int const each : tensors) {
      if (int const number = engine_->plan().places[index(each)].bucket; number >= 0) {
        engine_->remove(number);
      }
    }
    add_bucket(tensors, *engine_, density_);
    return bucket_count() - 1;
  }

  /// Replaces the gradients of a bucket by averages. Collective.
  void reduce(int number, view const& gradients, tensor_arrival const& what, std::string const& own_fault) {
    std::vector<int> const& tensors = engine_->plan().buckets[index(number)].tensors;
    std::vector<int> uses;
    if (!what.used.empty()) {
      for (int const each : tensors) {
        uses.push_back(used_[index(each)]);
      }
      allreduce_integers(comm_, std::span(uses), reduction::max, phase::control, workspace_);
    }
    for (std::size_t i = 0; i < uses.size(); ++i) {
      if (uses[i] == 0) {
        engine_->withhold(tensors[i]);
      }
    }
    std::optional<error> fault;
    if (!own_fault.empty()) {
      fault.emplace(fault::option_out_of_range, own_fault);
    }
    engine_->reduce(number, gradients, 1, fault);
    if (engine_->failed()) {
      name_fault(tensors, uses, gradients, own_fault);
    }
  }

  /// After a call that has failed on all ranks: they tell each other what they know of it, so that the error names the
  /// tensor on each of them. Collective, unless the communicator is lost.
  void name_fault(std::vector<int> const& tensors, std::vector<int> const& uses, view const& gradients,
                  std::string const& own_fault) {
    error const found = error_of_rank(engine_->failed());
    if (found.code() == fault::caller_failed) { // of this rank alone, or of the communicator
      return;
    }
    agreement terms("rank 0"); // the first with a fault, where all ranks have the same one
    terms.note(found.code(), found.code() == fault::non_finite && own_fault.empty()
                                 ? place_of_non_finite(tensors, uses, gradients)
                                 : own_fault);
    try {
      terms.check_on(comm_);
    } catch (...) {
      engine_->fail(std::current_exception());
    }
  }

  // A sentence; empty where all values of the bucket are finite.
  std::string place_of_non_finite(std::vector<int> const& tensors, std::vector<int> const& uses,
                                  view const& gradients) const {
    auto const values = on_host_to_read(gradients);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      detail::tensor_place const& place = engine_->plan().places[index(tensors[i])];
      for (std::int64_t at = 0; (uses.empty() || uses[i] != 0) && at < place.length; ++at) {
        if (!is_finite(values[static_cast<std::size_t>(place.offset + at)])) {
          return "the value at index " + std::to_string(place.offset + at) + " is not finite: index " +
                 std::to_string(at) + " of " + names_[index(tensors[i])];
        }
      }
    }
    return {};
  }

  /// The values for the host to read: those themselves, or a copy of a device's.
  auto on_host_to_read(view const& values) const {
    if constexpr (is_device<space>) {
      return on_host(exec(), values, "oktopk::engine::place_of_non_finite");
    } else {
      return std::span(values.data(), values.extent(0));
    }
  }

  /// Reduces all tensors that have arrived, in the existing buckets, by way of a copy.
  void reduce_together() {
    auto const& any =
        *std::max_element(arrived_.begin(), arrived_.end(), [](tensor_arrival const& a, tensor_arrival const& b) {
          return a.fault.size() < b.fault.size(); // one with a fault, where there is one
        });
    engine_->times().buckets.resize(index(bucket_count()), {engine_->times().now(), 0, 0});
    for (int number = 0; number < bucket_count() && !engine_->failed(); ++number) {
      bucket const& of = engine_->plan().buckets[index(number)];
      auto copy = rooms_.take(exec(), of.length);
      bool const is_whole = !any.fault.empty() || exchange(number, copy->data(), false) == of.tensors.size();
      reduce(number, view(copy->data(), static_cast<std::size_t>(of.length)), any, is_whole ? any.fault : incomplete);
      if (!engine_->failed()) {
        exchange(number, copy->data(), true);
      }
      rooms_.give_back(std::move(copy));
    }
  }

  /// Enqueues copies of the values of a bucket's tensors between the calls that have arrived and `values`; returns the
  /// number of tensors found.
  std::size_t exchange(int number, Value* values, bool back) {
    std::size_t count = 0;
    for (arrived const& each : arrived_) {
      Value* here = each.values;
      for (int const tensor : each.tensors) {
        detail::tensor_place const& place = engine_->plan().places[index(tensor)];
        if (place.bucket == number) {
          Value* const there = values + place.offset;
          copy_array("oktopk::engine::exchange", exec(), back ? there : here, place.length, back ? here : there);
          count += 1;
        }
        here += place.length;
      }
    }
    return count;
  }

  space const& exec() const { return instance_.get(); }

  typename engine_device<space>::instance instance_; // the first: all else uses it
  communicator_type comm_;
  std::string caller_;
  std::string text_;
  error_feedback_options how_;
  std::optional<direction_options> by_; // with the shapes of tensors that come in buckets
  on_non_finite on_non_finite_;
  coming tensors_come_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, int> numbers_; // of the names
  std::vector<int> used_;                        // each tensor, by this rank in this step
  std::unique_ptr<engine> engine_;
  collective_workspace workspace_;
  rooms rooms_;
  shared_numbers<std::int32_t, space> found_{"oktopk::engine::found"};
  std::vector<arrived> arrived_;   // and not delivered
  bool is_open_ = false;           // a step has begun, and its last call has not come
  int steps_in_saved_buckets_ = 0; // for so many steps after a load
  double density_ = 0;             // that was set or loaded; 0: the text's
  double loss_scale_ = 1;          // of this step
  double words_before_ = 0;        // the last step
  step_figures last_;
};

} // namespace oktopk::detail
