// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// `automatic` beside the fixed schemes that could be best, by turns, at several points of length and density: what
// `run.py grid` starts on the ranks of each network.

#include "oktopk_bench/input.hpp"
#include "programs/mpi.hpp"
#include "programs/options.hpp"
#include "programs/pending_file.hpp"

#include <oktopk/catalogue/automatic.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/time_limit.hpp>
#include <oktopk/mpi.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace automatic_bench {

using space = Kokkos::DefaultExecutionSpace;
using communicator = oktopk::counted<oktopk::mpi_communicator>;
using vector = Kokkos::View<float*, space::memory_space>;
using automatic = oktopk::automatic<space, communicator>;
using fixed = oktopk::any_allreduce<space>;
using clock = std::chrono::steady_clock;

namespace {

struct options {
  std::vector<std::pair<std::int64_t, double>> points; // length and density
  double seconds = 15;
  double last_start = std::numeric_limits<double>::infinity();
  double within = 3;
  std::uint64_t seed = 1;
  double deadline = oktopk_programs::usual_deadline;
  std::string csv;
};

double since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

/// One scheme at a point, and what its calls took.
struct subject {
  std::string text;
  std::string chosen{}; // last by `automatic`; else the text
  std::unique_ptr<automatic> chooses{};
  std::unique_ptr<fixed> is{};
  std::vector<double> seconds{};
  double words = 0; // of all calls
  int trial_calls = 0;
  double trial_seconds = 0;
  std::int64_t trial_switches = 0;
  int wanted = 0;   // calls in the rounds
  double usual = 0; // seconds of a call
  double whole = 0; // with the meeting of the ranks before it
};

/// One call: seconds of the slowest rank, without and with the meeting before it, and the most words that one sends.
struct taken {
  double seconds = 0;
  double whole = 0;
  double words = 0;
};

constexpr int most_calls = 200;
constexpr int few_calls = 3;
constexpr std::size_t most_unrounded = 12;
constexpr std::size_t most_rounded = 8;
constexpr double most_bytes = 8e9; // of all schemes that live at a time, on all ranks of this machine
constexpr int inputs = 2;          // accumulators, which follow each other as those of training do

/// What is always measured: MPI's own allreduce, the rings that are fastest for long vectors, and Ok-Topk.
constexpr std::array<char const*, 5> always{"dense", "ring_chunked", "ring_pipelined", "ok_topk",
                                            "ok_topk(format=packed)"};
/// All allreduces of the library that send every value as it is, where a call takes so little time that all fit.
constexpr std::array<char const*, 4> short_ones{"dense_rabenseifner", "ring", "halving_doubling", "recursive_doubling"};

class bench {
public:
  bench(oktopk::mpi_communicator plain, options const& asked) : plain_(plain), comm_(plain), asked_(asked) {}

  void run() {
    auto const start = clock::now();
    for (auto const& [length, density] : asked_.points) {
      if (agreed(since(start)) <= asked_.last_start) {
        run_point(length, density);
      }
    }
    if (comm_.rank() == 0) {
      oktopk_programs::write_whole(asked_.csv, rows_);
    }
  }

private:
  /// The most of all ranks.
  double agreed(double number) {
    plain_.allreduce(std::span<double>(&number, 1), oktopk::reduction::max, oktopk::phase::control);
    return number;
  }

  void read_inputs(std::int64_t length) {
    if (!accumulators_.empty() && static_cast<std::int64_t>(accumulators_.front().extent(0)) == length) {
      return;
    }
    accumulators_.clear();
    oktopk_bench::synthetic_input source(length, asked_.seed, comm_.rank());
    std::vector<float> values(static_cast<std::size_t>(length));
    for (int step = 0; step < inputs; ++step) {
      source.read(step, values);
      accumulators_.emplace_back("automatic_bench::accumulator", static_cast<std::size_t>(length));
      Kokkos::deep_copy(accumulators_.back(),
                        Kokkos::View<float const*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
                            values.data(), values.size()));
    }
  }

  taken call(subject& each, int step) {
    auto const start = clock::now();
    agreed(0);
    comm_.reset();
    std::array<double, 3> most{};
    {
      // MPI's own allreduce in a time limit would be another one, and it is what all is compared with.
      oktopk::time_limit_scope const limit(comm_,
                                           each.text == "dense" ? std::chrono::nanoseconds(0) : comm_.time_limit());
      vector const& accumulator = accumulators_[static_cast<std::size_t>(step % inputs)];
      auto const begin = clock::now();
      if (each.chooses) {
        (*each.chooses)(accumulator);
      } else {
        (*each.is)(accumulator);
      }
      exec_.fence();
      most[0] = since(begin);
    }
    most[1] = since(start);
    most[2] = comm_.total().words_sent();
    plain_.allreduce(std::span<double>(most), oktopk::reduction::max, oktopk::phase::control);
    return {most[0], most[1], most[2]};
  }

  static void note(subject& each, taken const& one) {
    each.seconds.push_back(one.seconds);
    each.words += one.words;
  }

  void run_point(std::int64_t length, double density) {
    read_inputs(length);
    subjects_.clear();
    oktopk::gradient_size const size{.length = length, .density = density};
    std::int64_t const k = oktopk::make_allreduce(exec_, comm_, "ok_topk", size).k();
    agreed(0);
    auto start = clock::now();
    auto const machine = oktopk::machine_model::measure<float, std::int32_t>(exec_, comm_, length, k);
    measuring_ = agreed(since(start));
    start = clock::now();
    for (auto const& [text, sums] : {std::pair("automatic", oktopk::detail::allowed_sums::unrounded),
                                     std::pair("automatic(sums=rounded)", oktopk::detail::allowed_sums::rounded)}) {
      subjects_.push_back({.text = text});
      oktopk::detail::uncounted_objects const as_if_alone(comm_);
      subjects_.back().chooses = std::make_unique<automatic>(
          exec_, comm_, automatic::options{.length = length, .density = density, .sums = sums, .machine = machine});
    }
    making_ = agreed(since(start)) / 2;
    forecasts_ = subjects_.back().chooses->forecasts(); // of all schemes, with the times of trials when these are over
    for (subject& each : subjects_) {
      try_out(each);
      for (oktopk::catalogue::forecast& one : forecasts_) {
        auto const& tried = each.chooses->forecasts();
        auto const same = std::ranges::find(tried, one.text, &oktopk::catalogue::forecast::text);
        one.measured = one.measured == 0 && same != tried.end() ? same->measured : one.measured;
      }
    }
    measure_groups(size);
    for (subject& each : subjects_) {
      if (std::string const last = chosen_by(*each.chooses); !last.empty()) { // not on trial
        each.chosen = last;
      }
      add_row(each, length, density);
    }
    subjects_.clear();
  }

  /// All candidates, as many at a time as memory allows, each group by turns with both kinds of `automatic`.
  void measure_groups(oktopk::gradient_size const& size) {
    auto const texts = candidates();
    double const bytes_of_one = 10.0 * static_cast<double>(size.length) * comm_.size();
    std::size_t const choosing = subjects_.size();
    auto const fitting = static_cast<std::size_t>(std::min(most_bytes / bytes_of_one, 1e3));
    std::size_t const alive = std::max<std::size_t>(fitting, choosing + 3) - choosing;
    std::size_t const groups = (texts.size() + alive - 1) / alive;
    fastest_ = std::numeric_limits<double>::infinity();
    for (std::size_t begin = 0; begin < texts.size(); begin += alive) {
      for (std::size_t i = begin; i < std::min(begin + alive, texts.size()); ++i) {
        subjects_.push_back({.text = texts[i], .chosen = texts[i]});
        oktopk::detail::uncounted_objects const as_if_alone(comm_);
        subjects_.back().is = std::make_unique<fixed>(oktopk::make_allreduce(exec_, comm_, texts[i], size));
      }
      measure_by_turns(asked_.seconds / static_cast<double>(choosing + texts.size()), static_cast<int>(groups));
      for (std::size_t i = choosing; i < subjects_.size(); ++i) {
        add_row(subjects_[i], size.length, *size.density);
      }
      subjects_.resize(choosing);
    }
  }

  /// The trials of `automatic`, until it has chosen.
  void try_out(subject& each) {
    constexpr int most_trials = 2000; // short calls are tried often
    do {
      each.trial_seconds += call(each, each.trial_calls).seconds;
      each.trial_calls += 1;
    } while (each.chooses->state().text.empty() && each.trial_calls < most_trials &&
             each.trial_seconds < 10 * asked_.seconds);
    each.chosen = chosen_by(*each.chooses);
    each.trial_switches = each.chooses->switches();
  }

  static std::string chosen_by(automatic const& one) {
    auto const& text = one.state().text;
    return {text.begin(), text.end()};
  }

  /// Fixed schemes that could be the best: those `always` there, those that `automatic` has chosen, and those whose
  /// prediction is within a factor of the best, the best first.
  std::vector<std::string> candidates() const {
    std::vector<std::string> texts(always.begin(), always.end());
    auto const add = [&](std::string const& text) {
      bool const is_new = !text.empty() && std::find(texts.begin(), texts.end(), text) == texts.end();
      if (is_new) {
        texts.push_back(text);
      }
      return is_new;
    };
    for (subject const& each : subjects_) {
      add(each.chosen);
    }
    auto order = forecasts_;
    std::stable_sort(order.begin(), order.end(),
                     [](auto const& a, auto const& b) { return a.predicted < b.predicted; });
    auto const dense = std::find_if(order.begin(), order.end(), [](auto const& each) { return each.text == "dense"; });
    if (dense == order.end() || dense->predicted < asked_.seconds / 40) {
      for (char const* const text : short_ones) {
        add(text);
      }
    }
    for (bool const rounded : {false, true}) {
      std::size_t left = rounded ? most_rounded : most_unrounded;
      double room = asked_.seconds / (rounded ? 4 : 2); // for about five calls of each
      double least = 0;                                 // of what may be chosen
      for (oktopk::catalogue::forecast const& each : order) {
        bool const counts = rounded || !each.rounded;
        least = counts && least == 0 ? each.predicted : least;
        bool const is_near = each.rounded == rounded && each.predicted <= asked_.within * least;
        bool const fits = room > 0 || left > (rounded ? most_rounded : most_unrounded) - few_calls;
        if (is_near && left > 0 && fits && add(each.text)) {
          left -= 1;
          room -= 5 * each.predicted;
        }
      }
    }
    return texts;
  }

  /// Every scheme is warmed up alike, then all are called by turns, in an order that is drawn for each round: behind the
  /// same scheme every time, one would always find the network as that scheme leaves it. Calls are as many as fit into
  /// equal shares of the time, so slow schemes have few, and those that are far behind the fastest only what was measured
  /// at first. Decided by times that all ranks have agreed on.
  void measure_by_turns(double share, int groups) {
    for (subject& each : subjects_) {
      if (each.usual == 0) {
        warm_up(each);
      }
      fastest_ = std::min(fastest_, each.usual);
    }
    int rounds = 0;
    for (subject& each : subjects_) {
      each.wanted = calls_of(each, share);
      each.wanted = each.chooses ? (each.wanted + groups - 1) / groups : each.wanted;
      rounds = std::max(rounds, each.wanted);
    }
    std::vector<std::size_t> order(subjects_.size());
    std::iota(order.begin(), order.end(), std::size_t(0));
    std::mt19937_64 draw(asked_.seed); // the same on all ranks
    for (int round = 0; round < rounds; ++round) {
      std::shuffle(order.begin(), order.end(), draw);
      for (std::size_t const which : order) {
        subject& each = subjects_[which];
        if ((round + 1) * each.wanted / rounds > round * each.wanted / rounds) {
          note(each, call(each, round));
        }
      }
    }
  }

  /// Calls before the rounds. The last one counts, so that every scheme has one.
  void warm_up(subject& each) {
    taken last = call(each, 0);
    each.usual = last.seconds;
    if (last.seconds < asked_.seconds / 4) { // else what a first call takes beside is nothing
      last = call(each, 1);
      each.usual = last.seconds;
    }
    if (last.seconds < asked_.seconds / 40) {
      last = call(each, 0);
      each.usual = std::min(each.usual, last.seconds);
    }
    each.whole = last.whole;
    note(each, last);
  }

  /// Calls of a scheme in the rounds.
  int calls_of(subject const& each, double share) const {
    auto const fitting = static_cast<int>(std::min(share / each.whole, double(most_calls)));
    if (each.usual > asked_.seconds / 8) {
      return fitting;
    }
    if (each.usual <= share || each.usual < 1.5 * fastest_) {
      return std::max(fitting, few_calls);
    }
    bool const is_needed = each.chooses || std::find(always.begin(), always.end(), each.text) != always.end();
    return std::max(fitting, is_needed || each.usual < asked_.within * fastest_ ? 1 : 0);
  }

  void add_row(subject const& each, std::int64_t length, double density) {
    auto const forecast = std::find_if(forecasts_.begin(), forecasts_.end(),
                                       [&](oktopk::catalogue::forecast const& one) { return one.text == each.chosen; });
    bool const is_known = forecast != forecasts_.end();
    auto sorted = each.seconds;
    std::sort(sorted.begin(), sorted.end());
    std::size_t const half = sorted.size() / 2;
    double const median = sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
    auto const calls = static_cast<double>(sorted.size());
    double const mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / calls;
    bool const chooses = each.chooses != nullptr;
    rows_ += fmt::format("\"{}\",{},{},{:g},\"{}\",{:d},{:.4g},", each.text, comm_.size(), length, density, each.chosen,
                         is_known && forecast->rounded, is_known ? forecast->predicted : 0.0);
    rows_ +=
        fmt::format("{:.4g},{:.4g},{:.4g},{},{:.0f},", median, mean, sorted.front(), sorted.size(), each.words / calls);
    rows_ +=
        fmt::format("{:.4g},{:.4g},{},{:.4g},{},{:.4g}\n", chooses ? measuring_ : 0.0, chooses ? making_ : 0.0,
                    each.trial_calls, each.trial_seconds, chooses ? each.chooses->switches() - each.trial_switches : 0,
                    is_known ? forecast->measured : 0.0);
  }

  oktopk::mpi_communicator plain_;
  communicator comm_;
  options const& asked_;
  space exec_;
  std::vector<vector> accumulators_;
  std::vector<subject> subjects_;
  std::vector<oktopk::catalogue::forecast> forecasts_;
  double measuring_ = 0;
  double making_ = 0;
  double fastest_ = 0; // of all that were warmed up at this point
  std::string rows_ = "scheme,ranks,length,density,chosen,rounded,predicted,seconds,mean_seconds,least_seconds,calls,"
                      "words,measuring_seconds,making_seconds,trial_calls,trial_seconds,switches,tried\n";
};

/// Reads "N:D" as a length and a density.
std::pair<std::int64_t, double> point_of(std::string const& text) {
  std::size_t const colon = text.find(':');
  auto const length = oktopk_programs::whole_number_in(text.substr(0, colon)).value_or(0);
  std::string const density = colon == std::string::npos ? std::string() : text.substr(colon + 1);
  if (length < 1 || length > std::numeric_limits<std::int32_t>::max() ||
      !oktopk_programs::fault_of_density(density).empty()) {
    throw CLI::ValidationError("--points", text + " is not LENGTH:DENSITY");
  }
  return {static_cast<std::int64_t>(length), *oktopk_programs::number_in<double>(density)};
}

/// Reads the arguments; ends the program where they are not right.
std::optional<int> read(std::vector<std::string> arguments, options& asked) {
  CLI::App app("automatic beside fixed schemes, by turns; for run.py grid");
  std::vector<std::string> points;
  std::string ignored;
  app.add_option("--points", points, "Lengths and densities: 1000:0.01,10000:0.05")->delimiter(',')->required();
  app.add_option("--seconds", asked.seconds, "Seconds to measure at a point")->check(oktopk_programs::positive());
  app.add_option("--last-start", asked.last_start, "Begin no point after so many seconds")
      ->check(oktopk_programs::real([](double number) { return number >= 0; }, "no number of 0 or more"));
  app.add_option("--within", asked.within,
                 "Measure what is predicted to take at most so many times as long as the best")
      ->check(
          oktopk_programs::real([](double number) { return number >= 1 && number <= 1e6; }, "no number of 1 to 1e6"));
  app.add_option("--seed", asked.seed, "Of the synthetic gradients")
      ->transform(oktopk_programs::whole_unsigned(0, std::numeric_limits<std::uint64_t>::max()));
  app.add_option("--csv", asked.csv, "File for the figures")->required();
  app.add_option("--algorithm", ignored, "Not used: run.py gives it to every program");
  oktopk_programs::add_deadline(app, asked.deadline);
  try {
    std::reverse(arguments.begin(), arguments.end());
    app.parse(arguments);
    for (std::string const& each : points) {
      asked.points.push_back(point_of(each));
    }
  } catch (CLI::ParseError const& fault) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && fault.get_exit_code() != 0) {
      oktopk_programs::complain("automatic_bench", fault.what());
    } else if (rank == 0) {
      app.exit(fault);
    }
    return fault.get_exit_code() == 0 ? 0 : 1;
  }
  return std::nullopt;
}

int run(std::vector<std::string> const& arguments) {
  options asked;
  if (auto const status = read(arguments, asked)) {
    return *status;
  }
  try {
    auto comm = oktopk::mpi_communicator::duplicate(MPI_COMM_WORLD);
    oktopk_programs::set_deadline(comm, asked.deadline);
    bench(comm, asked).run();
    return 0;
  } catch (std::exception const& failure) {
    return oktopk_programs::report_failure("automatic_bench", failure);
  }
}

} // namespace
} // namespace automatic_bench

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided); // as oktopk_bench
  oktopk_programs::arguments given(argc, argv);
  std::string const fault = given.initialize_kokkos();
  if (!fault.empty()) {
    oktopk_programs::complain("automatic_bench", fault);
  }
  int status = fault.empty() ? automatic_bench::run(given.own()) : 1;
  Kokkos::finalize();
  status = oktopk_programs::status_of_output("automatic_bench", status);
  MPI_Finalize();
  return status;
}
