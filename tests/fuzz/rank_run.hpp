// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/board.hpp"
#include "fuzz/damage.hpp"
#include "fuzz/gradients.hpp"
#include "fuzz/refusal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <utility>

namespace oktopk_fuzz {

/// What one rank does in a case: the same on all ranks but for its gradients. Tells the board, which judges.
template <class Value>
class rank_run {
public:
  rank_run(subject<Value> const& of, fuzz_case const& what, sabotage on_purpose, oktopk::in_process_communicator comm,
           board<Value>& all)
      : of_(of), what_(what), on_purpose_(on_purpose), comm_(comm), rank_(comm_.rank()), board_(all),
        weights_(static_cast<std::size_t>(what.how.length)), residual_(weights_.size(), Value(0)) {
    draws draw(mixed({what.seed, 6}));
    for (Value& x : weights_) {
      x = static_cast<Value>(draw.real(-1, 1));
    }
  }

  void operator()() {
    if (what_.refused_first != bad_option::none && !refuse()) {
      return;
    }
    mine_ = make(what_.how, what_.learning_rate);
    std::int64_t const k = of_.about.has.k ? what_.k : what_.how.length;
    if (mine_->k() != k) {
      board_.found({"k", "k is " + std::to_string(mine_->k()) + " instead of " + std::to_string(k)}, -1);
    }
    for (int call = 0; call < static_cast<int>(what_.calls.size()) && !board_.stopped(); ++call) {
      if (!prepare(call)) {
        return;
      }
      one_call(call);
    }
  }

private:
  std::unique_ptr<participant<Value>> make(options const& how, double rate) const {
    return of_.make(comm_, what_.far, how, what_.calls_made, rate);
  }

  // An object that nobody may get.
  bool refuse() {
    bad_options const bad = refused_options(what_, rank_);
    event<Value> now;
    now.what = event_kind::refusal;
    now.expected = bad.code;
    now.said = oktopk_tests::outcome_of([&] { make(bad.how, bad.learning_rate); });
    return board_.tell(std::move(now), rank_, -1);
  }

  // What happens between calls.
  bool prepare(int call) {
    if (call == what_.new_rate_before) {
      double const rate = draws(mixed({what_.seed, 7})).one_of({0.5, -2.0, 1e-2});
      mine_->set_learning_rate(rate);
      if (twin_) {
        twin_->set_learning_rate(rate);
      }
    }
    return (call != what_.damage_before || restore_altered(call)) &&
           (call != what_.file_before || read_damaged(call)) && (call != what_.twin_before || make_twin(call));
  }

  bool make_twin(int call) {
    twin_ = make(what_.how, 0.25);
    event<Value> now;
    now.what = event_kind::twin;
    now.before = mine_->state();
    now.said = oktopk_tests::outcome_of([&] {
      twin_->load(mine_->save());
      twin_->restore_loaded();
    });
    now.after = twin_->state();
    twin_weights_ = weights_;
    return board_.tell(std::move(now), rank_, call);
  }

  // Numbers of a state are altered alike on all ranks, or on one.
  bool restore_altered(int call) {
    draws draw(mixed({what_.seed, 5}));
    bool const on_all = draw.chance(0.7);
    bool const here = static_cast<int>(draw.between(0, what_.ranks - 1)) == rank_ || on_all;
    event<Value> now;
    now.what = event_kind::restore;
    now.before = mine_->state();
    now.wanted = now.before;
    if (here) {
      alter(draw, what_, now.wanted);
    }
    now.said = oktopk_tests::outcome_of([&] { mine_->restore(now.wanted); });
    return settle(std::move(now), call);
  }

  // Bytes of a checkpoint are damaged, alike on all ranks or on one.
  bool read_damaged(int call) {
    draws draw(mixed({what_.seed, 8}));
    auto const how = static_cast<file_damage>(draw.between(0, 3));
    bool const on_all = draw.chance(0.5) || how != file_damage::flipped;
    bool const here = static_cast<int>(draw.between(0, what_.ranks - 1)) == rank_ || on_all;
    std::string bytes = mine_->save();
    if (here) {
      bytes = damaged(how, draw, of_.about, what_.calls_made != way::bare, std::move(bytes));
    }
    event<Value> now;
    now.what = how == file_damage::flipped ? event_kind::flipped_file : event_kind::bad_file;
    now.expected = oktopk::fault::bad_file;
    now.before = mine_->state();
    now.said = oktopk_tests::outcome_of([&] { now.wanted = mine_->load(bytes); });
    if (now.what == event_kind::bad_file) {
      now.after = mine_->state();
      return board_.tell(std::move(now), rank_, call);
    }
    // Where some rank could not read it, nobody restores.
    std::int64_t could = now.said.code == oktopk::fault::none ? 1 : 0;
    comm_.allreduce(std::span<std::int64_t>(&could, 1), oktopk::reduction::min, oktopk::phase::control);
    now.loaded = could != 0;
    if (now.loaded) {
      now.said = oktopk_tests::outcome_of([&] { mine_->restore_loaded(); });
    }
    return settle(std::move(now), call);
  }

  // Who goes on from another state has no twin any more.
  bool settle(event<Value> now, int call) {
    bool const taken = now.said.code == oktopk::fault::none && now.loaded;
    if (taken) {
      twin_.reset();
    }
    if (on_purpose_ == sabotage::takes_any_state && now.said.code != oktopk::fault::none && now.loaded) {
      now.said = {};
      board_.note_sabotage();
    }
    now.after = mine_->state();
    return board_.tell(std::move(now), rank_, call);
  }

  void one_call(int call) {
    handed_over<Value> given = gradient_of<Value>(what_, rank_, call);
    if (what_.calls_made == way::bare && what_.feedback && given.gradient.size() == residual_.size()) {
      for (std::size_t i = 0; i < residual_.size(); ++i) {
        given.gradient[i] += residual_[i];
      }
    }
    call_record<Value> record;
    perform(*mine_, given, weights_, false, record);
    bool const returned = record.said.code == oktopk::fault::none;
    call_record<Value> twins;
    bool const has_twin = twin_ && returned;
    if (has_twin) {
      perform(*twin_, given, twin_weights_, true, twins);
    }
    if (what_.calls_made == way::bare && what_.feedback) {
      keep_residual(record, returned);
    }
    board_.tell_call(std::move(record), has_twin ? std::optional(std::move(twins)) : std::nullopt, rank_, call);
  }

  void perform(participant<Value>& who, handed_over<Value> const& given, std::vector<Value>& weights, bool of_twin,
               call_record<Value>& record) {
    record.before = who.state();
    if (what_.calls_made != way::bare) {
      record.weights_before = weights;
    }
    std::vector<Value> misfit(static_cast<std::size_t>(given.weights), Value(1));
    bool const fits = misfit.size() == weights.size();
    who.call(given.gradient, fits ? weights : misfit, record);
    record.after = who.state();
    if (what_.calls_made != way::bare) {
      record.weights_after = weights;
    }
    if (on_purpose_ != sabotage::none && put_in(on_purpose_, rank_, what_.ranks, of_twin, record)) {
      board_.note_sabotage();
    }
  }

  // A residual that has overflowed is given up: it would be refused for ever.
  void keep_residual(call_record<Value> const& record, bool returned) {
    if (returned) {
      residual_ = left_over(record, record.input);
    } else if (record.input.size() == residual_.size() && std::any_of(residual_.begin(), residual_.end(), [](Value x) {
                 return !(std::fabs(x) < std::numeric_limits<Value>::max() / 2);
               })) {
      std::fill(residual_.begin(), residual_.end(), Value(0));
    }
  }

  subject<Value> const& of_;
  fuzz_case const& what_;
  sabotage on_purpose_;
  oktopk::in_process_communicator comm_;
  int rank_;
  board<Value>& board_;
  std::vector<Value> weights_;
  std::vector<Value> twin_weights_;
  std::vector<Value> residual_;
  std::unique_ptr<participant<Value>> mine_;
  std::unique_ptr<participant<Value>> twin_;
};

} // namespace oktopk_fuzz
