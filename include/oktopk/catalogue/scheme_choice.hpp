// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/cost.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace oktopk {

/// A scheme of the catalogue and the time that it is expected to take.
struct forecast {
  std::string text;     ///< for `make_allreduce`
  std::string format;   ///< of the entries, or of the coded values, as `machine_model` names it
  call_cost cost;       ///< of a steady call
  bool exact = false;   ///< same bits as `ok_topk`
  bool rounded = false; ///< by a lossy format or codec
  bool dense = false;   ///< the update has every value
  double predicted = 0; ///< seconds of a call
  double measured = 0;  ///< seconds of the slowest rank, the median of the calls on trial; 0 before
};

namespace detail {

/// Lines of all forecasts, the fastest first.
inline std::string table_of(std::vector<forecast> all) {
  std::ranges::stable_sort(all, {}, &forecast::predicted);
  std::ostringstream out;
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
/// another one.
///
/// It communicates nothing: all ranks give it the same numbers, and get the same answers. Trials have two rounds. In the
/// first, every scheme that is predicted to come near the best is called for a few milliseconds; in the second, those
/// that came near the fastest are called again, one variant of each scheme. The fastest is chosen, where the prediction
/// counts as one more call. Calls after the trials may be shorter, since ranks do not begin them together: the first look
/// at the clocks learns what they take.
class scheme_choice {
public:
  /// What the machine tells of the decisions to take.
  struct setting {
    double noise = 0;    ///< seconds that a call may be off with the network as it was
    double agreeing = 0; ///< seconds of an agreement of all ranks
    std::int64_t recheck = 64;
  };

  /// Begins trials of all whose prediction comes near the best. Where the network has changed its rate is known badly,
  /// so the best of dense and sparse schemes are tried from further away.
  void begin(std::vector<forecast> all, setting const& machine, bool changed) {
    forecasts_ = std::move(all);
    machine_ = machine;
    after_change_ = changed;
    counted_.assign(forecasts_.size(), 0);
    trials_.resize(forecasts_.size());
    std::iota(trials_.begin(), trials_.end(), std::size_t(0));
    auto const predicted = [&](std::size_t each) { return forecasts_[each].predicted; };
    std::ranges::stable_sort(trials_, {}, predicted);
    double const best = predicted(trials_.front());
    bool const is_short = best < long_call;
    std::array<bool, 2> seen{}; // a sparse scheme, a dense one
    std::size_t place = 0;
    std::erase_if(trials_, [&](std::size_t each) {
      bool const is_late = place++ >= (is_short ? most_trials : most_long_trials);
      bool const first_of_kind = !std::exchange(seen[forecasts_[each].dense ? 1 : 0], true);
      double const slack = changed && first_of_kind ? 2 * trial_slack : is_short ? trial_slack : long_slack;
      bool const is_far = predicted(each) > slack * best + machine_.noise || (is_late && !first_of_kind);
      return is_far && forecasts_[each].text != chosen_; // which is measured beside the others
    });
    begin_round(false);
  }

  bool on_trial() const { return !trials_.empty(); }
  /// The scheme to call next.
  std::string const& next() const { return on_trial() ? forecasts_[trials_[trial_]].text : chosen_; }
  /// The scheme chosen last; none before the end of the first trials.
  std::string const& chosen() const { return chosen_; }
  /// Decisions for another scheme than the one before.
  std::int64_t switches() const { return switches_; }
  std::vector<forecast> const& forecasts() const { return forecasts_; }

  /// The first one, where there is none of that text.
  forecast const& find(std::string_view text) const {
    auto const found = std::ranges::find(forecasts_, text, &forecast::text);
    return found == forecasts_.end() ? forecasts_.front() : *found;
  }

  /// Ends trials, with a scheme whose calls are expected to take so long; ignores a text that is none of them.
  void choose(std::string const& text, double seconds) {
    if (find(text).text == text) {
      chosen_ = text;
      settle(seconds);
    }
  }

  void forget() { chosen_.clear(); }

  /// A call on trial took so many seconds on the slowest rank.
  void note_trial(double seconds) {
    calls_ += 1;
    if (calls_ > 1) { // the first makes room and draws regions
      times_.push_back(seconds);
      spent_ += seconds;
    }
    if (!is_tried()) {
      return;
    }
    std::size_t const place = trials_[trial_];
    forecasts_[place].measured = std::max(lower_median(times_), 1e-12); // of two the shorter: the other one was late
    counted_[place] = static_cast<double>(times_.size());
    trial_ += 1;
    begin_trial();
    if (trial_ == trials_.size()) {
      end_round();
    }
  }

  /// True where trials, begun for another network, ended with a scheme far off its prediction: the network went on to
  /// change meanwhile.
  bool is_surprised() const {
    return !on_trial() && after_change_ && has_changed(usual_, find(chosen_).predicted, model_error);
  }

  /// Seconds of a call, as the network was when the scheme was chosen.
  double usual() const { return usual_; }

  /// What a call took, without trials; true where it is time for a look at the clocks.
  bool note(double seconds) {
    calls_ += 1;
    least_ = 2 * (calls_ - 1) <= period_ ? seconds : std::min(least_, seconds);
    return calls_ >= period_;
  }

  /// The least time of the later half of the calls since the last look: what was before a change hides it no longer.
  double least() const { return least_; }

  /// A look at the clocks, with the least time of all ranks: true where the network is another one. Two looks in a row
  /// must say so, unless the change is large.
  bool look(double now) {
    begin_trial();
    if (std::exchange(is_first_look_, false) && now < usual_) {
      usual_ = now;
      return false;
    }
    int const way = !has_changed(now, usual_, network_change) ? 0 : now > usual_ ? 1 : -1;
    bool const again = std::exchange(suspected_, way) == way;
    return way != 0 && (again || has_changed(now, usual_, large_change));
  }

  /// True where the last look may have seen another network; the next one tells.
  bool is_suspected() const { return suspected_ != 0; }

private:
  static constexpr std::size_t most_trials = 16;
  static constexpr std::size_t most_long_trials = 6;
  static constexpr std::size_t most_finalists = 4;
  static constexpr int trial_calls = 2; // at least, the first included
  static constexpr int final_calls = 4;
  static constexpr int most_calls = 33;
  static constexpr std::int64_t least_period = 6;    // calls from look to look, of which the later half counts
  static constexpr double trial_seconds = 4e-3;      // a short call is repeated for so long, since one is noise
  static constexpr double most_trial_seconds = 4e-2; // and for no longer where some are late
  static constexpr double trial_slack = 1.6;         // a prediction may be off by so much, and by noise
  static constexpr double long_slack = 1.3;          // of a long call, which bytes and entries decide
  static constexpr double long_call = 2e-3;          // seconds
  static constexpr double final_slack = 1.2;         // a first time may be off by so much
  static constexpr double switch_gain = 0.9;         // a switch must take less than this share of the time
  static constexpr double network_change = 1.4;      // the clocks say so by this factor
  static constexpr double large_change = 2.5;        // and at once by this one
  static constexpr double model_error = 8;           // a prediction is not off by so much, if the network is as it was

  static double lower_median(std::vector<double>& of) {
    auto const middle = of.begin() + (std::ssize(of) - 1) / 2;
    std::ranges::nth_element(of, middle);
    return *middle;
  }

  // By a factor, and by more than noise.
  bool has_changed(double now, double then, double factor) const {
    return std::max(now, then) >= factor * std::min(now, then) && std::abs(now - then) > machine_.noise;
  }

  bool is_tried() const {
    if (calls_ < (in_finals_ ? final_calls : trial_calls)) {
      return false;
    }
    auto const counted = static_cast<double>(times_.size());
    return counted * std::ranges::min(times_) >= trial_seconds || spent_ >= most_trial_seconds || calls_ >= most_calls;
  }

  void begin_round(bool finals) {
    in_finals_ = finals;
    trial_ = 0;
    begin_trial();
  }

  void begin_trial() {
    calls_ = 0;
    times_.clear();
    spent_ = 0;
  }

  // What a call takes, where the prediction counts as one more call: a long call is tried seldom, and one time is noise.
  // Predictions count beside each other only, since all may be off by the same factor.
  std::vector<double> weighed_times() const {
    auto const predicted = [&](std::size_t each) { return std::max(forecasts_[each].predicted, 1e-12); };
    std::vector<double> offs;
    for (std::size_t const each : trials_) {
      offs.push_back(forecasts_[each].measured / predicted(each));
    }
    double const off = lower_median(offs);
    std::vector<double> times(forecasts_.size());
    for (std::size_t const each : trials_) {
      double const seen = forecasts_[each].measured;
      double const expected = std::clamp(off * predicted(each), seen / trial_slack, seen * trial_slack);
      times[each] = (counted_[each] * seen + expected) / (counted_[each] + 1);
    }
    return times;
  }

  void end_round() {
    auto const times = weighed_times();
    auto const time = [&](std::size_t each) { return times[each]; };
    std::ranges::stable_sort(trials_, {}, time);
    std::size_t const fastest = trials_.front();
    if (!in_finals_) {
      auto const measured = [&](std::size_t each) { return forecasts_[each].measured; };
      std::size_t const shortest = *std::ranges::min_element(trials_, {}, measured); // whatever its prediction
      std::set<std::string> names;
      std::erase_if(trials_, [&](std::size_t each) {
        bool const is_near = names.size() < most_finalists && time(each) <= final_slack * time(fastest) &&
                             names.insert(scheme_of(forecasts_[each].text)).second;
        return !is_near && each != shortest && forecasts_[each].text != chosen_;
      });
      if (trials_.size() > 1) {
        begin_round(true);
        return;
      }
    }
    auto const in_use = std::ranges::find_if(trials_, [&](auto each) { return forecasts_[each].text == chosen_; });
    std::size_t const used = in_use == trials_.end() ? fastest : *in_use;
    bool const stays = forecasts_[fastest].measured > switch_gain * forecasts_[used].measured;
    std::size_t const taken = stays ? used : fastest;
    switches_ += !chosen_.empty() && chosen_ != forecasts_[taken].text ? 1 : 0;
    chosen_ = forecasts_[taken].text;
    settle(forecasts_[taken].measured);
    is_first_look_ = true;
  }

  // No trials; a look at the clocks as often as that takes 1 % of the time, but at least every `recheck` calls. Never
  // after a single one, which may be the first of a scheme and make room.
  void settle(double seconds) {
    trials_.clear();
    begin_round(false);
    usual_ = std::max(seconds, 1e-12);
    auto const calls = static_cast<std::int64_t>(std::min(100 * machine_.agreeing / usual_, 1e9));
    period_ = std::max<std::int64_t>(std::min(machine_.recheck, std::max(calls, least_period)), 2);
    is_first_look_ = false;
    suspected_ = 0;
  }

  std::vector<forecast> forecasts_;
  setting machine_;
  std::vector<double> counted_;     // calls that each measured time is the median of
  std::vector<std::size_t> trials_; // positions in forecasts_, best first; none while nothing is tried
  bool in_finals_ = false;
  bool after_change_ = false; // the trials are because of another network
  std::size_t trial_ = 0;
  std::int64_t calls_ = 0;    // of this trial, or since the last look at the clocks
  std::vector<double> times_; // of this trial, without its first call
  double spent_ = 0;          // in these
  double least_ = 0;
  std::string chosen_;
  double usual_ = 0;
  bool is_first_look_ = false; // after trials
  int suspected_ = 0;          // 1: the last look saw calls that took longer; -1: shorter ones
  std::int64_t period_ = 0;    // calls from one look at the clocks to the next
  std::int64_t switches_ = 0;
};

} // namespace detail
} // namespace oktopk
