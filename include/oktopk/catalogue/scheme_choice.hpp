// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/cost.hpp>
#include <oktopk/core/number_text.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace oktopk::catalogue {

/// A scheme of the catalogue and the time that it is expected to take.
struct forecast {
  std::string text;       ///< for `make_allreduce`
  std::string format;     ///< of the entries, or of the coded values, as `machine_model` names it
  detail::call_cost cost; ///< of a steady call
  bool exact = false;     ///< same bits as `ok_topk`
  bool rounded = false;   ///< by a lossy format or codec
  bool dense = false;     ///< the update has every value
  double predicted = 0;   ///< seconds of a call
  double measured = 0;    ///< seconds of the slowest rank, the median of the calls on trial; 0 before
};

} // namespace oktopk::catalogue

namespace oktopk::detail {

using catalogue::forecast;

/// Lines of all forecasts, the fastest first.
inline std::string table_of(std::vector<forecast> all) {
  std::ranges::stable_sort(all, {}, &forecast::predicted);
  plain_text out;
  out << std::setprecision(4) << "predicted ms  measured ms  messages         bytes  scheme\n";
  for (forecast const& each : all) {
    out << std::setw(12) << 1e3 * each.predicted << std::setw(13);
    (each.measured > 0 ? out << 1e3 * each.measured : out << '-')
        << std::setw(10) << each.cost.messages + each.cost.beside << std::setw(14) << std::llround(each.cost.bytes)
        << "  " << each.text << '\n';
  }
  return out.str();
}

/// The name of a scheme in its text.
inline std::string scheme_of(std::string const& text) {
  return text.substr(0, text.find('('));
}

/// The decisions of `automatic`: which scheme is called next, how long it is on trial, and when the network counts as
/// changed.
///
/// It sends nothing: all ranks give it the same numbers, and get the same answers. Trials have two rounds. In the first
/// round, every scheme whose prediction is near the best one is called for a few milliseconds. In the second round, the
/// schemes that were near the fastest are called again, one variant of each scheme. The fastest is chosen; its
/// prediction counts as one more call. Where calls are short, a call on trial takes a multiple of another, so the first
/// round has one variant of each scheme and few calls. Its fastest is in use at once, and the likely ones, all variants
/// among them, are tried again after 64 calls, 256 more, and so on. Calls after the trials may be shorter, since ranks
/// do not begin them together: the first look at the clocks measures them.
class scheme_choice {
public:
  /// The numbers of the machine on which the decisions depend.
  struct setting {
    double noise = 0;    ///< seconds by which a call may differ while the network is the same
    double agreeing = 0; ///< seconds of an agreement of all ranks
    std::int64_t recheck = 64;
  };

  /// Begins trials of all schemes whose prediction is near the best one. After a change of the network its rate is not
  /// well known, so the best dense and the best sparse scheme are tried even if their predictions are further away.
  void begin(std::vector<forecast> all, setting const& machine, bool changed) {
    forecasts_ = std::move(all);
    machine_ = machine;
    after_change_ = changed;
    wait_ = first_wait;
    seen_.assign(forecasts_.size(), {});
    std::vector<std::size_t> by_prediction(forecasts_.size());
    std::iota(by_prediction.begin(), by_prediction.end(), std::size_t(0));
    std::ranges::stable_sort(by_prediction, {}, [&](std::size_t each) { return forecasts_[each].predicted; });
    bool const is_short = forecasts_[by_prediction.front()].predicted < long_call;
    contenders_ = near_best(by_prediction, is_short);
    trials_ = is_short ? one_of_each_scheme(contenders_) : contenders_;
    in_rematch_ = false;
    begin_round(false, round_calls);
  }

  bool on_trial() const { return !trials_.empty(); }
  /// True while the chosen scheme is on trial again beside others, though nothing has changed.
  bool in_rematch() const { return in_rematch_; }
  /// The scheme to call next.
  std::string const& next() const { return on_trial() ? forecasts_[trials_[trial_]].text : chosen_; }
  /// The scheme chosen last; none before the end of the first trials.
  std::string const& chosen() const { return chosen_; }
  /// The number of decisions for another scheme than the one before.
  std::int64_t switches() const { return switches_; }
  std::vector<forecast> const& forecasts() const { return forecasts_; }

  /// The forecast with that text; the first one if there is none.
  forecast const& find(std::string_view text) const {
    auto const found = std::ranges::find(forecasts_, text, &forecast::text);
    return found == forecasts_.end() ? forecasts_.front() : *found;
  }

  /// Ends the trials, with a scheme whose calls are expected to take `seconds`; ignores a text that no forecast has.
  void choose(std::string const& text, double seconds) {
    if (find(text).text == text) {
      chosen_ = text;
      contenders_.clear(); // none has been tried
      settle(seconds);
    }
  }

  void forget() { chosen_.clear(); }

  /// Notes a call on trial that took `seconds` on the slowest rank.
  void note_trial(double seconds) {
    calls_ += 1;
    if (calls_ > 1) { // the first call allocates and makes regions
      times_.push_back(seconds);
      spent_ += seconds;
    }
    if (!is_tried()) {
      return;
    }
    std::size_t const place = trials_[trial_];
    auto& seen = seen_[place];
    std::int64_t const older =
        in_rematch_ ? std::min(std::ssize(seen), std::ssize(times_) - 1) : 0; // the new ones decide
    seen.erase(seen.begin(), seen.end() - older);
    seen.insert(seen.end(), times_.begin(), times_.end());
    forecasts_[place].measured = std::max(lower_median(seen), 1e-12); // of two the shorter: the other one was late
    shortest_ = std::min(shortest_, forecasts_[place].measured);
    if (forecasts_[place].text == chosen_) {
      to_beat_ = in_rematch_ ? std::ranges::min(times_) : forecasts_[place].measured;
    }
    trial_ += 1;
    begin_trial();
    if (trial_ == trials_.size()) {
      end_round();
    }
  }

  /// True if trials after a change of the network ended with a scheme whose time is far from its prediction: the
  /// network has changed again meanwhile.
  bool is_surprised() const {
    return !on_trial() && after_change_ && has_changed(usual_, find(chosen_).predicted, model_error);
  }

  /// Seconds of a call, as the network was when the scheme was chosen.
  double usual() const { return usual_; }

  /// Notes the seconds of a call that is not on trial. Returns true if a look at the clocks is due.
  bool note(double seconds) {
    calls_ += 1;
    least_ = 2 * (calls_ - 1) <= period_ ? seconds : std::min(least_, seconds);
    return calls_ >= period_;
  }

  /// The least time of the later half of the calls since the last look, so that calls before a change do not hide it.
  double least() const { return least_; }

  /// A look at the clocks, with the least time of all ranks. Returns true if the network has changed. Two looks in a
  /// row must show this, unless the change is large.
  bool look(double now) {
    since_ += period_;
    begin_trial();
    if (std::exchange(is_first_look_, false) && now < usual_) {
      usual_ = now;
      return false;
    }
    int const way = !has_changed(now, usual_, network_change) ? 0 : now > usual_ ? 1 : -1;
    bool const again = std::exchange(suspected_, way) == way;
    if (way == 0 && usual_ < long_call && since_ >= wait_ && !contenders_.empty()) {
      begin_rematch();
    }
    return way != 0 && (again || has_changed(now, usual_, large_change));
  }

  /// True if the last look may have seen a change of the network; the next look decides.
  bool is_suspected() const { return suspected_ != 0; }

private:
  static constexpr std::size_t most_trials = 16;
  static constexpr std::size_t most_long_trials = 6;
  static constexpr std::size_t most_finalists = 4;
  static constexpr std::size_t most_names = 3;  // schemes of a kind in the first round where calls are short
  static constexpr std::size_t most_likely = 5; // schemes of a rematch
  static constexpr int trial_calls = 2;         // at least, the first included
  static constexpr int final_calls = 4;
  static constexpr int least_calls = 3;
  static constexpr int most_calls = 33;
  static constexpr std::int64_t round_calls = 12;    // of all schemes in the first round, but each has `least_calls`
  static constexpr std::int64_t final_round = 36;    // the same in the second round
  static constexpr std::int64_t first_wait = 64;     // calls from the trials to the first rematch
  static constexpr std::int64_t rematch_calls = 20;  // of all schemes in a rematch: a program hardly feels so few
  static constexpr std::int64_t least_period = 6;    // calls from look to look; the later half counts
  static constexpr double trial_seconds = 4e-3;      // a short call is repeated for this time, since one is noise
  static constexpr double most_trial_seconds = 4e-2; // but not longer than this if some are late
  static constexpr double trial_slack = 1.6;         // a prediction may be wrong by this factor, and by noise
  static constexpr double long_slack = 1.3;          // the same for a long call, which depends on bytes and entries
  static constexpr double long_call = 2e-3;          // seconds
  static constexpr double final_slack = 1.2;         // a time of the first round may be wrong by this factor
  static constexpr double switch_gain = 0.9;         // a switch must take less than this share of the time
  static constexpr double network_change = 1.4;      // a changed network changes the times at least by this factor
  static constexpr double large_change = 2.5;        // one look is enough for this factor
  static constexpr double model_error = 8;           // no prediction is wrong by this factor if the network is the same

  static double lower_median(std::vector<double> of) {
    auto const middle = of.begin() + (std::ssize(of) - 1) / 2;
    std::ranges::nth_element(of, middle);
    return *middle;
  }

  // True if two times differ by the factor and by more than noise.
  bool has_changed(double now, double then, double factor) const {
    return std::max(now, then) >= factor * std::min(now, then) && std::abs(now - then) > machine_.noise;
  }

  bool is_tried() const {
    if (calls_ < (in_finals_ ? final_calls : trial_calls)) {
      return false;
    }
    auto const counted = static_cast<double>(times_.size());
    double const least = std::ranges::min(times_);
    bool const is_behind = calls_ >= least_calls && least > final_slack * shortest_;
    return is_behind || counted * least >= trial_seconds || spent_ >= most_trial_seconds || calls_ >= share_;
  }

  // Of all schemes, the best first, those that are worth a trial; the chosen one is always among them. Where calls are
  // short, formats that send as much as a better one are not.
  std::vector<std::size_t> near_best(std::vector<std::size_t> of, bool is_short) const {
    double const best = forecasts_[of.front()].predicted;
    std::size_t const most = is_short ? most_trials : most_long_trials;
    double const slack = is_short ? trial_slack : long_slack;
    double const slack_of_first = after_change_ ? 2 * trial_slack : slack; // of the best of either kind
    std::array<bool, 2> seen{};                                            // a sparse scheme, a dense one
    std::set<std::tuple<std::string, double, double, double>> sent;
    std::size_t place = 0;
    std::erase_if(of, [&](std::size_t number) {
      forecast const& each = forecasts_[number];
      if (each.text == chosen_) {
        seen[each.dense ? 1 : 0] = true;
        place += 1;
        return false;
      }
      if (is_short && each.cost.bytes > 0 &&
          !sent.emplace(scheme_of(each.text), each.cost.messages, each.cost.beside, each.cost.bytes).second) {
        return true;
      }
      bool const first_of_kind = !std::exchange(seen[each.dense ? 1 : 0], true);
      bool const is_late = place++ >= most && !first_of_kind;
      return is_late || each.predicted > (first_of_kind ? slack_of_first : slack) * best + machine_.noise;
    });
    return of;
  }

  // The best variant of each scheme, of the first few of either kind; and the chosen one.
  std::vector<std::size_t> one_of_each_scheme(std::vector<std::size_t> of) const {
    std::array<std::set<std::string>, 2> names; // of sparse schemes, of dense ones
    std::erase_if(of, [&](std::size_t number) {
      forecast const& each = forecasts_[number];
      auto& known = names[each.dense ? 1 : 0];
      bool const is_first = known.size() < most_names && known.insert(scheme_of(each.text)).second;
      return !is_first && each.text != chosen_;
    });
    return of;
  }

  // The schemes of a round share `calls`, so that the trials of many short calls end soon.
  void begin_round(bool finals, std::int64_t calls) {
    in_finals_ = finals;
    trial_ = 0;
    shortest_ = std::numeric_limits<double>::max();
    share_ = std::clamp<std::int64_t>(calls / std::max<std::int64_t>(std::ssize(trials_), 1), least_calls, most_calls);
    begin_trial();
  }

  // Tries the scheme in use again, first since it is made, beside the best predictions and what has taken the shortest
  // time. Short calls differ by more than schemes do, so one decision by few of them may be wrong. A scheme may have
  // been late all the time, so the least factor between a time and a prediction tells what others may take.
  void begin_rematch() {
    double off = std::numeric_limits<double>::max();
    double least = off;
    std::size_t shortest = 0;
    for (std::size_t const each : contenders_) {
      if (double const seen = forecasts_[each].measured; seen > 0) {
        off = std::min(off, seen / predicted(each));
        shortest = seen < least ? each : shortest;
        least = std::min(least, seen);
      }
    }
    auto const is_used = [&](std::size_t each) { return forecasts_[each].text == chosen_; };
    trials_ = contenders_;
    std::stable_partition(trials_.begin(), trials_.end(), is_used);
    std::size_t place = 0;
    std::erase_if(trials_, [&](std::size_t each) {
      bool const is_far = place++ >= most_likely || off * predicted(each) > trial_slack * least;
      return is_far && !is_used(each) && each != shortest;
    });
    if (trials_.size() < 2) {
      trials_.clear();
      return;
    }
    after_change_ = false;
    in_rematch_ = true;
    begin_round(true, rematch_calls);
    wait_ *= 4;
  }

  std::size_t shortest_of_all() const { // whatever its prediction
    return *std::ranges::min_element(trials_, {}, [&](std::size_t each) { return forecasts_[each].measured; });
  }

  void begin_trial() {
    calls_ = 0;
    times_.clear();
    spent_ = 0;
  }

  double predicted(std::size_t each) const { return std::max(forecasts_[each].predicted, 1e-12); }

  // By what factor calls are longer than predicted.
  double usual_off() const {
    std::vector<double> offs;
    for (std::size_t const each : trials_) {
      offs.push_back(forecasts_[each].measured / predicted(each));
    }
    return lower_median(offs);
  }

  // The time of a call of each scheme; its prediction counts as one more call, since a long call is tried only a few
  // times, and one time is noise. Predictions are only compared with each other, since all may be wrong by the same
  // factor.
  std::vector<double> weighed_times() const {
    double const off = usual_off();
    std::vector<double> times(forecasts_.size());
    for (std::size_t const each : trials_) {
      double const seen = forecasts_[each].measured;
      double const expected = std::clamp(off * predicted(each), seen / trial_slack, seen * trial_slack);
      auto const counted = static_cast<double>(seen_[each].size());
      times[each] = (counted * seen + expected) / (counted + 1);
    }
    return times;
  }

  void end_round() {
    auto const times = weighed_times();
    auto const time = [&](std::size_t each) { return times[each]; };
    std::ranges::stable_sort(trials_, {}, time);
    std::size_t const fastest = trials_.front();
    if (std::size_t const shortest = shortest_of_all(); !in_finals_ && forecasts_[shortest].measured >= long_call) {
      std::set<std::string> names;
      std::erase_if(trials_, [&](std::size_t each) {
        bool const is_near = names.size() < most_finalists && time(each) <= final_slack * time(fastest) &&
                             names.insert(scheme_of(forecasts_[each].text)).second;
        return !is_near && each != shortest && forecasts_[each].text != chosen_;
      });
      if (trials_.size() > 1) {
        begin_round(true, final_round);
        return;
      }
    }
    auto const in_use = std::ranges::find_if(trials_, [&](auto each) { return forecasts_[each].text == chosen_; });
    bool const stays = in_use != trials_.end() && forecasts_[fastest].measured > switch_gain * to_beat_;
    std::size_t const taken = stays ? *in_use : fastest;
    switches_ += !chosen_.empty() && chosen_ != forecasts_[taken].text ? 1 : 0;
    chosen_ = forecasts_[taken].text;
    settle(forecasts_[taken].measured);
    is_first_look_ = true;
  }

  // Ends the trials. A look at the clocks follows as often as that takes 1 % of the time, but at least every `recheck`
  // calls. Never after a single call, which may be the first of a scheme and allocate.
  void settle(double seconds) {
    trials_.clear();
    begin_trial();
    in_rematch_ = false;
    since_ = 0;
    usual_ = std::max(seconds, 1e-12);
    auto const calls = static_cast<std::int64_t>(std::min(100 * machine_.agreeing / usual_, 1e9));
    period_ = std::max<std::int64_t>(std::min(machine_.recheck, std::max(calls, least_period)), 2);
    is_first_look_ = false;
    suspected_ = 0;
  }

  std::vector<forecast> forecasts_;
  setting machine_;
  std::vector<std::vector<double>> seen_; // the times of each scheme of which `measured` is the median
  std::vector<std::size_t> trials_;       // positions in forecasts_, best first; none while nothing is tried
  std::vector<std::size_t> contenders_;   // the schemes of a rematch; none where one was given
  bool in_finals_ = false;
  bool in_rematch_ = false;
  bool after_change_ = false; // the trials follow a change of the network
  std::size_t trial_ = 0;
  double shortest_ = 0;    // time of this round
  double to_beat_ = 0;     // time of the scheme in use: in a rematch its least, since others are tried at other times
  std::int64_t share_ = 0; // calls of a scheme in this round, at most
  std::int64_t since_ = 0; // calls since the decision
  std::int64_t wait_ = 0;  // calls from the decision to the next rematch
  std::int64_t calls_ = 0; // calls of this trial, or since the last look at the clocks
  std::vector<double> times_; // of this trial, without its first call
  double spent_ = 0;          // seconds of these calls
  double least_ = 0;
  std::string chosen_;
  double usual_ = 0;
  bool is_first_look_ = false; // the next look is the first after trials
  int suspected_ = 0;          // 1: the last look saw calls that took longer; -1: shorter ones
  std::int64_t period_ = 0;    // calls from one look at the clocks to the next
  std::int64_t switches_ = 0;
};

} // namespace oktopk::detail
