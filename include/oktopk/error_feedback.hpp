// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// Error feedback over a sparse allreduce, for optimizers of your own.

#include <oktopk/algorithm/concept.hpp>
#include <oktopk/comm/agreement.hpp>
#include <oktopk/core/checkpoint.hpp>
#include <oktopk/training/feedback.hpp>
#include <oktopk/training/norm.hpp>

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <utility>

namespace oktopk {

/// The residual of a rank, and the sums over all ranks of the entries that a sparse allreduce selects (paper, Algorithm
/// 2, lines 3 to 5).
///
/// Each call: accumulator = residual + scale * gradient; update = allreduce(accumulator); residual = accumulator with
/// the contributed entries cleared and the returned ones added. So nothing is lost: over all ranks the residuals and
/// the updates add up to the gradients. The optimizer takes the average, `update / P`: sparse from the update, or as a
/// dense vector from `average`.
///
/// With momentum the velocity takes the place of the gradient (momentum correction), and the velocity of entries that
/// were sent is cleared (factor masking), unless all entries are sent in every call, because then there would be no
/// momentum at all (Lin et al., Deep Gradient Compression, ICLR 2018, sections 3.1 and 3.2). Each rank clips its own
/// gradient, before all else: so the average of the gradients has at most that norm. With `residual_decay` b the
/// accumulator is b * residual + gradient, as in DeMo and SparseLoCo; the decayed part is lost. The gradients that add
/// up are the scaled ones, in the value type: an entry that clipping or `scale` rounds to 0 there is in no residual and
/// no update.
///
/// Holds two vectors of the gradient's length, and two more with momentum. Work goes to the allreduce's instance of the
/// execution space: kernels on that instance may read update, residual and averages at once, others after a fence. A
/// call that throws leaves the residual as it was. Neither copied nor moved, as the allreduce.
template <gradient_allreduce Allreduce>
class error_feedback {
public:
  using allreduce_type = Allreduce;
  using execution_space = typename Allreduce::execution_space;
  using value_type = typename Allreduce::value_type;
  using index_type = typename Allreduce::index_type;
  using memory_space = typename execution_space::memory_space;
  using vector_type = Kokkos::View<value_type*, memory_space>;
  /// A view for reading only. It counts no references, because two threads must not count them at once.
  using const_vector_type = Kokkos::View<value_type const*, memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  using update_type = typename Allreduce::update_type;
  using options = detail::error_feedback_options;

  /// All that is carried from one call to the next, on the host; a plain value.
  struct state_type {
    std::vector<value_type> residual;
    std::vector<value_type> velocity; ///< empty without momentum
    typename Allreduce::state_type allreduce;

    void forget_ranks() { allreduce = for_other_ranks(std::move(allreduce)); }

    /// For `save` and `load`.
    static std::string type_name() { return "error feedback over " + Allreduce::state_type::type_name(); }

    template <class State, class Visit>
    static void each_part(State& state, Visit& visit) {
      visit(state.residual);
      visit(state.velocity);
      Allreduce::state_type::each_part(state.allreduce, visit);
    }
  };

  /// `allreduce` must outlive this object. A call takes `gradient` as it is for kernels on the allreduce's instance:
  /// writes to it on another instance must have been waited for.
  explicit error_feedback(Allreduce& allreduce) : error_feedback(allreduce.execution(), allreduce) {}

  /// The same with the instance `exec`, on which the caller writes gradients: if it is not the allreduce's instance,
  /// every call waits for it first. Kokkos before 4.0 cannot compare instances, so a call always waits.
  error_feedback(execution_space exec, Allreduce& allreduce)
      : callers_(std::move(exec)), exec_(allreduce.execution()), allreduce_(&allreduce),
        residual_(vector("oktopk::error_feedback::residual")),
        accumulator_(vector("oktopk::error_feedback::accumulator", Kokkos::WithoutInitializing)) {}

  /// The same with options. Collective; wrong options are `option_out_of_range`, different ones `ranks_disagree`, on
  /// every rank.
  error_feedback(execution_space exec, Allreduce& allreduce, detail::error_feedback_options const& how)
      : error_feedback(std::move(exec), allreduce) {
    validate(how, allreduce.comm());
    options_ = how;
    if (how.momentum > 0) {
      velocity_ = vector("oktopk::training::velocity");
      next_velocity_ = vector("oktopk::training::next_velocity", Kokkos::WithoutInitializing);
    }
  }

  error_feedback(Allreduce& allreduce, detail::error_feedback_options const& how)
      : error_feedback(allreduce.execution(), allreduce, how) {}

  error_feedback& operator=(error_feedback&&) = delete;

  /// Throws what the constructor would throw for these options, on every rank. Collective.
  static void validate(detail::error_feedback_options const& how, typename Allreduce::communicator_type& comm) {
    agreement terms("error_feedback");
    terms.note(fault::option_out_of_range, how.problem());
    terms.note(fault::option_out_of_range, detail::decay_fault<value_type>("the momentum", how.momentum));
    terms.fact("momentum", how.momentum).fact("nesterov", how.nesterov).fact("factor masking", how.factor_masking);
    terms.fact("clip_norm", how.clip_norm).fact("residual_decay", how.residual_decay).check_on(comm);
  }

  Allreduce& allreduce() { return *allreduce_; }
  execution_space const& execution() const { return exec_; }
  options const& feedback_options() const { return options_; }
  /// Valid until the next call.
  const_vector_type residual() const { return residual_; }

  /// Sets a hook that every call runs with the accumulator, right before the allreduce; null for none. If the hook
  /// throws, the call fails on all ranks, as by `fail_on_all`.
  void before_allreduce(std::function<void(const_vector_type)> hook) { hook_ = std::move(hook); }

  /// One iteration. Collective. `gradient` is a rank-1 view of `length()` values that the execution space can reach, of
  /// the allreduce's type or of a narrower one (half precision is summed in `float`). The update holds sums over the
  /// ranks, and is valid until the next call. Throws an `error` on every rank where some rank's accumulator is not
  /// finite or of another length.
  ///
  /// `withheld` ranges, the same on all ranks, take no part. The gradient there counts only for the norm that clips, so
  /// set it to 0 with `clip_norm`. Residual and velocity stay. The entries of the update there (zeros, or their
  /// rounding) must not be applied. For parameters that no rank has used. The ranges lie within the length and do not
  /// overlap.
  ///
  /// `clipped` is the norm of the gradients that were given before and clip together with this one; this one is added
  /// to it. Null: this one clips alone.
  template <class Gradient>
    requires detail::gradient_view<Gradient, value_type, execution_space>
  update_type const& operator()(Gradient const& gradient, double scale = 1,
                                std::span<detail::entry_range const> withheld = {},
                                detail::wide_number* clipped = nullptr) {
    if (auto const length = static_cast<std::int64_t>(gradient.extent(0)); length != allreduce_->length()) {
      fail_on_all(length);
    }
    wait_for_caller();
    return committed(call<Gradient>(gradient, scale, withheld, clipped), withheld);
  }

  /// One iteration with an accumulator that the caller makes: `make(residual, accumulator)`, both pointers to `length()`
  /// values, enqueues kernels on `execution()` that write the second from the first. Collective, and all else is as with
  /// a gradient. Of the options only the hook counts here. For optimizers whose residual is not of gradients.
  template <std::invocable<value_type const*, value_type*> Make>
  update_type const& accumulate(Make const& make) {
    wait_for_caller();
    make(static_cast<value_type const*>(residual_.data()), accumulator_.data());
    return committed(call_hooked(), {});
  }

  /// The same with an accumulator of the gradient's directions: of `scale` times the gradient, by `terms`. `withheld` is
  /// as with a gradient.
  template <class Gradient>
    requires detail::gradient_view<Gradient, value_type, execution_space>
  update_type const& accumulate(Gradient const& gradient, value_type scale,
                                detail::direction_terms<value_type> const& terms,
                                std::span<detail::entry_range const> withheld = {}) {
    wait_for_caller();
    if constexpr (takes_gradients<Gradient>) {
      if (withheld.empty() && fuses(gradient)) {
        return committed((*allreduce_)(making_of(gradient, scale, terms)), {});
      }
    }
    enqueue("oktopk::error_feedback::accumulate", accumulator_.extent(0),
            detail::direction_accumulation<vector_type, Gradient, value_type>{accumulator_, residual_, gradient, scale,
                                                                              terms});
    withhold(withheld);
    return committed(call_hooked(), withheld);
  }

  /// The factor by which `clip_norm` scales this gradient down; `clipped` is as in a call.
  template <class Gradient>
  detail::wide_number clipping_factor(Gradient const& gradient, detail::wide_number* clipped = nullptr) {
    return norm_.factor_to(exec_, gradient, options_.clip_norm, clipped);
  }

  /// Undoes the changes of the last call to residual and velocity, for a caller that does not use the update after all;
  /// on every rank. Valid after a call that has returned; a second one undoes the first. The allreduce's own state
  /// stays; it holds no gradients.
  void undo() { swap_vectors(); }

  /// Writes the averages over all ranks into a dense vector of `length()` values: update / P, and 0 elsewhere.
  template <class Average>
    requires detail::accumulator_view<Average, value_type, execution_space> &&
             (!std::is_const_v<typename Average::value_type>)
  void average(update_type const& update, Average const& into) const {
    if (static_cast<std::int64_t>(into.extent(0)) != allreduce_->length()) {
      throw error(fault::length_mismatch, "error_feedback: averages of length " + std::to_string(allreduce_->length()) +
                                              " do not fit a vector of length " + std::to_string(into.extent(0)));
    }
    detail::fill_array("oktopk::error_feedback::clear", exec_, into, allreduce_->length(), value_type(0));
    auto const ranks = static_cast<value_type>(this->ranks());
    detail::apply_averages<false>("oktopk::error_feedback::average", exec_, update, ranks, into);
  }

  /// Makes this call fail on all ranks, for a rank that finds its input wrong: takes the place of the call, which the
  /// others have entered or will enter. Throws `length_mismatch` on this rank and on the others, with the wrong length.
  [[noreturn]] void fail_on_all(std::int64_t wrong_length) {
    bool const is_wrong = wrong_length >= 0 && wrong_length != allreduce_->length();
    fail({fault::length_mismatch, is_wrong ? wrong_length : 0,
          is_wrong ? detail::fault_subject::value : detail::fault_subject::rank});
  }

  /// The same for a rank that has an exception. Throws `why` here, unless the communicator breaks down meanwhile, and
  /// on the others an error of the code of `why`; `caller_failed` if that is no `error`, or one of another communicator.
  [[noreturn]] void fail_on_all(std::exception_ptr const& why) {
    detail::throw_told(why, [this](error const& of) { fail({of.code(), 0, detail::fault_subject::rank}); });
  }

  /// A copy of all that one call hands to the next.
  state_type state() const {
    char const* const label = "oktopk::error_feedback::state";
    return {detail::on_host(exec_, residual_, label), detail::on_host(exec_, velocity_, label), allreduce_->state()};
  }

  /// Continues from a saved state. Collective; an `error` on every rank if the state does not fit.
  void restore(state_type const& saved) {
    agreement terms("error_feedback::restore");
    if (!detail::fits(saved.residual, residual_) || !detail::fits(saved.velocity, velocity_)) {
      terms.note(fault::bad_state, "the saved state is of another length, has another momentum, or is damaged");
    }
    terms.check_on(allreduce_->comm());
    allreduce_->restore(saved.allreduce);
    Kokkos::deep_copy(exec_, residual_, detail::host_view(saved.residual));
    Kokkos::deep_copy(exec_, velocity_, detail::host_view(saved.velocity));
    detail::fence(exec_, "oktopk::error_feedback::restore");
  }

protected:
  void wait_for_caller() const {
    if (!detail::same_instance(callers_, exec_)) {
      detail::fence(callers_, "oktopk::error_feedback::caller");
    }
  }

  int ranks() const { return allreduce_->comm().size(); }

private:
  using making = detail::accumulation<index_type, value_type, memory_space>;

  template <class Gradient>
  static constexpr bool takes_gradients =
      std::invocable<Allreduce&, making const&> && detail::same_value_type<Gradient, value_type>;

  // One pass accumulates and selects if nothing else reads the accumulator in between and the gradient does not lie in
  // it.
  template <class Gradient>
  bool fuses(Gradient const& gradient) const {
    return !hook_ && gradient.span_is_contiguous() && gradient.data() != accumulator_.data();
  }

  template <class Gradient>
  making making_of(Gradient const& gradient, value_type scale, detail::direction_terms<value_type> const& terms) {
    array_ref<value_type const, memory_space> const plain(gradient.data(), gradient.extent(0));
    return {residual_, plain, accumulator_, scale, terms};
  }

  update_type const& committed(update_type const& update, std::span<detail::entry_range const> withheld) {
    keep_rest(update, withheld);
    swap_vectors(); // the accumulator becomes the residual
    return update;
  }

  [[noreturn]] void fail(detail::fault_report const& why) {
    allreduce_->fail(why);
    throw error(why.code, "error_feedback: a rank made this call fail");
  }

  static std::size_t index(std::int64_t number) { return static_cast<std::size_t>(number); }

  template <class... Properties>
  vector_type vector(char const* label, Properties const&... properties) const {
    return vector_type(Kokkos::view_alloc(exec_, std::string(label), properties...), index(allreduce_->length()));
  }

  // The vectors that a call has written take the place of those from before it.
  void swap_vectors() {
    std::swap(residual_, accumulator_);
    std::swap(velocity_, next_velocity_);
  }

  template <class Kernel>
  void enqueue(char const* label, std::size_t count, Kernel const& kernel) const {
    using range = detail::index_range<execution_space>;
    Kokkos::parallel_for(label, range(exec_, 0, static_cast<std::int64_t>(count)), kernel);
  }

  template <class Gradient>
  update_type const& call(Gradient const& gradient, double scale, std::span<detail::entry_range const> withheld,
                          detail::wide_number* clipped) {
    // A norm that is not finite is left to the allreduce, which names the entry.
    detail::wide_number factor = clipping_factor(gradient, clipped);
    if (options_.momentum == 0) {
      factor = factor * detail::wide_number::of(scale);
    }
    if (factor.underflows<value_type>()) {
      // In double precision, and in steps that each make the product smaller: none underflows before the product does.
      int const exponent = std::max(factor.exponent, -2144); // makes 0 of every double already
      int const half = exponent / 2;
      enqueue("oktopk::error_feedback::scale_down", accumulator_.extent(0),
              detail::gradient_scaling<vector_type, Gradient, value_type>{
                  gradient, accumulator_, factor.value, std::ldexp(1.0, half), std::ldexp(1.0, exponent - half)});
      return call_scaled<vector_type>(accumulator_, 1, scale, withheld);
    }
    return call_scaled<Gradient>(gradient, static_cast<value_type>(static_cast<double>(factor)), scale, withheld);
  }

  // `of_gradient` is the factor of clipping; without momentum it includes the scale.
  template <class Gradient>
  update_type const& call_scaled(Gradient const& gradient, value_type of_gradient, double scale,
                                 std::span<detail::entry_range const> withheld) {
    if (options_.momentum == 0) {
      return call_with<Gradient>(gradient, of_gradient, withheld);
    }
    auto const momentum = static_cast<value_type>(options_.momentum);
    auto const factor = static_cast<value_type>(scale);
    enqueue("oktopk::training::advance_velocity", next_velocity_.extent(0),
            detail::velocity_advance<vector_type, Gradient, value_type>{velocity_, next_velocity_, gradient,
                                                                        of_gradient, momentum});
    if (options_.nesterov) {
      enqueue("oktopk::error_feedback::accumulate_ahead", accumulator_.extent(0),
              detail::residual_accumulation_ahead<vector_type, Gradient, value_type>{
                  accumulator_, residual_, gradient, next_velocity_, factor, of_gradient, momentum});
      return call_with_accumulator(withheld);
    }
    return call_with<vector_type>(next_velocity_, factor, withheld);
  }

  // Writes residual and velocity after the call to the vectors that are swapped with them.
  void keep_rest(update_type const& update, std::span<detail::entry_range const> withheld) {
    // Contributed entries are cleared (Algorithm 2, line 4), returned entries are added.
    auto const contributed = update.contributed();
    enqueue("oktopk::error_feedback::clear_contributed", contributed.extent(0),
            detail::contributed_clearing<vector_type, decltype(contributed)>{accumulator_, contributed});
    auto const returned = update.returned();
    if (returned.size() > 0) {
      enqueue("oktopk::error_feedback::add_returned", index(returned.size()),
              detail::returned_addition<vector_type, decltype(returned)>{accumulator_, returned});
    }
    // If all entries are sent, by k or because `automatic` has taken a dense scheme, the velocity is the momentum of
    // SGD.
    bool const sends_all = allreduce_->k() >= allreduce_->length() ||
                           static_cast<std::int64_t>(contributed.extent(0)) >= allreduce_->length();
    if (options_.momentum > 0 && options_.factor_masking && !sends_all) {
      auto const reached = update.indices();
      enqueue("oktopk::training::mask_velocity", contributed.extent(0),
              detail::velocity_mask<vector_type, decltype(contributed), decltype(reached)>{
                  next_velocity_, contributed, reached, static_cast<std::int64_t>(reached.extent(0))});
    }
    for (auto const [begin, end] : withheld) { // the vectors from before the call still have these values
      char const* const label = "oktopk::error_feedback::keep_withheld";
      detail::copy_array(label, exec_, residual_.data() + begin, end - begin, accumulator_.data() + begin);
      if (options_.momentum > 0) {
        detail::copy_array(label, exec_, velocity_.data() + begin, end - begin, next_velocity_.data() + begin);
      }
    }
  }

  template <class Gradient>
  update_type const& call_with(Gradient const& gradient, value_type scale,
                               std::span<detail::entry_range const> withheld) {
    if constexpr (takes_gradients<Gradient>) {
      if (withheld.empty() && options_.residual_decay == 1 && fuses(gradient)) {
        return (*allreduce_)(making_of(gradient, scale, {}));
      }
    }
    enqueue("oktopk::error_feedback::accumulate", accumulator_.extent(0),
            detail::residual_accumulation<vector_type, Gradient, value_type>{accumulator_, residual_, gradient, scale});
    return call_with_accumulator(withheld);
  }

  update_type const& call_with_accumulator(std::span<detail::entry_range const> withheld) {
    if (options_.residual_decay != 1) {
      enqueue("oktopk::error_feedback::decay", accumulator_.extent(0),
              detail::residual_loss<vector_type, value_type>{accumulator_, residual_,
                                                             static_cast<value_type>(1 - options_.residual_decay)});
    }
    withhold(withheld);
    return call_hooked();
  }

  void withhold(std::span<detail::entry_range const> withheld) const {
    for (auto const [begin, end] : withheld) {
      detail::fill_array("oktopk::error_feedback::withhold", exec_, accumulator_.data() + begin, end - begin,
                         value_type(0));
    }
  }

  update_type const& call_hooked() {
    if (hook_) {
      detail::fence(exec_, "oktopk::error_feedback::hook");
      try {
        hook_(accumulator_);
      } catch (...) { // the other ranks are in the allreduce already, or will be
        fail_on_all(std::current_exception());
      }
    }
    return (*allreduce_)(accumulator_);
  }

  execution_space callers_; // writes gradients
  execution_space exec_;    // the allreduce's; everything runs on it
  Allreduce* allreduce_;
  vector_type residual_;
  vector_type accumulator_;
  std::function<void(const_vector_type)> hook_;
  options options_;
  vector_type velocity_;      // empty without momentum, as the next one
  vector_type next_velocity_; // beside it, so that a call that fails leaves the velocity as it was
  detail::norm_in_order<execution_space, value_type> norm_;
};

} // namespace oktopk
