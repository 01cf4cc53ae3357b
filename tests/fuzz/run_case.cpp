// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/worker.hpp"

#include "fuzz/checks/checks.hpp"
#include "fuzz/damage.hpp"
#include "fuzz/mutation.hpp"

#include <algorithm>
#include <any>
#include <iterator>
#include <span>

namespace oktopk_fuzz {

namespace {

/// Where ranks write down what they see of the same thing. Who is the last to do so has it checked.
class recorder {
public:
  recorder(int ranks, counts& some_counts) : done(some_counts), told_(static_cast<std::size_t>(ranks), 0) {}

  counts& done;
  bool mutated = false; ///< whether there was anything to put the mutation into

  /// `check` is given what all have told. A finding ends the world.
  template <class Told, class Check>
  void tell(int rank, Told told, Check const& check) {
    auto const round = rounds_.try_emplace(told_[static_cast<std::size_t>(rank)]++).first;
    round->second[rank] = std::move(told);
    if (round->second.size() == told_.size()) {
      std::vector<Told> all;
      for (auto& [of_rank, each] : round->second) {
        all.push_back(std::any_cast<Told>(std::move(each)));
      }
      rounds_.erase(round);
      check(std::move(all));
    }
  }

private:
  std::vector<int> told_; // by rank
  std::map<int, std::map<int, std::any>> rounds_;
};

/// What a rank has seen of a checkpoint, or of a state that it was to restore.
struct seen_state {
  outcome said{};
  state_numbers before{};
  state_numbers wanted{};
  state_numbers after{};
};

void expect_alike(std::vector<seen_state> const& all) {
  check_each(all, [&](seen_state const& mine, std::size_t) {
    expect(mine.said == all[0].said, "event_agreement", mine.said, "; but rank 0 has ", all[0].said);
  });
}

void expect_unchanged(std::vector<seen_state> const& all, char const* check) {
  check_each(all, [&](seen_state const& mine, std::size_t) { expect_same(check, mine.before, mine.after); });
}

// An altered state: what no run can have led to is refused; what is refused changes nothing; what is taken is the same on
// all ranks where it has to be.
void check_restored(fuzz_case const& what, std::vector<seen_state> const& all, counts& done) {
  using oktopk::fault;
  expect_alike(all);
  if (fault const code = all[0].said.code; code != fault::none) {
    done.refusals += 1;
    expect(code == fault::bad_state || code == fault::ranks_disagree, "restore_error",
           "an altered state: ", all[0].said);
    return expect_unchanged(all, "refused_state_moved");
  }
  check_each(all, [&](seen_state const& mine, std::size_t) {
    check_possible("impossible_state_taken", what, mine.wanted);
    expect_same("restore_disagreement", mine.wanted, all[0].wanted, true);
    expect_same("restored_other_state", mine.wanted, mine.after);
  });
}

/// What one rank does in a case: the same on all ranks but for its gradients. Tells the recorder, which has it checked.
class rank_run {
public:
  rank_run(subject const& of, fuzz_case const& what, std::string const& on_purpose,
           oktopk::in_process_communicator comm, recorder& all)
      : of_(of), what_(what), on_purpose_(on_purpose), comm_(comm), rank_(comm_.rank()), recorder_(all),
        weights_(first_weights(what)), residual_(weights_.size(), 0) {}

  void operator()() {
    if (what_.refused_first != nullptr) { // an object that nobody may get
      bad_options const bad = refused_options(of_.about, what_, rank_);
      seen_state const now{oktopk_tests::outcome_of([&] { make(bad.how, bad.learning_rate); })};
      recorder_.tell(rank_, now, [&](std::vector<seen_state> const& all) {
        recorder_.done.refusals += 1;
        expect_alike(all);
        expect(now.said.code == bad.code, "bad_option_taken", "expected ", oktopk::name(bad.code), ", but: ", now.said);
      });
    }
    mine_ = make(what_.how, what_.learning_rate);
    std::int64_t const k = of_.about.is_dense() ? what_.how.length : what_.k;
    expect(mine_->k() == k, "k", "k is ", mine_->k(), " instead of ", k);
    for (int call = 0; call < static_cast<int>(what_.calls.size()); ++call) {
      check_at("call " + std::to_string(call), [&] {
        prepare(call);
        one_call(call);
      });
    }
  }

private:
  std::unique_ptr<participant> make(options const& how, double rate) const {
    return of_.make(near_or_far(comm_, what_.far), how, what_.calls_made, rate);
  }

  // What happens between calls.
  void prepare(int call) {
    for (auto const* each : {&mine_, &replica_}) {
      if (*each && call == what_.new_rate_before) {
        (*each)->set_learning_rate(rate_in(what_, call));
      }
    }
    if (call == what_.damage_before) {
      restore_altered();
    }
    if (call == what_.replica_before) {
      make_replica();
    }
  }

  void make_replica() {
    replica_ = make(what_.how, 0.25);
    seen_state now{.before = mine_->state()};
    now.said = oktopk_tests::outcome_of([&] { replica_->load(mine_->save()); });
    now.after = replica_->state();
    replica_weights_ = weights_;
    recorder_.tell(rank_, std::move(now), [](std::vector<seen_state> const& all) {
      expect_alike(all);
      expect(all[0].said.code == oktopk::fault::none, "checkpoint", "a sound checkpoint: ", all[0].said);
      expect_unchanged(all, "checkpoint");
    });
  }

  // Numbers of a state are altered alike on all ranks, or on one.
  void restore_altered() {
    draws draw(mixed({what_.seed, 5}));
    bool const on_all = draw.chance(0.7);
    bool const here = static_cast<int>(draw.between(0, what_.ranks - 1)) == rank_ || on_all;
    seen_state now{.before = mine_->state()};
    now.wanted = now.before;
    if (here) {
      alter(draw, what_, now.wanted);
    }
    now.said = oktopk_tests::outcome_of([&] { mine_->restore(now.wanted); });
    if (now.said.code == oktopk::fault::none) {
      replica_.reset(); // which does not go on from there
    } else if (on_purpose_ == "takes_any_state") {
      now.said = {};
      recorder_.mutated = true;
    }
    now.after = mine_->state();
    recorder_.tell(rank_, std::move(now),
                   [&](std::vector<seen_state> const& all) { check_restored(what_, all, recorder_.done); });
  }

  void one_call(int call) {
    auto const given = input_of(what_, rank_, call, residual_);
    std::vector<call_record> records{perform(*mine_, given, weights_)}; // and that of a replica
    if (what_.feeds_back()) {
      keep_residual(records[0]);
    }
    if (replica_ && !records[0].threw() && of_.about.promised.repeats) {
      records.push_back(perform(*replica_, given, replica_weights_));
    }
    recorder_.tell(rank_, std::move(records), [&](auto all) { check(std::move(all)); });
  }

  void check(std::vector<std::vector<call_record>> all) const {
    std::vector<call_record> ranks;
    std::vector<call_record> replicas;
    for (auto& each : all) {
      ranks.push_back(std::move(each[0]));
      std::move(each.begin() + 1, each.end(), std::back_inserter(replicas));
    }
    std::int64_t const calls = replicas.empty() ? 1 : 2;
    recorder_.done.calls += calls;
    recorder_.done.rank_calls += calls * what_.ranks;
    seen_call const seen(of_.about, what_, std::move(ranks));
    bool const threw = check_call(seen);
    check_each(replicas, [&](call_record const& replica, std::size_t rank) {
      expect_same("replica", seen.ranks[rank], replica);
    });
    recorder_.done.threw += threw ? 1 : 0;
  }

  call_record perform(participant& who, handed_over const& given, numbers& weights) {
    auto record = who.call(given, weights);
    if (!on_purpose_.empty() &&
        mutations.at(on_purpose_)({rank_, what_.ranks, &who != mine_.get(), what_.values, record})) {
      recorder_.mutated = true;
    }
    return record;
  }

  // A residual that has overflowed is given up: it would be refused for ever.
  void keep_residual(call_record const& record) {
    if (!record.threw()) {
      residual_ = left_over(what_, record, record.input);
    } else if (record.input.size() == residual_.size() &&
               std::any_of(residual_.begin(), residual_.end(),
                           [&](double x) { return !(std::fabs(x) < what_.values.most / 2); })) {
      std::fill(residual_.begin(), residual_.end(), 0);
    }
  }

  subject const& of_;
  fuzz_case const& what_;
  std::string const& on_purpose_;
  oktopk::in_process_communicator comm_;
  int rank_;
  recorder& recorder_;
  numbers weights_;
  numbers replica_weights_;
  numbers residual_;
  std::unique_ptr<participant> mine_;
  std::unique_ptr<participant> replica_;
};

} // namespace

case_result run_case(subject const& of, fuzz_case const& what, counts& done, std::string const& mutation) {
  recorder all(what.ranks, done);
  done.cases += 1;
  verdict const wrong = found_by([&] {
    try {
      oktopk::in_process::run(what.ranks,
                              [&](oktopk::in_process_communicator comm) { rank_run(of, what, mutation, comm, all)(); });
    } catch (std::exception const& caught) {
      throw finding{"threw", caught.what()};
    }
  });
  return {wrong, all.mutated};
}

} // namespace oktopk_fuzz
