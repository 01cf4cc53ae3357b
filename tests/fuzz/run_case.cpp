// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/run_case.hpp"

#include "fuzz/damage.hpp"
#include "fuzz/recorder.hpp"
#include "fuzz/subjects.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <span>
#include <utility>

namespace oktopk_fuzz {

namespace {

/// What one rank does in a case: the same on all ranks but for its gradients. Tells the recorder, which has it checked.
template <class Value>
class rank_run {
public:
  rank_run(subject<Value> const& of, fuzz_case const& what, mutation on_purpose, oktopk::in_process_communicator comm,
           recorder<Value>& all)
      : of_(of), what_(what), on_purpose_(on_purpose), comm_(comm), rank_(comm_.rank()), recorder_(all),
        weights_(first_weights<Value>(what)), residual_(weights_.size(), Value(0)) {}

  void operator()() {
    if (what_.refused_first != bad_option::none && !refuse()) {
      return;
    }
    mine_ = make(what_.how, what_.learning_rate);
    std::int64_t const k = of_.about.has.k ? what_.k : what_.how.length;
    if (mine_->k() != k) {
      recorder_.found(finding{"k", "k is " + std::to_string(mine_->k()) + " instead of " + std::to_string(k)}, -1);
    }
    for (int call = 0; call < static_cast<int>(what_.calls.size()) && !recorder_.stopped(); ++call) {
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
    return recorder_.tell(std::move(now), rank_, -1);
  }

  // What happens between calls.
  bool prepare(int call) {
    if (call == what_.new_rate_before) {
      mine_->set_learning_rate(new_rate(what_));
      if (replica_) {
        replica_->set_learning_rate(new_rate(what_));
      }
    }
    return (call != what_.damage_before || restore_altered(call)) &&
           (call != what_.file_before || read_damaged(call)) && (call != what_.replica_before || make_replica(call));
  }

  bool make_replica(int call) {
    replica_ = make(what_.how, 0.25);
    event<Value> now;
    now.what = event_kind::replica;
    now.before = mine_->state();
    now.said = oktopk_tests::outcome_of([&] {
      replica_->load(mine_->save());
      replica_->restore_loaded();
    });
    now.after = replica_->state();
    replica_weights_ = weights_;
    return recorder_.tell(std::move(now), rank_, call);
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
      return recorder_.tell(std::move(now), rank_, call);
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

  // Who goes on from another state has no replica any more.
  bool settle(event<Value> now, int call) {
    bool const taken = now.said.code == oktopk::fault::none && now.loaded;
    if (taken) {
      replica_.reset();
    }
    if (on_purpose_ == mutation::takes_any_state && now.said.code != oktopk::fault::none && now.loaded) {
      now.said = {};
      recorder_.note_mutation();
    }
    now.after = mine_->state();
    return recorder_.tell(std::move(now), rank_, call);
  }

  void one_call(int call) {
    auto const given = input_of(what_, rank_, call, residual_);
    call_record<Value> record = perform(*mine_, given, weights_, false);
    bool const returned = record.said.code == oktopk::fault::none;
    std::optional<call_record<Value>> again;
    if (replica_ && returned) {
      again = perform(*replica_, given, replica_weights_, true);
    }
    if (what_.feeds_back()) {
      keep_residual(record, returned);
    }
    recorder_.tell_call(std::move(record), std::move(again), rank_, call);
  }

  call_record<Value> perform(participant<Value>& who, handed_over<Value> const& given, std::vector<Value>& weights,
                             bool of_replica) {
    auto record = recorded_call(who, given, weights);
    if (put_in(on_purpose_, rank_, what_.ranks, of_replica, record)) {
      recorder_.note_mutation();
    }
    return record;
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
  mutation on_purpose_;
  oktopk::in_process_communicator comm_;
  int rank_;
  recorder<Value>& recorder_;
  std::vector<Value> weights_;
  std::vector<Value> replica_weights_;
  std::vector<Value> residual_;
  std::unique_ptr<participant<Value>> mine_;
  std::unique_ptr<participant<Value>> replica_;
};

template <class Value>
case_result run_of(facts const& about, fuzz_case const& what, mutation on_purpose) {
  subject<Value> const& of = named(subjects<Value>(), about.name);
  recorder<Value> all(about, what);
  auto const thrown = oktopk::in_process::run_and_collect(
      what.ranks, [&](oktopk::in_process_communicator comm) { rank_run<Value>(of, what, on_purpose, comm, all)(); });
  for (std::size_t rank = 0; rank < thrown.size(); ++rank) {
    try {
      if (thrown[rank]) {
        std::rethrow_exception(thrown[rank]);
      }
    } catch (std::exception const& e) {
      all.found(finding{"threw", "rank " + std::to_string(rank) + ": " + e.what()}, -1);
    }
  }
  all.result().done.cases = 1;
  return all.result();
}

} // namespace

case_result run_case(facts const& about, fuzz_case const& what, mutation on_purpose) {
  return about.value_bytes == 4 ? run_of<float>(about, what, on_purpose) : run_of<double>(about, what, on_purpose);
}

} // namespace oktopk_fuzz
