// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Measures selection: how long it takes beside passes over the same arrays that only read and write.

#include "inputs.hpp"
#include "memory_passes.hpp"
#include "ranks.hpp"
#include "selectors.hpp"

#include "programs/google_benchmark.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace select_bench {
namespace {

struct options {
  std::int64_t length = 14'728'266;
  std::vector<double> densities = {0.01};
  std::string input = "normal"; ///< the name of a distribution, or a file
};

template <class Action>
double seconds_of(Action const& action) {
  auto const start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

selection make_read(space const& exec, vectors const& from, std::int64_t) {
  return [&exec, &from](int) {
    benchmark::DoNotOptimize(read_pass(exec, from.accumulator));
    return std::int64_t(0);
  };
}

selection make_rrw(space const& exec, vectors const& from, std::int64_t) {
  return [&exec, &from](int turn) {
    read_read_write_pass(exec, from.residual, from.gradients[static_cast<std::size_t>(turn % 2)], from.accumulator);
    return std::int64_t(0);
  };
}

constexpr selector_entry yardsticks[] = {{"read", make_read, 1}, {"rrw", make_rrw, 3}};

/// A selector with one k. Each repetition measures both yardsticks too, right before it: what disturbs the machine
/// disturbs all alike.
class subject {
public:
  subject(space const& exec, vectors const& from, std::int64_t k, selector_entry const& entry, ranks const& all)
      : exec_(exec), from_(from), k_(k), entry_(entry), all_(all) {}

  void run(benchmark::State& state) {
    if (!select_) {
      select_ = entry_.make(exec_, from_, k_);
      // What has a state is in its stride after some calls.
      for (; turn_ < 3; ++turn_) {
        select_(turn_);
      }
    }
    double const read = seconds_of_yardstick(yardsticks[0]);
    double const rrw = seconds_of_yardstick(yardsticks[1]);
    std::int64_t selected = 0;
    all_.meet();
    double const all_iterations = seconds_of([&] {
      for (auto _ : state) {
        selected = select_(turn_++);
      }
    });
    double const seconds = all_iterations / static_cast<double>(state.iterations());
    auto const bytes = entry_.arrays * from_.size() * static_cast<std::int64_t>(sizeof(float));
    state.counters["bytes_per_second"] = static_cast<double>(bytes) / seconds;
    state.counters["read_ratio"] = seconds / read;
    state.counters["rrw_ratio"] = seconds / rrw;
    state.counters["selected"] = static_cast<double>(selected);
  }

private:
  double seconds_of_yardstick(selector_entry const& yardstick) const {
    selection const pass = yardstick.make(exec_, from_, k_);
    all_.meet();
    return seconds_of([&] { pass(turn_); });
  }

  space const& exec_;
  vectors const& from_;
  std::int64_t k_;
  selector_entry const& entry_;
  ranks const& all_;
  selection select_;
  int turn_ = 0;
};

std::string name_of(selector_entry const& entry, std::int64_t length, double density, std::string const& input) {
  std::ostringstream name;
  name << entry.name << "/n:" << length << "/density:" << density << '/' << input;
  return name.str();
}

/// Nothing, for all ranks but the first.
class silence : public benchmark::BenchmarkReporter {
public:
  bool ReportContext(Context const&) override { return true; }
  void ReportRuns(std::vector<Run> const&) override {}
};

/// Tells the benchmark library our defaults, then what was asked for, then what a rank may not do.
void initialize_library(char* program, std::vector<std::string> const& asked, ranks const& all) {
  for (std::string const& each : asked) {
    if (each.starts_with("--benchmark_min_time")) { // the accumulator is made once a repetition
      throw std::runtime_error("a repetition is one call: --benchmark_repetitions says how many there are, not " +
                               each);
    }
  }
  std::vector<std::string> arguments = {"--benchmark_repetitions=15", "--benchmark_min_time=0",
                                        "--benchmark_report_aggregates_only=true",
                                        "--benchmark_enable_random_interleaving=true"};
  arguments.insert(arguments.end(), asked.begin(), asked.end());
  if (all.size() > 1) {
    arguments.emplace_back("--benchmark_enable_random_interleaving=false"); // the same at the same time on each rank
  }
  if (all.rank() > 0) {
    arguments.emplace_back("--benchmark_out=");
  }
  oktopk_programs::initialize_benchmarks(program, arguments, space::name());
  benchmark::AddCustomContext("processes", std::to_string(all.size()));
}

/// Measures; false where nothing was asked for.
bool run(options const& asked, ranks const& all) {
  space const exec;
  vectors const from(is_distribution(asked.input) ? make_input(asked.input, asked.length) : read_input(asked.input));
  std::vector<selector_entry> entries(std::begin(yardsticks), std::end(yardsticks));
  std::copy_if(std::begin(selectors), std::end(selectors), std::back_inserter(entries),
               [](selector_entry const& each) { return each.make != nullptr; });
  std::deque<subject> subjects;
  for (double const density : asked.densities) {
    auto const k = std::max<std::int64_t>(1, std::llround(density * static_cast<double>(from.size())));
    for (selector_entry const& each : entries) {
      subject& own = subjects.emplace_back(exec, from, k, each, all);
      auto* const added = benchmark::RegisterBenchmark(name_of(each, from.size(), density, asked.input).c_str(),
                                                       [&own](benchmark::State& state) { own.run(state); });
      added->Unit(benchmark::kMillisecond);
      if (all.size() > 1) {
        added->Iterations(1); // as many on each rank
      }
    }
  }
  silence nothing;
  return (all.rank() == 0 ? benchmark::RunSpecifiedBenchmarks() : benchmark::RunSpecifiedBenchmarks(&nothing)) > 0;
}

int run_program(int argc, char** argv) {
  options asked;
  CLI::App app("Measures selection on one rank, beside passes that only read and write memory.", "select_bench");
  std::string distributions_text;
  for (std::string_view const each : distributions) {
    distributions_text += std::string(each) + ", ";
  }
  oktopk_programs::add_selection_options(app, asked.length, asked.densities);
  app.add_option("--input", asked.input,
                 distributions_text +
                     "or a file, .npy or raw\nlittle-endian float32, whose length takes the place of\n--n")
      ->type_name("NAME|FILE")
      ->capture_default_str();
  if (!oktopk_programs::reads_options(app, argc, argv)) {
    return 0;
  }
  ranks const all(argc, argv);
  try {
    initialize_library(argv[0], app.remaining(), all);
    Kokkos::ScopeGuard const kokkos(argc, argv);
    std::string const note = all.note();
    if (all.rank() == 0 && !note.empty()) {
      std::fprintf(stderr, "%s\n", note.c_str());
    }
    return run(asked, all) ? 0 : 1;
  } catch (std::exception const& fault) {
    oktopk_programs::complain("select_bench", fault.what());
    all.abort();
    return 1;
  }
}

} // namespace
} // namespace select_bench

int main(int argc, char** argv) {
  return oktopk_programs::guarded("select_bench", select_bench::run_program, argc, argv);
}
