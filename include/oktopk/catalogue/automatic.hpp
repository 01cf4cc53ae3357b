// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/options.hpp>
#include <oktopk/catalogue/any_allreduce.hpp>
#include <oktopk/catalogue/machine_model.hpp>
#include <oktopk/comm/agreement.hpp>
#include <oktopk/comm/collectives.hpp>
#include <oktopk/core/cost.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/core/options.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace oktopk {

/// The sums that `automatic` may give.
enum class allowed_sums : std::uint8_t {
  unrounded, ///< of any scheme that rounds nothing, dense ones included
  exact,     ///< to the bit those of `ok_topk` with its default policies
  rounded,   ///< of any scheme; what a lossy format rounds off returns to the residual
};

/// A scheme of the catalogue and the time that it is expected to take.
struct forecast {
  std::string text;     ///< for `make_allreduce`
  std::string format;   ///< of the entries, or of the coded values, as `machine_model` names it
  call_cost cost;       ///< of a steady call
  bool exact = false;   ///< same bits as `ok_topk`
  bool rounded = false; ///< by a lossy format or codec
  bool dense = false;   ///< the update has every value
  double predicted = 0; ///< seconds of a call
  double measured = 0;  ///< seconds, by the clock of the rank that came last; 0 before the first call
};

/// All schemes that tell their cost, over P ranks, in the order of the catalogue.
template <execution_space E, communicator Comm, gradient_value Value, gradient_index Index>
std::vector<forecast> forecast_all(gradient_size const& size, int ranks);

namespace detail {

/// `make_allreduce`, which lies above this header.
template <gradient_value Value, gradient_index Index, execution_space E, communicator Comm>
any_allreduce<E, Comm, Value, Index> make_scheme(E const& exec, Comm const& comm, std::string const& text,
                                                 gradient_size const& size);

} // namespace detail

/// The state of `automatic`: of the scheme in use, and its name.
struct automatic_state {
  std::int64_t iteration = 0;
  std::int8_t of_other_ranks = 0; ///< set by `for_other_ranks`
  std::vector<char> text;         ///< of the scheme; none before the first call
  any_state inside;

  bool operator==(automatic_state const&) const = default;
  static std::string type_name() { return "automatic"; }

  template <class State, class Visit>
  static void each_part(State& state, Visit& visit) {
    visit(state.iteration);
    visit(state.of_other_ranks);
    visit(state.text);
    any_state::each_part(state.inside, visit);
  }
};

/// The allreduce that takes least time here: it predicts every scheme of the catalogue that it is allowed to take, tries
/// the best of them in its first calls, keeps the fastest, and looks again when its clock says that the network is
/// another one.
///
/// All ranks decide together, by numbers that they have agreed on: one short control message every `recheck` calls and
/// after each trial. Every call is a whole allreduce of one scheme, so no gradient is lost in a trial or a switch; what
/// the caller carries (residual, momentum) goes on, and so do thresholds between variants of one scheme. A switch needs
/// a scheme that is 10 % faster. `explain()` says what was chosen and why.
///
/// `update.contributed()` tells as ever what has left the residual: all entries, after a call of a dense scheme.
template <execution_space E, communicator Comm, gradient_value Value = float, gradient_index Index = std::int32_t>
class automatic {
public:
  using execution_space = E;
  using communicator_type = Comm;
  using index_type = Index;
  using value_type = Value;
  using memory_space = typename E::memory_space;
  using state_type = automatic_state;
  using update_type = sparse_update<Index, Value, memory_space>;

  struct options {
    std::int64_t length = 0;                     ///< of the accumulators
    std::optional<std::int64_t> k{};             ///< entries to select, in [0, length]; this or density
    std::optional<double> density{};             ///< k / length, in (0, 1]
    allowed_sums sums = allowed_sums::unrounded; ///< which schemes there are to choose from
    bool dense_update = false;                   ///< only schemes whose update has every value
    std::int64_t recheck = 64;                   ///< calls from one look at the clocks to the next
    double latency_us = 0;                       ///< of the network; 0 for measured
    double rate_mbit = 0;                        ///< of the network, per rank; 0 for measured
    std::optional<machine_model> machine{};      ///< in place of any measurement

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      constexpr option_names<allowed_sums, 3> names{
          {{"unrounded", allowed_sums::unrounded}, {"exact", allowed_sums::exact}, {"rounded", allowed_sums::rounded}}};
      visit("sums", how.sums, names, "schemes to choose from, exact gives the bits of ok_topk");
      visit("dense_update", how.dense_update, "only schemes whose update has every value");
      visit("recheck", how.recheck, "calls from one look at the clocks to the next", at_least(1));
      visit("latency_us", how.latency_us, "microseconds of a message, 0 for measured", at_least(0));
      visit("rate_mbit", how.rate_mbit, "Mbit/s of a rank, 0 for measured", at_least(0));
    }
  };

  /// Collective. Measures network and processor, in less than a second, where `how` does not tell them and no object
  /// before has measured them for as many ranks. Throws an `error` on every rank, as `ok_topk` does for its options.
  automatic(E exec, Comm comm, options const& how) : exec_(std::move(exec)), comm_(std::move(comm)), how_(how) {
    agreement terms("automatic");
    detail::check_length<Index>(how_.length, terms);
    k_ = detail::resolve_k(how_.length, how_.k, how_.density, terms);
    terms.fact("length", how_.length).fact("k", k_).fact("options", detail::describe_options("automatic", how_));
    if (std::string const problem = detail::fault_of_options("automatic", how_); !problem.empty()) {
      terms.note(fault::option_out_of_range, problem);
    }
    terms.fact("machine", how_.machine ? "given" : "measured");
    if (how_.machine) {
      machine_model::each_number(*how_.machine, [&](std::string const& number, double seconds) {
        terms.fact(number, seconds);
        if (!(seconds >= 0) || !std::isfinite(seconds)) {
          terms.note(fault::option_out_of_range, "the machine's " + number + " is no number of seconds");
        }
      });
    }
    terms.check_on(comm_);
    learn_machine();
    predict();
  }

  std::int64_t length() const { return how_.length; }
  std::int64_t k() const { return k_; }
  static std::string_view name() { return "automatic"; }
  E const& execution() const { return exec_; }
  Comm& comm() { return comm_; }
  call_statistics const& last_call() const { return current_ ? current_->last_call() : no_call_; }
  machine_model const& machine() const { return machine_; }
  /// Decisions for another scheme than the one before; trials are none.
  std::int64_t switches() const { return switches_; }
  /// All schemes that may be chosen, in the order of the catalogue.
  std::vector<forecast> const& forecasts() const { return forecasts_; }

  /// The bound of the scheme of the last call, and the agreement on the clocks. What it takes to make a scheme for its
  /// first call, a few control messages, is beside it.
  double bound_words() const {
    double const agreeing = detail::allreduce_words_at_most(comm_.size(), static_cast<std::int64_t>(most_trials));
    return (current_ ? current_->bound_words() : 0) + agreeing;
  }

  /// Another number of entries from the next call on; see `selecting_base::set_k`. Predicts anew. Collective.
  void set_k(std::int64_t k) {
    agreement terms("set_k");
    std::int64_t const resolved = detail::resolve_k(how_.length, k, std::nullopt, terms);
    terms.fact("k", resolved).check_on(comm_);
    k_ = resolved;
    remember();
    retire();
    predict();
  }

  state_type const& state() const {
    state_.text.clear();
    state_.inside = {};
    if (current_ && current_->text() == chosen_ && trials_.empty()) { // a scheme on trial is not chosen yet
      state_.text.assign(current_->text().begin(), current_->text().end());
      state_.inside = current_->state();
    }
    return state_;
  }

  /// Goes on with the scheme of a saved state, and looks at the clocks when that is due. Collective.
  void restore(state_type const& saved) {
    std::string const text(saved.text.begin(), saved.text.end());
    agreement terms("automatic::restore");
    terms.fact("iteration", saved.iteration).fact("scheme", text);
    terms.check_on(comm_);
    state_ = saved;
    state_.of_other_ranks = 0;
    retire();
    states_.clear();
    chosen_.clear();
    predict(); // forgets the times of trials, on which ranks have not agreed yet
    if (std::none_of(forecasts_.begin(), forecasts_.end(), [&](forecast const& each) { return each.text == text; })) {
      return; // none, or one that these options do not allow
    }
    trials_.clear();
    chosen_ = text;
    use(text);
    any_state inside = saved.inside;
    if (saved.of_other_ranks != 0) {
      try {
        inside = current_->for_other_ranks(inside);
      } catch (error const&) { // on this rank alone: `restore` tells all ranks
      }
    }
    current_->restore(inside);
  }

  /// One iteration. Collective. The accumulator is only read.
  template <accumulator_input<Index, Value, E> Input>
  update_type const& operator()(Input const& accumulator) {
    retired_.reset();
    try {
      use(trials_.empty() ? chosen_ : forecasts_[trials_[trial_]].text); // the last update lives until here
    } catch (error const& why) {
      if (detail::breaks_communicator(why.code())) {
        leave(comm_, why);
      }
      throw;
    } catch (...) { // memory that this rank alone lacks
      leave(comm_, detail::order_is_lost(comm_.rank()));
      throw;
    }
    auto const start = detail::seconds_clock::now();
    update_type const& update = (*current_)(accumulator);
    note_time(detail::seconds_since(start));
    state_.iteration += 1;
    return update;
  }

  /// One line: the scheme, its prediction and its time, the best dense one's, and what they were predicted for.
  std::string explain() const {
    std::ostringstream out;
    out.precision(3);
    forecast const* const chosen = find(current_ ? current_->text() : forecasts_[best()].text);
    forecast const* dense = nullptr;
    for (forecast const& each : forecasts_) {
      bool const faster = each.dense && (dense == nullptr || each.predicted < dense->predicted);
      dense = faster ? &each : dense;
    }
    out << chosen->text << ": " << 1e3 * chosen->predicted << " ms predicted";
    if (chosen->measured > 0) {
      out << ", " << 1e3 * chosen->measured << " measured";
    }
    if (dense != nullptr && dense != chosen) {
      out << "; " << dense->text << " " << 1e3 * (dense->measured > 0 ? dense->measured : dense->predicted);
    }
    out << "; k = " << 100.0 * static_cast<double>(k_) / static_cast<double>(std::max<std::int64_t>(how_.length, 1))
        << " % of " << how_.length << " over " << comm_.size() << " ranks";
    if (machine_.seconds_per_byte > 0) {
      out << " at " << 8e-6 / machine_.seconds_per_byte << " Mbit/s, " << 1e6 * machine_.latency << " us";
    }
    return out.str();
  }

private:
  static constexpr std::size_t most_trials = 4;
  static constexpr int trial_calls = 3;         // the first of which makes room and draws regions
  static constexpr double trial_slack = 1.6;    // a prediction may be off by so much
  static constexpr double switch_gain = 0.9;    // a switch must take less than this share of the time
  static constexpr double network_change = 1.4; // the clocks say so by this factor

  // What is known of this machine; objects of one thread share it, as buckets do.
  void learn_machine() {
    if (how_.machine) {
      machine_ = *how_.machine;
      return;
    }
    thread_local int known_ranks = 0;
    thread_local machine_model known;
    std::int64_t have = known_ranks == comm_.size() ? 1 : 0;
    collective_workspace workspace;
    allreduce_integers(comm_, std::span(&have, 1), reduction::min, phase::control, workspace);
    if (have == 0) {
      known = measure_machine<Value, Index>(exec_, comm_, how_.length, k_);
      known_ranks = comm_.size();
    }
    machine_ = known;
    // Objects of other threads may have measured something else.
    agree_on_machine();
    machine_.latency = how_.latency_us > 0 ? how_.latency_us * 1e-6 : machine_.latency;
    machine_.seconds_per_byte = how_.rate_mbit > 0 ? 8e-6 / how_.rate_mbit : machine_.seconds_per_byte;
  }

  void agree_on_machine() {
    std::vector<std::int64_t> numbers;
    machine_model::each_number(machine_, [&](std::string const&, double& seconds) {
      numbers.push_back(static_cast<std::int64_t>(seconds * 1e15));
    });
    collective_workspace workspace;
    allreduce_integers(comm_, std::span(numbers), reduction::max, phase::control, workspace);
    std::size_t at = 0;
    machine_model::each_number(
        machine_, [&](std::string const&, double& seconds) { seconds = static_cast<double>(numbers[at++]) * 1e-15; });
  }

  bool allowed(forecast const& each) const {
    bool const fits = how_.sums == allowed_sums::exact       ? each.exact
                      : how_.sums == allowed_sums::unrounded ? !each.rounded
                                                             : true;
    return fits && (!how_.dense_update || each.dense);
  }

  // Predicts every scheme and begins trials of the best. Collective.
  void predict() {
    forecasts_ = forecast_all<E, Comm, Value, Index>({.length = how_.length, .k = k_}, comm_.size());
    std::erase_if(forecasts_, [&](forecast const& each) { return !allowed(each); });
    if (forecasts_.empty()) {
      throw error(fault::option_out_of_range, "automatic has no scheme to choose from");
    }
    // Logarithms may differ between processors by a bit; what ranks decide by is the same on all of them.
    std::vector<std::int64_t> bytes;
    for (forecast const& each : forecasts_) {
      bytes.push_back(std::llround(each.cost.bytes));
    }
    allreduce_integers(comm_, std::span(bytes), reduction::max, phase::control, workspace_);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      forecasts_[i].cost.bytes = static_cast<double>(bytes[i]);
    }
    begin_trials();
  }

  void begin_trials() {
    for (forecast& each : forecasts_) {
      each.predicted = machine_.seconds(each.cost, each.format);
    }
    std::vector<std::size_t> order(forecasts_.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return forecasts_[a].predicted < forecasts_[b].predicted; });
    double const limit = trial_slack * forecasts_[order.front()].predicted;
    trials_.clear();
    for (std::size_t const each : order) {
      if (trials_.empty() || (trials_.size() < most_trials && forecasts_[each].predicted <= limit)) {
        trials_.push_back(each);
      }
    }
    // The scheme in use is measured beside the others.
    if (current_ && std::none_of(trials_.begin(), trials_.end(),
                                 [&](std::size_t i) { return forecasts_[i].text == current_->text(); })) {
      for (std::size_t i = 0; i < forecasts_.size(); ++i) {
        if (forecasts_[i].text == current_->text()) {
          if (trials_.size() == most_trials) {
            trials_.pop_back();
          }
          trials_.push_back(i);
        }
      }
    }
    trial_ = 0;
    calls_ = 0;
    window_ = 0;
  }

  std::size_t best() const { return trials_.empty() ? 0 : trials_.front(); }

  forecast const* find(std::string_view text) const {
    auto const found =
        std::find_if(forecasts_.begin(), forecasts_.end(), [&](forecast const& each) { return each.text == text; });
    return found == forecasts_.end() ? &forecasts_.front() : &*found;
  }

  static std::string scheme_of(std::string const& text) { return text.substr(0, text.find('(')); }

  // Until the next call the caller may still read the last update.
  void retire() {
    if (current_) {
      retired_ = std::move(current_);
    }
  }

  void remember() {
    if (current_) {
      states_[scheme_of(current_->text())] = current_->state();
    }
  }

  // Makes a scheme the current one. Collective, and every rank asks for the same. The thresholds and regions of the same
  // scheme with another format go on, where they fit.
  void use(std::string const& text) {
    if (current_ && current_->text() == text) {
      return;
    }
    remember();
    current_.reset(); // before the next one takes its memory
    current_ = std::make_unique<any_allreduce<E, Comm, Value, Index>>(
        detail::make_scheme<Value, Index>(exec_, comm_, text, {.length = how_.length, .k = k_}));
    if (auto const found = states_.find(scheme_of(text)); found != states_.end()) {
      try {
        current_->restore(found->second);
      } catch (error const& why) {
        if (why.code() != fault::bad_state) {
          throw;
        }
      }
    }
  }

  // What a call took. Ranks agree after a trial, and every `recheck` calls.
  void note_time(double seconds) {
    calls_ += 1;
    bool const first = !trials_.empty() && calls_ == 1;
    window_ = first ? 0 : (window_ == 0 ? seconds : std::min(window_, seconds));
    if (trials_.empty()) {
      if (calls_ >= how_.recheck) {
        look_at_clocks();
      }
      return;
    }
    if (calls_ < trial_calls) {
      return;
    }
    forecasts_[trials_[trial_]].measured = window_;
    calls_ = 0;
    window_ = 0;
    trial_ += 1;
    if (trial_ == trials_.size()) {
      decide();
    }
  }

  // The call of the rank that came last began when all were there: the least time of all ranks.
  void agree_on_times(std::span<double> seconds) {
    std::array<std::int64_t, most_trials> picoseconds{};
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      picoseconds[i] = static_cast<std::int64_t>(seconds[i] * 1e12);
    }
    allreduce_integers(comm_, std::span(picoseconds).first(seconds.size()), reduction::min, phase::control, workspace_);
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      seconds[i] = std::max(static_cast<double>(picoseconds[i]), 1.0) * 1e-12;
    }
  }

  void decide() {
    std::array<double, most_trials> times{};
    for (std::size_t i = 0; i < trials_.size(); ++i) {
      times[i] = forecasts_[trials_[i]].measured;
    }
    agree_on_times(std::span(times).first(trials_.size()));
    std::size_t chosen = trials_.front();
    double least = times[0];
    double before = 0;
    for (std::size_t i = 0; i < trials_.size(); ++i) {
      forecasts_[trials_[i]].measured = times[i];
      if (times[i] < least) {
        least = times[i];
        chosen = trials_[i];
      }
      before = forecasts_[trials_[i]].text == chosen_ ? times[i] : before;
    }
    trials_.clear();
    std::string text = forecasts_[chosen].text;
    if (!chosen_.empty() && before > 0 && least > switch_gain * before) {
      text = chosen_;
    }
    switches_ += !chosen_.empty() && chosen_ != text ? 1 : 0;
    chosen_ = text;
  }

  void look_at_clocks() {
    double now = window_;
    agree_on_times(std::span(&now, 1));
    calls_ = 0;
    window_ = 0;
    auto const place = std::find_if(forecasts_.begin(), forecasts_.end(),
                                    [&](forecast const& each) { return each.text == current_->text(); });
    if (place == forecasts_.end()) {
      return;
    }
    double const then = place->measured > 0 ? place->measured : place->predicted;
    if (now < network_change * then && now * network_change > then) {
      return;
    }
    // The processor is the same, so the network is another one: as fast as this scheme's bytes tell.
    machine_model still = machine_;
    still.seconds_per_byte = 0;
    double const beside = still.seconds(place->cost, place->format);
    if (place->cost.bytes > 0 && now > beside) {
      machine_.seconds_per_byte = (now - beside) / place->cost.bytes;
    }
    place->measured = now;
    begin_trials();
    if (trials_.size() == 1 && forecasts_[trials_.front()].text == current_->text()) {
      trials_.clear(); // nothing else comes near
    }
  }

  E exec_;
  Comm comm_;
  options how_;
  std::int64_t k_ = 0;
  machine_model machine_;
  std::vector<forecast> forecasts_;
  std::vector<std::size_t> trials_; // positions in forecasts_, best prediction first; none while nothing is tried
  std::size_t trial_ = 0;
  std::int64_t calls_ = 0; // of this trial, or since the last look at the clocks
  double window_ = 0;      // the least time of these
  std::string chosen_;
  std::int64_t switches_ = 0;
  std::map<std::string, any_state> states_; // of each scheme that was used
  std::unique_ptr<any_allreduce<E, Comm, Value, Index>> current_;
  std::unique_ptr<any_allreduce<E, Comm, Value, Index>> retired_; // has the update of the last call, if it is set
  collective_workspace workspace_;
  call_statistics no_call_;
  mutable state_type state_;
};

} // namespace oktopk
