// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/agreement.hpp>
#include <oktopk/comm/collectives.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/core/checkpoint.hpp>
#include <oktopk/error_feedback.hpp>
#include <oktopk/torch/process_group.hpp>
#include <oktopk/torch/view.hpp>
#include <oktopk/training/bucket_engine.hpp>

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace oktopk_torch {

/// A bucket of DistributedDataParallel whose gradients are there.
struct arrival {
  at::Tensor buffer;           ///< gradients in, averages over the ranks out
  std::vector<int> parameters; ///< whose gradients lie there one after the other
  std::vector<int> used;       ///< 0 or 1: whether this rank has a gradient of each; empty where all ranks have all
  std::int64_t index = 0;      ///< of the bucket in this backward pass
  bool is_last = false;
  std::function<void(std::exception_ptr)> done; ///< called once, with null where all went well
};

/// The buckets of DistributedDataParallel, reduced by an allreduce of the catalogue each, with error feedback.
///
/// DistributedDataParallel builds other buckets after its first iteration: then residuals and velocities go with their
/// parameters, and the allreduces begin anew. After `load` the buckets are those of the saved state for one iteration
/// whatever comes, so that a program that goes on does what one does that was never interrupted; where borders differ,
/// gradients are copied, and reduced when all have come. All calls are made on one thread, in the same order on all
/// ranks.
///
/// DistributedDataParallel drops the average of a parameter that no rank has used in a backward pass. So such a
/// parameter takes no part in the call of its bucket: its residual and velocity stay until some rank uses it. Ranks
/// agree on that in one reduction of an integer a parameter before each call, where `used` is given.
class buckets {
  using space = Kokkos::DefaultHostExecutionSpace;
  using communicator = oktopk::counted<oktopk::process_group_communicator>;
  using allreduce = oktopk::any_allreduce<space, communicator>;
  using feedback = oktopk::error_feedback<allreduce>;
  using engine = oktopk::detail::bucket_engine<feedback>;
  using view = oktopk::torch_view_type<float>;

public:
  /// Collective. `text` names an algorithm of the catalogue, of density 0.01 unless the text has another; `lengths` are
  /// those of the parameters, the same on all ranks. Throws an `oktopk::error` on every rank.
  buckets(c10::intrusive_ptr<c10d::ProcessGroup> group, std::string text, oktopk::error_feedback_options const& how,
          std::vector<std::int64_t> lengths)
      : comm_(oktopk::process_group_communicator(std::move(group))), text_(std::move(text)), how_(how),
        lengths_(std::move(lengths)), used_(lengths_.size()), engine_(new_engine()) {
    std::vector<int> every(lengths_.size());
    std::iota(every.begin(), every.end(), 0);
    allreduce trial = made(bucket_of(every)); // finds what is wrong before the first backward pass
    feedback const of_trial(space(), trial, how_);
  }

  /// Collective. What goes wrong, `done` is told, and so is that of all later buckets of the same backward pass.
  void arrive(arrival what) {
    if (what.index == 0) {
      end_waiting(std::make_exception_ptr(incomplete()));
      engine_->begin_step();
    }
    for (std::size_t i = 0; i < what.used.size(); ++i) {
      used_[index(what.parameters[i])] = what.used[i];
    }
    bool const is_last = what.is_last;
    auto const unless_failed = [&](auto const& job) {
      try {
        engine_->failed() ? void() : job();
      } catch (...) {
        engine_->fail(std::current_exception());
      }
    };
    bool waits = false;
    unless_failed([&] {
      int const number = number_of(what.parameters);
      waits = number < 0 && keeps_borders_;
      if (!waits) {
        reduce(number < 0 ? adopt(what.parameters) : number, oktopk::torch_view<float>(what.buffer),
               !what.used.empty());
      }
    });
    if (waits) {
      waiting_.push_back(std::move(what));
    } else {
      what.done(engine_->failed());
    }
    if (is_last) {
      unless_failed([&] { reduce_waiting(); });
      keeps_borders_ = false;
    }
    if (is_last || engine_->failed()) {
      end_waiting(engine_->failed());
    }
  }

  /// The bytes that `oktopk::save` writes of a state of `oktopk::bucketed` over an `any_allreduce`.
  at::Tensor save() const {
    std::ostringstream out;
    oktopk::save(out, engine_->state());
    std::string const bytes = out.str();
    at::Tensor saved = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
    std::copy(bytes.begin(), bytes.end(), saved.data_ptr<std::uint8_t>());
    return saved;
  }

  /// Collective; an `oktopk::error` on every rank where `fault` is not empty on some rank or the state does not fit,
  /// and then nothing has changed.
  void load(at::Tensor const& saved, std::string const& fault) {
    oktopk::agreement terms("oktopk_torch: load_state_dict");
    engine::state_type state;
    oktopk::bucket_options order;
    try {
      if (!fault.empty()) {
        throw oktopk::error(oktopk::fault::bad_state, fault);
      }
      auto const bytes = oktopk::torch_view<std::uint8_t>(saved);
      std::istringstream in(std::string(bytes.data(), bytes.data() + bytes.extent(0)));
      state = oktopk::load<engine::state_type>(in);
      order.order.assign(state.bucket_tensors.begin(), state.bucket_tensors.end());
      if (state.lengths != lengths_ || !oktopk::detail::problem_of(lengths_, order).empty() ||
          !has_sound_sizes(state)) {
        throw oktopk::error(oktopk::fault::bad_state, "the saved state is of other parameters");
      }
    } catch (oktopk::error const& found) {
      terms.note(oktopk::fault::bad_state, found.sentence());
    }
    for (std::int64_t const each : state.bucket_sizes) {
      terms.fact("parameters of a bucket", each);
    }
    for (int const each : order.order) {
      terms.fact("next parameter", each);
    }
    terms.check_on(comm_);
    auto fresh = new_engine();
    auto next = order.order.begin();
    for (std::int64_t const size : state.bucket_sizes) {
      add({next, next + size}, *fresh);
      next += size;
    }
    fresh->restore(state);
    engine_ = std::move(fresh);
    keeps_borders_ = !state.bucket_sizes.empty();
  }

  /// Words of 4 bytes that this rank has sent, since it was made.
  double words_sent() const { return comm_.total().words_sent(); }

private:
  static std::size_t index(int number) { return static_cast<std::size_t>(number); }

  static oktopk::error incomplete() {
    return {oktopk::fault::length_mismatch, "a backward pass ended before all buckets had come"};
  }

  bool has_sound_sizes(engine::state_type const& state) const {
    auto const& sizes = state.bucket_sizes;
    return std::all_of(sizes.begin(), sizes.end(), [](std::int64_t size) { return size > 0; }) &&
           std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0)) == std::ssize(state.bucket_tensors) &&
           (sizes.empty() || state.bucket_tensors.size() == lengths_.size());
  }

  std::unique_ptr<engine> new_engine() const { return std::make_unique<engine>(space(), comm_, lengths_, how_); }

  oktopk::bucket bucket_of(std::vector<int> parameters) const {
    oktopk::bucket made{std::move(parameters), 0, 0.01};
    for (int const each : made.tensors) {
      made.length += lengths_[index(each)];
    }
    return made;
  }

  allreduce made(oktopk::bucket const& of) const {
    return oktopk::make_allreduce(space(), comm_, text_, {.length = of.length, .k = {}, .density = of.density});
  }

  void add(std::vector<int> const& parameters, engine& to) const {
    to.add(bucket_of(parameters), [this](oktopk::bucket const& of) { return made(of); });
  }

  /// The number of the bucket of just these parameters in this order; negative where there is none.
  int number_of(std::vector<int> const& parameters) const {
    int const found = parameters.empty() ? -1 : engine_->plan().places[index(parameters.front())].bucket;
    return found >= 0 && engine_->plan().buckets[index(found)].tensors == parameters ? found : -1;
  }

  /// Makes a bucket of these parameters, and ends those that they are in.
  int adopt(std::vector<int> const& parameters) {
    for (int const each : parameters) {
      if (int const number = engine_->plan().places[index(each)].bucket; number >= 0) {
        engine_->remove(number);
      }
    }
    add(parameters, *engine_);
    return static_cast<int>(engine_->plan().buckets.size()) - 1;
  }

  /// The gradients of a bucket, which some rank may not use (`agrees`), become averages. Collective.
  void reduce(int number, view const& gradients, bool agrees) {
    std::vector<int> const& parameters = engine_->plan().buckets[index(number)].tensors;
    std::vector<int> uses;
    if (agrees) {
      for (int const each : parameters) {
        uses.push_back(used_[index(each)]);
      }
      oktopk::allreduce_integers(comm_, std::span(uses), oktopk::reduction::max, oktopk::phase::control, workspace_);
    }
    for (std::size_t i = 0; i < uses.size(); ++i) {
      if (uses[i] == 0) {
        oktopk::detail::tensor_place const& place = engine_->plan().places[index(parameters[i])];
        engine_->at(number).withheld.push_back({place.offset, place.offset + place.length});
      }
    }
    engine_->reduce(number, gradients);
  }

  /// The buckets that were not reduced yet, by way of a copy.
  void reduce_waiting() {
    for (int number = 0; !waiting_.empty() && index(number) < engine_->plan().buckets.size(); ++number) {
      if (!engine_->at(number).is_done && !engine_->failed()) {
        oktopk::bucket const& of = engine_->plan().buckets[index(number)];
        std::vector<float> copy(static_cast<std::size_t>(of.length));
        if (exchange(number, copy, false) != of.tensors.size()) {
          throw incomplete();
        }
        reduce(number, view(copy.data(), copy.size()), !waiting_.front().used.empty());
        exchange(number, copy, true);
      }
    }
  }

  /// Copies the values of a bucket's parameters between what waits and `values`; gives how many parameters there are.
  std::size_t exchange(int number, std::vector<float>& values, bool back) {
    std::size_t count = 0;
    for (arrival const& each : waiting_) {
      float* here = oktopk::torch_view<float>(each.buffer).data();
      for (int const parameter : each.parameters) {
        oktopk::detail::tensor_place const& place = engine_->plan().places[index(parameter)];
        if (place.bucket == number) {
          float* const there = values.data() + place.offset;
          std::copy_n(back ? there : here, place.length, back ? here : there);
          count += 1;
        }
        here += place.length;
      }
    }
    return count;
  }

  void end_waiting(std::exception_ptr const& why) {
    for (arrival const& each : waiting_) {
      each.done(why);
    }
    waiting_.clear();
  }

  communicator comm_;
  std::string text_;
  oktopk::error_feedback_options how_;
  std::vector<std::int64_t> lengths_;
  std::vector<int> used_; // each parameter, by this rank in this iteration
  std::unique_ptr<engine> engine_;
  oktopk::collective_workspace workspace_;
  std::vector<arrival> waiting_; // for buckets of other borders
  bool keeps_borders_ = false;   // until the end of the first iteration after a load
};

} // namespace oktopk_torch
