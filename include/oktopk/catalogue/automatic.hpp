// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/options.hpp>
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/catalogue/machine_model.hpp>
#include <oktopk/catalogue/scheme_choice.hpp>
#include <oktopk/comm/agreement.hpp>
#include <oktopk/comm/collectives.hpp>
#include <oktopk/core/cost.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/core/options.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace oktopk {

namespace catalogue {

/// Forecasts over P ranks of all schemes that have `expected_cost`, in the order of the catalogue.
/// `in_free_order`: messages of the communicator are not ordered by the instance.
template <execution_space E, gradient_value Value, gradient_index Index, class = detail::compiled_for>
std::vector<forecast> forecast_all(gradient_size const& size, int ranks, bool in_free_order = true);

} // namespace catalogue

namespace detail {

/// The sums that `automatic` may give.
enum class allowed_sums : std::uint8_t {
  unrounded, ///< of any scheme that rounds nothing, dense ones included
  exact,     ///< to the bit those of `ok_topk` with its default policies
  rounded,   ///< of any scheme; the parts that a lossy format rounds off return to the residual
};

/// A density that follows the network: the largest one within limits whose call takes no more than a given time.
struct density_fit {
  double milliseconds = 0; ///< time of a call
  double least = 1e-4;
  double most = 0.1;
};

/// The state of `automatic`: the name and the state of the scheme in use.
struct automatic_state : call_state {
  std::int64_t k = 0;             ///< k of the last call if the density is fitted; else 0
  std::int8_t of_other_ranks = 0; ///< set by `for_other_ranks`
  std::vector<char> text;         ///< of the chosen scheme; none before the first call and during trials
  any_state inside;

  bool operator==(automatic_state const&) const = default;
  static std::string type_name() { return "automatic"; }
  void forget_ranks() { of_other_ranks = 1; } // its scheme knows the state inside

  template <class State, class Visit>
  static void each_part(State& state, Visit& visit) {
    visit(state.iteration);
    visit(state.k);
    visit(state.of_other_ranks);
    visit(state.text);
    any_state::each_part(state.inside, visit);
  }
};

inline bool is_allowed(catalogue::forecast const& each, allowed_sums sums) {
  return sums == allowed_sums::rounded || (sums == allowed_sums::exact ? each.exact : !each.rounded);
}

} // namespace detail

/// The allreduce that takes the least time here: it predicts every allowed scheme of the catalogue, tries up to sixteen
/// whose prediction is near the best one, keeps the fastest, and tries again when its clock shows that the network has
/// changed; where calls are short, it tries few at first, and others from time to time.
///
/// Its schemes are those of `make_allreduce`, so a program that names this type links `oktopk::catalogue`, or has
/// `catalogue/impl.hpp` in one of its files.
///
/// All ranks decide together, from numbers that they have agreed on. They send one short control message every
/// `recheck` calls, or more often if that takes less than 1 % of the time, and one before each call on trial, so that
/// all begin it together. Every call is a whole allreduce of one scheme, so a trial or a switch loses no gradient. The
/// caller's data (residual, momentum) are kept, and so are thresholds between variants of one scheme. A switch needs a
/// scheme that is 10 % faster. `explain()` says which scheme was chosen and why, `table()` lists the alternatives.
///
/// `update.contributed()` lists the entries that have left the residual, as always: all entries after a call of a dense
/// scheme.
template <execution_space E, communicator Comm, gradient_value Value = float, gradient_index Index = std::int32_t>
class automatic {
public:
  using execution_space = E;
  using communicator_type = Comm;
  using index_type = Index;
  using value_type = Value;
  using memory_space = typename E::memory_space;
  using state_type = detail::automatic_state;
  using update_type = sparse_update<Index, Value, memory_space>;
  using allowed_sums = detail::allowed_sums;
  using density_fit = detail::density_fit;
  using forecast = catalogue::forecast;

  struct options {
    detail::element_count length = 0;            ///< of the accumulators
    std::optional<detail::element_count> k{};    ///< entries to select, in [0, length]; this or density
    std::optional<double> density{};             ///< k / length, in (0, 1]
    std::optional<density_fit> fit{};            ///< in place of both
    allowed_sums sums = allowed_sums::unrounded; ///< schemes to choose from
    bool dense_update = false;                   ///< only schemes whose update has every value
    std::int64_t recheck = 64;                   ///< calls from one look at the clocks to the next
    double latency_us = 0;                       ///< of the network; 0: it is measured
    double rate_mbit = 0;                        ///< of the network, per rank; 0: it is measured
    std::optional<machine_model> machine{};      ///< in place of any measurement
    std::string machine_file{};                  ///< file that `machine` is read from, of the same content on all ranks

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      constexpr option_names<allowed_sums, 3> names{
          {{"unrounded", allowed_sums::unrounded}, {"exact", allowed_sums::exact}, {"rounded", allowed_sums::rounded}}};
      visit("sums", how.sums, names, "schemes to choose from, exact gives the bits of ok_topk");
      visit("dense_update", how.dense_update, "only schemes whose update has every value");
      visit("recheck", how.recheck, "calls from one look at the clocks to the next", at_least(1));
      visit("latency_us", how.latency_us, "microseconds of a message, 0 for measured", at_least(0));
      visit("rate_mbit", how.rate_mbit, "Mbit/s of a rank, 0 for measured", at_least(0));
      visit("machine", how.machine_file, "file of a machine_model, in place of any measurement");
    }
  };

  /// Collective. Measures network and processor, in less than a second, unless `how` describes them or an earlier
  /// object of this thread has measured them for as many ranks. Throws an `error` on every rank, as `ok_topk` does for
  /// its options.
  automatic(E exec, Comm comm, options const& how) : exec_(std::move(exec)), comm_(std::move(comm)), how_(how) {
    agreement terms("automatic");
    detail::check_length<Index>(how_.length, terms);
    check_fit(terms);
    k_ = detail::resolve_k(how_.length, how_.k, how_.fit ? how_.fit->most : how_.density, terms);
    terms.fact("length", how_.length).fact("k", k_).fact("options", detail::describe_options("automatic", how_));
    if (!detail::is_finite(how_.latency_us) || !detail::is_finite(how_.rate_mbit)) {
      terms.note(fault::option_out_of_range, "latency_us and rate_mbit of automatic must be finite");
    }
    if (std::string const problem = detail::fault_of_options("automatic", how_); !problem.empty()) {
      terms.note(fault::option_out_of_range, problem);
    }
    read_machine(terms);
    terms.fact("machine", how_.machine ? "given" : "measured");
    if (how_.machine) {
      machine_model::each_number(*how_.machine, [&](std::string const& number, double seconds) {
        terms.fact(number, seconds);
        if (!detail::is_finite_magnitude(seconds)) {
          terms.note(fault::option_out_of_range, "the machine's " + number + " is no number of seconds");
        }
      });
    }
    terms.check_on(comm_);
    detail::add_untagged_object(comm_); // for all schemes, of which a call is of one
    learn_machine();
    fit_k(1);
    predict({});
  }

  /// Of whichever scheme it chooses.
  static allreduce_promises promises(options const& how) {
    return {.local = selection_promises{.rule = std::string(name()), .largest = true},
            .rounding = how.sums == allowed_sums::rounded ? "any" : "",
            .repeats = false};
  }

  std::int64_t length() const { return how_.length; }
  std::int64_t k() const { return k_; }
  static std::string_view name() { return "automatic"; }
  E const& execution() const { return exec_; }
  Comm& comm() { return comm_; }
  call_statistics const& last_call() const { return last() ? last()->last_call() : no_call_; }
  machine_model const& machine() const { return machine_; }
  /// The number of decisions for another scheme than the one before; trials do not count.
  std::int64_t switches() const { return choice_.switches(); }
  /// All schemes that may be chosen, in the order of the catalogue.
  std::vector<forecast> const& forecasts() const { return choice_.forecasts(); }

  /// The bound of the scheme of the last call, the meeting before a call on trial and the agreement on the clocks. The
  /// few control messages that make a scheme for its first call are not included.
  double bound_words() const {
    double const agreeing = detail::allreduce_words_at_most(comm_.size(), std::ssize(forecasts()) + 3);
    double const meeting = detail::allreduce_words_at_most(comm_.size(), 1);
    return (last() ? last()->bound_words() : 0) + agreeing + meeting;
  }

  /// Sets the number of entries from the next call on; see `selecting_base::set_k`. Predicts again. Collective.
  void set_k(detail::element_count k) {
    agreement terms("set_k");
    std::int64_t const resolved = detail::resolve_k(how_.length, k, std::nullopt, terms);
    terms.fact("k", resolved).check_on(comm_);
    k_ = resolved;
    remember();
    retire();
    predict(choice_.chosen());
  }

  state_type const& state() const {
    state_.k = how_.fit ? k_ : 0;
    state_.text.clear();
    state_.inside = {};
    if (std::string const& chosen = choice_.chosen();
        !chosen.empty() && (!choice_.on_trial() || choice_.in_rematch())) {
      state_.text.assign(chosen.begin(), chosen.end());
      auto const found = states_.find(detail::scheme_of(chosen));
      bool const is_it = current_ && detail::scheme_of(current_->text()) == detail::scheme_of(chosen); // else on trial
      state_.inside = is_it ? current_->state() : found != states_.end() ? found->second : detail::any_state();
    }
    return state_;
  }

  /// Continues with the scheme of a saved state; the next look at the clocks is when it is due. A scheme that these
  /// options, or this version, do not have is as none: trials begin. Collective.
  void restore(state_type const& saved) {
    std::string const text(saved.text.begin(), saved.text.end());
    agreement terms("automatic::restore");
    detail::check_state(saved, comm_.size(), how_.length, terms);
    terms.fact("k", saved.k).fact("scheme", text);
    terms.check_on(comm_);
    state_ = saved;
    state_.of_other_ranks = 0;
    retire();
    states_.clear();
    choice_.forget();
    k_ = how_.fit && saved.k > 0 ? std::clamp(saved.k, k_of(how_.fit->least), k_of(how_.fit->most)) : k_;
    predict(text);
    choice_.choose(text, choice_.find(text).predicted);
    if (choice_.on_trial()) {
      return; // the state has no scheme, or one that these options do not allow
    }
    use(text);
    detail::any_state inside = saved.inside;
    if (saved.of_other_ranks != 0) {
      try {
        inside = current_->for_other_ranks(inside);
      } catch (error const&) { // perhaps on this rank alone: `restore` tells all ranks
      }
    }
    current_->restore(inside);
  }

  /// As in `gradient_allreduce`.
  void fail(detail::fault_report const& why) {
    prepare();
    current_->fail(why);
  }

  /// One iteration. Collective. The accumulator is only read.
  template <accumulator_input<Index, Value, E> Input>
  update_type const& operator()(Input const& accumulator) {
    prepare();
    auto const start = detail::seconds_clock::now();
    update_type const& update = (*current_)(accumulator);
    double const seconds = detail::seconds_since(start);
    if (choice_.on_trial()) {
      untold_ = seconds;
    } else if (choice_.note(seconds)) {
      look_at_clocks();
    }
    state_.iteration += 1; // not where the ranks could not agree: such a call has failed
    return update;
  }

  /// One line: the scheme, its predicted and measured time, that of the best dense scheme, and the sizes and the
  /// network.
  std::string explain() const {
    detail::plain_text out;
    out.precision(3);
    forecast const& chosen = choice_.find(last() ? last()->text() : choice_.next());
    forecast const* dense = nullptr;
    for (forecast const& each : forecasts()) {
      bool const faster = each.dense && (dense == nullptr || each.predicted < dense->predicted);
      dense = faster ? &each : dense;
    }
    out << chosen.text << ": " << 1e3 * chosen.predicted << " ms predicted";
    if (chosen.measured > 0) {
      out << ", " << 1e3 * chosen.measured << " measured";
    }
    if (dense != nullptr && dense != &chosen) {
      out << "; " << dense->text << " " << 1e3 * (dense->measured > 0 ? dense->measured : dense->predicted);
    }
    out << "; k = " << 100.0 * static_cast<double>(k_) / static_cast<double>(std::max<std::int64_t>(how_.length, 1))
        << " % of " << how_.length << " over " << comm_.size() << " ranks";
    if (machine_.seconds_per_byte > 0) {
      out << " at " << 8e-6 / machine_.seconds_per_byte << " Mbit/s, " << 1e6 * machine_.latency << " us";
    }
    return out.str();
  }

  /// All schemes that may be chosen, a line each, the fastest prediction first: milliseconds predicted and measured,
  /// messages and bytes of a rank.
  std::string table() const { return detail::table_of(forecasts()); }

private:
  using scheme = any_allreduce<E, any_communicator, Value, Index>;

  static constexpr double noisy_messages = 10; // noise of a call: the latency of so many messages, and a meeting
  static constexpr double fit_slack = 1.1;     // a call may differ from its fitted time by this factor

  // Makes the scheme of the next call the current one. Collective.
  void prepare() {
    retired_.reset(); // the last update lives until here
    try {
      if (choice_.on_trial()) {
        meet();
      }
      use(choice_.next());
    } catch (error const& why) {
      if (detail::breaks_communicator(why.code())) {
        detail::leave(comm_, why);
      }
      throw;
    } catch (...) { // memory may be missing on this rank alone
      detail::leave(comm_, detail::order_is_lost(comm_.rank()));
      throw;
    }
  }

  void check_fit(agreement& terms) const {
    if (!how_.fit) {
      return;
    }
    density_fit const& fit = *how_.fit;
    if (how_.k || how_.density) {
      terms.note(fault::k_out_of_range, "give either density=fit(...) or k or a density");
    }
    if (!detail::is_finite_magnitude(fit.milliseconds) || fit.milliseconds == 0) {
      terms.note(fault::option_out_of_range, "the time of density=fit(...) is not positive");
    }
    if (!detail::is_finite_magnitude(fit.least) || fit.least == 0 || !(fit.least <= fit.most && fit.most <= 1)) {
      terms.note(fault::density_out_of_range, "least and most of density=fit(...) are not 0 < least <= most <= 1");
    }
    terms.fact("fit", fit.milliseconds).fact("least", fit.least).fact("most", fit.most);
  }

  void read_machine(agreement& terms) {
    if (how_.machine_file.empty() || how_.machine) {
      return;
    }
    std::ifstream in(how_.machine_file);
    try {
      how_.machine = in ? machine_model::load(in) : throw error(fault::bad_state, "cannot be read");
    } catch (error const& found) {
      terms.note(found.code(), "machine=" + how_.machine_file + ": " + found.sentence());
    }
  }

  // Sets the model of this machine; objects of one thread share a measurement, such as those of several buckets.
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
      known = machine_model::measure<Value, Index>(exec_, comm_, how_.length, k_);
      known_ranks = comm_.size();
    }
    machine_ = known;
    // Objects of other threads may have measured something else.
    agree_on_machine();
    machine_.latency = how_.latency_us > 0 ? how_.latency_us * 1e-6 : machine_.latency;
    if (how_.rate_mbit > 0) {
      machine_.seconds_per_byte = 8e-6 / how_.rate_mbit;
      machine_.head_start = 0;
    }
  }

  void agree_on_machine() {
    std::vector<double> numbers;
    machine_model::each_number(machine_, [&](std::string const&, double& seconds) { numbers.push_back(seconds); });
    agree_on(numbers, reduction::max);
    auto next = numbers.begin();
    machine_model::each_number(machine_, [&](std::string const&, double& seconds) { seconds = *next++; });
  }

  // Makes seconds the same on all ranks.
  void agree_on(std::span<double> seconds, reduction op) {
    std::vector<std::int64_t> whole;
    for (double const each : seconds) {
      whole.push_back(static_cast<std::int64_t>(std::min(each, 1e3) * 1e15));
    }
    allreduce_integers(comm_, std::span(whole), op, phase::control, workspace_);
    std::transform(whole.begin(), whole.end(), seconds.begin(), [](std::int64_t each) { return 1e-15 * double(each); });
  }

  std::vector<forecast> forecasts_of(std::int64_t k) const {
    auto all = catalogue::forecast_all<E, Value, Index>({.length = how_.length, .k = k}, comm_.size(),
                                                        !comm_.ordered_by_instance());
    std::erase_if(all, [&](forecast const& each) {
      return !detail::is_allowed(each, how_.sums) || (how_.dense_update && !each.dense);
    });
    for (forecast& each : all) {
      each.predicted = machine_.seconds(each.cost, each.format);
    }
    return all;
  }

  std::int64_t k_of(double density) const {
    auto const length = static_cast<double>(how_.length);
    return std::min<std::int64_t>(how_.length, std::max<std::int64_t>(1, std::llround(density * length)));
  }

  // Sets k to the largest one whose fastest scheme is predicted to take no more than the requested time, if calls take
  // `factor` times their prediction.
  void fit_k(double factor) {
    if (!how_.fit) {
      return;
    }
    double low = std::log(how_.fit->least);
    double high = std::log(how_.fit->most);
    auto const fits = [&](double log_density) {
      auto const all = forecasts_of(k_of(std::exp(log_density)));
      return std::any_of(all.begin(), all.end(), [&](forecast const& each) {
        return factor * each.predicted <= 1e-3 * how_.fit->milliseconds;
      });
    };
    low = fits(high) ? high : low;
    for (int step = 0; step < 12 && low < high; ++step) {
      double const middle = (low + high) / 2;
      (fits(middle) ? low : high) = middle;
    }
    k_ = std::clamp(k_of(std::exp(low)), k_of(how_.fit->least), k_of(how_.fit->most));
    allreduce_integers(comm_, std::span(&k_, 1), reduction::min, phase::control, workspace_);
  }

  // Predicts every scheme and begins trials; the one in use is among them. Collective.
  void predict(std::string const& in_use, bool changed = false) {
    untold_.reset();
    auto all = forecasts_of(k_);
    if (all.empty()) {
      throw error(fault::option_out_of_range, "automatic has no scheme to choose from");
    }
    std::vector<double> predicted;
    for (forecast const& each : all) {
      predicted.push_back(each.predicted);
    }
    agree_on(predicted, reduction::max);
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].predicted = predicted[i];
    }
    keep_best_stages(all, in_use);
    choice_.begin(std::move(all),
                  {.noise = machine_.meeting + noisy_messages * machine_.latency,
                   .agreeing = 2 * detail::doubling_steps(comm_.size()) * machine_.latency,
                   .recheck = how_.recheck},
                  changed);
  }

  // Of the variants that differ in their radix alone the best one and the one in use, so that they do not take the places
  // of others.
  static void keep_best_stages(std::vector<forecast>& all, std::string const& in_use) {
    std::map<std::string, double> best; // of each format
    auto const is_staged = [](forecast const& each) { return each.text.find("reduce=radix") != each.text.npos; };
    for (forecast const& each : all) {
      if (is_staged(each)) {
        double& least = best.try_emplace(each.format, each.predicted).first->second;
        least = std::min(least, each.predicted);
      }
    }
    std::erase_if(all, [&](forecast const& each) {
      return is_staged(each) && each.predicted > best[each.format] && each.text != in_use;
    });
  }

  // Before a call on trial: the ranks agree on the time of the previous one, and so begin this one together.
  void meet() {
    std::optional<double> const before = std::exchange(untold_, std::nullopt);
    double slowest = before.value_or(0);
    comm_.begin_operation(name(), state_.iteration);
    agree_on(std::span(&slowest, 1), reduction::max);
    if (!before) {
      return;
    }
    choice_.note_trial(slowest);
    if (choice_.is_surprised()) {
      forecast const taken = choice_.find(choice_.chosen());
      learn_rate(taken, choice_.usual(), taken.predicted);
      predict(choice_.chosen());
    }
  }

  // The scheme of the last call.
  auto const* last() const { return current_ ? current_.get() : retired_.get(); }

  // Keeps the scheme until the next call, since the caller may still read the last update.
  void retire() {
    if (current_) {
      retired_ = std::move(current_);
    }
  }

  // Stores the state of the scheme without its regions: its next call may be for a much later gradient.
  void remember() {
    if (current_) {
      states_[detail::scheme_of(current_->text())] = current_->for_other_ranks(current_->state());
    }
  }

  // Makes a scheme the current one. Collective, with the same text on all ranks. Thresholds of the same scheme with
  // another format are kept if they fit; its regions are made again.
  void use(std::string const& text) {
    if (current_ && current_->text() == text) {
      return;
    }
    remember();
    current_.reset(); // before the next one takes its memory
    detail::uncounted_objects const one_of_many(comm_);
    current_ =
        std::make_unique<scheme>(make_allreduce<Value, Index>(exec_, comm_, text, {.length = how_.length, .k = k_}));
    if (auto const found = states_.find(detail::scheme_of(text)); found != states_.end()) {
      try {
        current_->restore(found->second);
      } catch (error const& why) {
        if (why.code() != fault::bad_state) {
          throw;
        }
      }
    }
  }

  // The processor is the same, so the network has changed. Its rate follows from the bytes and the time of this scheme.
  void learn_rate(forecast const& place, double now, double then) {
    double const beside = machine_.seconds(place.cost, place.format) - machine_.transfer(place.cost);
    bool const tells = place.cost.bytes > 0 && now > beside;
    double const sending = now - beside + machine_.head_start;
    machine_.seconds_per_byte =
        tells ? sending / place.cost.bytes : machine_.seconds_per_byte * now / std::max(then, 1e-12);
    agree_on(std::span(&machine_.seconds_per_byte, 1), reduction::max);
  }

  void look_at_clocks() {
    double now = choice_.least();
    agree_on(std::span(&now, 1), reduction::min); // the slowest rank has not waited for others
    now = std::max(now, 1e-12);
    bool const changed = choice_.look(now);
    if (choice_.is_suspected() && !changed) {
      return; // a density fitted to this time would hide the change from the next look
    }
    forecast const place = choice_.find(choice_.chosen());
    if (changed) {
      learn_rate(place, now, choice_.usual());
    }
    double const factor = now / std::max(machine_.seconds(place.cost, place.format), 1e-12);
    std::int64_t const k_before = k_;
    if (double const asked = how_.fit ? 1e-3 * how_.fit->milliseconds : now;
        now > fit_slack * asked || now * fit_slack < asked) {
      fit_k(factor);
    }
    if (k_ != k_before) {
      remember();
      retire();
    }
    if (bool const is_other = changed || k_ > 2 * k_before || 2 * k_ < k_before; is_other || k_ != k_before) {
      predict(place.text, changed);
      if (!is_other) {
        choice_.choose(place.text, factor * choice_.find(place.text).predicted);
      }
    }
  }

  E exec_;
  Comm comm_;
  options how_;
  std::int64_t k_ = 0;
  machine_model machine_;
  detail::scheme_choice choice_;
  std::optional<double> untold_{};                  // seconds of the last call, if it was on trial
  std::map<std::string, detail::any_state> states_; // of each scheme that was used
  std::unique_ptr<scheme> current_;
  std::unique_ptr<scheme> retired_; // has the update of the last call, if it is set
  collective_workspace workspace_;
  call_statistics no_call_;
  mutable state_type state_;
};

} // namespace oktopk
