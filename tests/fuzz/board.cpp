// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/board.hpp"

#include "fuzz/checks/checks.hpp"

#include <string>

namespace oktopk_fuzz {

template <class Value>
void board<Value>::found(finding what, int call) {
  if (!result_.wrong) {
    result_.wrong = std::move(what);
    result_.at_call = call;
  }
}

template <class Value>
bool board<Value>::tell(event<Value> seen, int rank, int call) {
  auto const ranks = static_cast<std::size_t>(what_.ranks);
  events_told_.resize(ranks);
  std::size_t const number = events_told_[static_cast<std::size_t>(rank)]++;
  auto& all = events_[number];
  all.resize(ranks);
  all[static_cast<std::size_t>(rank)] = std::move(seen);
  if (++told_[number] == ranks) {
    judge(all, call);
    events_.erase(number);
  }
  return !stopped();
}

template <class Value>
void board<Value>::tell_call(call_record<Value> record, std::optional<call_record<Value>> twins, int rank, int call) {
  auto const ranks = static_cast<std::size_t>(what_.ranks);
  round& all = rounds_[call];
  all.ranks.resize(ranks);
  all.ranks[static_cast<std::size_t>(rank)] = std::move(record);
  if (twins) {
    all.twins.resize(ranks);
    all.twins[static_cast<std::size_t>(rank)] = std::move(*twins);
  }
  if (++all.told == ranks) {
    judge(all, call);
    rounds_.erase(call);
  }
}

namespace {

template <class Value>
verdict unlike(std::vector<event<Value>> const& all) {
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (!(all[rank].said == all[0].said)) {
      return finding{"event_agreement", "rank 0 has \"" + all[0].said.text + "\", rank " + std::to_string(rank) +
                                            " has \"" + all[rank].said.text + "\""};
    }
  }
  return {};
}

template <class Value>
verdict changed(std::vector<event<Value>> const& all) {
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (auto const text = difference(all[rank].before, all[rank].after); !text.empty()) {
      return finding{"refused_state_moved", "rank " + std::to_string(rank) + ": another state afterwards: " + text};
    }
  }
  return {};
}

} // namespace

// An altered state: what no run can have led to is refused; what is refused changes nothing; what is taken is the same
// on all ranks where it has to be.
template <class Value>
verdict board<Value>::judged_restore(std::vector<event<Value>> const& all) {
  if (!all[0].loaded) {
    for (auto const& each : all) {
      if (each.said.code != oktopk::fault::none && each.said.code != oktopk::fault::bad_file) {
        return finding{"file_error", "a damaged checkpoint: " + each.said.text};
      }
    }
    result_.done.refusals += 1;
    return changed(all);
  }
  if (auto wrong = unlike(all)) {
    return wrong;
  }
  if (all[0].said.code != oktopk::fault::none) {
    if (all[0].said.code != oktopk::fault::bad_state && all[0].said.code != oktopk::fault::ranks_disagree) {
      return finding{"restore_error", "an altered state: " + all[0].said.text};
    }
    result_.done.refusals += 1;
    return changed(all);
  }
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    std::string const who = "rank " + std::to_string(rank) + ": ";
    auto const& wanted = all[rank].wanted;
    if (auto const why = impossible(about_, what_, wanted); !why.empty()) {
      return finding{"impossible_state_taken", who + "restore() took a state with " + why};
    }
    if (wanted.iteration != all[0].wanted.iteration || wanted.boundaries != all[0].wanted.boundaries ||
        !difference(wanted.global, all[0].wanted.global).empty()) {
      return finding{"restore_disagreement", who + "restore() took another state than that of rank 0"};
    }
    if (auto const text = difference(wanted, all[rank].after); !text.empty()) {
      return finding{"restored_other_state", who + "restore() made another state than it was given: " + text};
    }
  }
  return {};
}

template <class Value>
void board<Value>::judge(std::vector<event<Value>> const& all, int call) {
  verdict wrong;
  switch (all[0].what) {
  case event_kind::refusal:
    wrong = unlike(all);
    if (!wrong && all[0].said.code != all[0].expected) {
      wrong = finding{"bad_option_taken", "expected " + std::string(oktopk::name(all[0].expected)) +
                                              ", but: " + (all[0].said.text.empty() ? "no error" : all[0].said.text)};
    }
    result_.done.refusals += 1;
    break;
  case event_kind::twin:
    wrong = unlike(all);
    if (!wrong && all[0].said.code != oktopk::fault::none) {
      wrong = finding{"checkpoint", "a sound checkpoint: " + all[0].said.text};
    }
    if (auto const text = changed(all); !wrong && text) {
      wrong = finding{"checkpoint", "the state of the twin is not the one that was saved: " + text->text};
    }
    break;
  case event_kind::bad_file:
    for (std::size_t rank = 0; rank < all.size() && !wrong; ++rank) {
      if (all[rank].said.code != oktopk::fault::bad_file) {
        wrong = finding{"bad_file_taken", "rank " + std::to_string(rank) +
                                              ": a checkpoint that is cut short, too long or of another type: " +
                                              (all[rank].said.text.empty() ? "no error" : all[rank].said.text)};
      }
    }
    wrong = wrong ? wrong : changed(all);
    result_.done.refusals += 1;
    break;
  case event_kind::restore:
  case event_kind::flipped_file: wrong = judged_restore(all); break;
  }
  if (wrong) {
    found(*wrong, call);
  }
}

template <class Value>
void board<Value>::judge(round& all, int call) {
  if (stopped()) {
    return;
  }
  bool threw = false;
  seen_call<Value> const seen(about_, what_, std::move(all.ranks));
  verdict wrong = check_call(seen, threw);
  if (!wrong && !all.twins.empty()) {
    wrong = check_twin(seen.ranks, all.twins);
  }
  std::int64_t const calls = all.twins.empty() ? 1 : 2;
  result_.done.calls += calls;
  result_.done.rank_calls += calls * what_.ranks;
  result_.done.threw += threw && !wrong ? 1 : 0;
  if (wrong) {
    found(*wrong, call);
  }
}

template class board<float>;
template class board<double>;

} // namespace oktopk_fuzz
