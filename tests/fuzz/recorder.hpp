// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/checks/checks.hpp"
#include "fuzz/run_case.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace oktopk_fuzz {

enum class event_kind {
  refusal,      ///< an object with bad options
  replica,      ///< a second object made of a checkpoint
  restore,      ///< an altered state
  bad_file,     ///< a checkpoint that is cut short, too long or of another type
  flipped_file, ///< a checkpoint with some bits flipped
};

/// What a rank has seen between two calls.
template <class Value>
struct event {
  event_kind what = event_kind::refusal;
  outcome said;
  oktopk::fault expected = oktopk::fault::none;
  bool loaded = true; ///< of files: whether all ranks could read theirs
  state_numbers<Value> before;
  state_numbers<Value> wanted; ///< what was to be restored
  state_numbers<Value> after;
};

/// Where ranks write down what they see. Who is the last to do so has it checked.
template <class Value>
class recorder {
public:
  recorder(facts const& about, fuzz_case const& what)
      : about_(about), what_(what), counts_(static_cast<std::size_t>(what.ranks)) {}

  bool stopped() const { return result_.wrong.has_value(); }
  void found(verdict what, int call) {
    if (what && !result_.wrong) {
      result_.wrong = std::move(what);
      result_.at_call = call;
    }
  }
  void note_mutation() { result_.done.mutated = 1; }
  case_result& result() { return result_; }

  /// Gives whether to go on.
  bool tell(event<Value> seen, int rank, int call) {
    auto const number = counts_[static_cast<std::size_t>(rank)]++;
    if (put(events_[number], std::move(seen), rank)) {
      std::vector<event<Value>> all;
      for (auto& [of_rank, each] : events_[number]) {
        all.push_back(std::move(each));
      }
      events_.erase(number);
      found(wrong_event(all), call);
    }
    return !stopped();
  }

  void tell_call(call_record<Value> record, std::optional<call_record<Value>> replica, int rank, int call) {
    if (put(rounds_[call], std::pair(std::move(record), std::move(replica)), rank)) {
      std::vector<call_record<Value>> ranks;
      std::vector<call_record<Value>> replicas;
      for (auto& [of_rank, each] : rounds_[call]) {
        ranks.push_back(std::move(each.first));
        if (each.second) {
          replicas.push_back(std::move(*each.second));
        }
      }
      rounds_.erase(call);
      check(std::move(ranks), replicas, call);
    }
  }

private:
  using events = std::vector<event<Value>>;

  // By rank; whether it was the last.
  template <class Told>
  bool put(std::map<int, Told>& all, Told told, int rank) {
    all.emplace(rank, std::move(told));
    return all.size() == static_cast<std::size_t>(what_.ranks);
  }

  void check(std::vector<call_record<Value>> ranks, std::vector<call_record<Value>> const& replicas, int call) {
    if (stopped()) {
      return;
    }
    bool threw = false;
    seen_call<Value> const seen(about_, what_, std::move(ranks));
    verdict wrong = check_call(seen, threw);
    if (!wrong) {
      wrong = check_replica(seen.ranks, replicas);
    }
    std::int64_t const calls = replicas.empty() ? 1 : 2;
    result_.done.calls += calls;
    result_.done.rank_calls += calls * what_.ranks;
    result_.done.threw += threw && !wrong ? 1 : 0;
    found(std::move(wrong), call);
  }

  static std::string text_of(outcome const& said) { return said.text.empty() ? "no error" : said.text; }

  static verdict unlike(events const& all) {
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
      if (!(all[rank].said == all[0].said)) {
        return finding{"event_agreement", "rank 0 has \"" + all[0].said.text + "\", rank " + std::to_string(rank) +
                                              " has \"" + all[rank].said.text + "\""};
      }
    }
    return {};
  }

  static verdict changed(events const& all) {
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (auto const text = difference(all[rank].before, all[rank].after); !text.empty()) {
        return finding{"refused_state_moved", "rank " + std::to_string(rank) + ": another state afterwards: " + text};
      }
    }
    return {};
  }

  verdict wrong_event(events const& all) {
    outcome const& said = all[0].said;
    switch (all[0].what) {
    case event_kind::refusal:
      result_.done.refusals += 1;
      if (auto wrong = unlike(all); wrong || said.code == all[0].expected) {
        return wrong;
      }
      return finding{"bad_option_taken",
                     "expected " + std::string(oktopk::name(all[0].expected)) + ", but: " + text_of(said)};
    case event_kind::replica:
      if (auto wrong = unlike(all)) {
        return wrong;
      }
      if (said.code != oktopk::fault::none) {
        return finding{"checkpoint", "a sound checkpoint: " + said.text};
      }
      if (auto const wrong = changed(all)) {
        return finding{"checkpoint", "the state of the replica is not the one that was saved: " + wrong->text};
      }
      return {};
    case event_kind::bad_file:
      result_.done.refusals += 1;
      for (std::size_t rank = 0; rank < all.size(); ++rank) {
        if (all[rank].said.code != oktopk::fault::bad_file) {
          return finding{"bad_file_taken", "rank " + std::to_string(rank) +
                                               ": a checkpoint that is cut short, too long or of another type: " +
                                               text_of(all[rank].said)};
        }
      }
      return changed(all);
    case event_kind::restore:
    case event_kind::flipped_file: break;
    }
    return wrong_restore(all);
  }

  // An altered state: what no run can have led to is refused; what is refused changes nothing; what is taken is the
  // same on all ranks where it has to be.
  verdict wrong_restore(events const& all) {
    using oktopk::fault;
    if (!all[0].loaded) {
      for (auto const& each : all) {
        if (each.said.code != fault::none && each.said.code != fault::bad_file) {
          return finding{"file_error", "a damaged checkpoint: " + each.said.text};
        }
      }
      result_.done.refusals += 1;
      return changed(all);
    }
    if (auto wrong = unlike(all)) {
      return wrong;
    }
    if (all[0].said.code != fault::none) {
      if (all[0].said.code != fault::bad_state && all[0].said.code != fault::ranks_disagree) {
        return finding{"restore_error", "an altered state: " + all[0].said.text};
      }
      result_.done.refusals += 1;
      return changed(all);
    }
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      std::string const who = "rank " + std::to_string(rank) + ": restore() ";
      auto const& wanted = all[rank].wanted;
      auto const& first = all[0].wanted;
      if (auto const why = impossible(what_, wanted); !why.empty()) {
        return finding{"impossible_state_taken", who + "took a state with " + why};
      }
      if (wanted.iteration != first.iteration || wanted.boundaries != first.boundaries ||
          !difference(wanted.global, first.global).empty()) {
        return finding{"restore_disagreement", who + "took another state than that of rank 0"};
      }
      if (auto const text = difference(wanted, all[rank].after); !text.empty()) {
        return finding{"restored_other_state", who + "made another state than it was given: " + text};
      }
    }
    return {};
  }

  facts const& about_;
  fuzz_case const& what_;
  case_result result_;
  std::vector<std::size_t> counts_; // events, by rank
  std::map<std::size_t, std::map<int, event<Value>>> events_;
  std::map<int, std::map<int, std::pair<call_record<Value>, std::optional<call_record<Value>>>>> rounds_; // by call
};

} // namespace oktopk_fuzz
