// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Measures selection: how long it takes beside passes over the same arrays that only read and write.

#include "inputs.hpp"
#include "memory_passes.hpp"
#include "options.hpp"
#include "processes.hpp"
#include "selectors.hpp"

#include "oktopk_bench/pending_file.hpp"
#include "oktopk_bench/progress.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace select_bench {
namespace {

std::vector<std::string_view> known_selectors() {
  std::vector<std::string_view> names;
  for (selector_entry const& each : selectors) {
    if (each.make != nullptr) {
      names.push_back(each.name);
    }
  }
  return names;
}

struct row {
  std::string selector;
  std::int64_t length;
  double density;
  std::string input;
  double seconds;
  double read_ratio;
  double rrw_ratio;
  std::int64_t selected;
};

double median(std::vector<double> samples) {
  auto const middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

template <class Action>
double seconds_of(Action const& action) {
  auto const start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Everything that is measured on one input with one k, by turns, so that what disturbs the machine disturbs all alike.
class measurement {
public:
  measurement(space const& exec, vectors const& from, std::int64_t k, options const& asked, processes& others)
      : exec_(exec), from_(from), others_(others) {
    for (selector_entry const& each : selectors) {
      bool const wanted = asked.selectors.empty() ||
                          std::find(asked.selectors.begin(), asked.selectors.end(), each.name) != asked.selectors.end();
      if (each.make != nullptr && wanted) {
        subjects_.push_back({std::string(each.name), each.make(exec, from, k), {}, 0});
      }
    }
  }

  void run(int repetitions) {
    // What has a state is in its stride after some calls, which do not count.
    constexpr int before = 3;
    for (int repetition = -before; repetition < repetitions; ++repetition) {
      int const turn = repetition + before;
      double const read = timed([&] { sink_ = read_pass(exec_, from_.accumulator); });
      double const rrw = timed([&] {
        read_read_write_pass(exec_, from_.residual, from_.gradients[static_cast<std::size_t>(turn % 2)], from_.rate,
                             from_.accumulator);
      });
      if (repetition >= 0) {
        read_.push_back(read);
        rrw_.push_back(rrw);
      }
      for (subject& each : subjects_) {
        // What takes very long is measured three times only.
        if (each.samples.size() >= 3 && each.samples.back() > 1 && !others_.several()) {
          continue;
        }
        double const seconds = timed([&] { each.selected = each.select(turn); });
        if (repetition >= 0) {
          each.samples.push_back(seconds);
        }
      }
    }
  }

  void report(std::string const& input, double density, std::vector<row>& rows) const {
    double const read = median(read_);
    double const rrw = median(rrw_);
    auto const add = [&](std::string const& name, double seconds, std::int64_t selected) {
      rows.push_back({name, from_.size(), density, input, seconds, seconds / read, seconds / rrw, selected});
    };
    add("read", read, 0);
    add("rrw", rrw, 0);
    for (subject const& each : subjects_) {
      add(each.name, median(each.samples), each.selected);
    }
  }

private:
  struct subject {
    std::string name;
    selection select;
    std::vector<double> samples;
    std::int64_t selected;
  };

  template <class Action>
  double timed(Action const& action) {
    others_.meet();
    return seconds_of(action);
  }

  space const& exec_;
  vectors const& from_;
  processes& others_;
  std::vector<subject> subjects_;
  std::vector<double> read_;
  std::vector<double> rrw_;
  volatile std::uint32_t sink_ = 0;
};

std::string csv_text(std::vector<row> const& rows) {
  std::ostringstream text;
  text.precision(9);
  text << "selector,length,density,input,seconds,read_ratio,rrw_ratio,selected\n";
  for (row const& each : rows) {
    text << each.selector << ',' << each.length << ',' << each.density << ',' << each.input << ',' << each.seconds
         << ',' << each.read_ratio << ',' << each.rrw_ratio << ',' << each.selected << '\n';
  }
  return text.str();
}

void print_heading(options const& asked) {
  std::printf("select_bench: Kokkos %s, %d %s, masks by %s, median of %d repetitions\n", space::name(), asked.processes,
              asked.processes == 1 ? "process" : "processes at a time", name(oktopk::detail::best_mask_instructions()),
              asked.repetitions);
  std::printf("%-17s %11s %8s %-13s %10s %7s %7s %10s\n", "selector", "length", "density", "input", "ms", "x read",
              "x rrw", "selected");
}

void print(std::span<row const> rows) {
  for (row const& each : rows) {
    std::printf("%-17s %11lld %7g%% %-13s %10.3f %7.2f %7.2f %10lld\n", each.selector.c_str(),
                static_cast<long long>(each.length), 100 * each.density, each.input.c_str(), 1e3 * each.seconds,
                each.read_ratio, each.rrw_ratio, static_cast<long long>(each.selected));
  }
  std::fflush(stdout);
}

void check(std::string const& fault) {
  if (!fault.empty()) {
    throw std::runtime_error(fault);
  }
}

void run(options const& asked, processes& others) {
  std::vector<oktopk_bench::pending_file> files;
  if (others.first() && !asked.csv.empty()) {
    check(files.emplace_back(asked.csv).open());
  }
  space const exec;
  std::vector<row> rows;
  if (others.first()) {
    print_heading(asked);
  }
  for (std::string const& name : asked.inputs) {
    bool const drawn = is_distribution(name);
    for (std::int64_t const length : drawn ? asked.lengths : std::vector<std::int64_t>{0}) {
      vectors const from(drawn ? make_input(name, length) : read_input(name));
      for (double const density : asked.densities) {
        auto const k = std::max<std::int64_t>(1, std::llround(density * static_cast<double>(from.size())));
        measurement all(exec, from, k, asked, others);
        all.run(asked.repetitions);
        std::size_t const before = rows.size();
        all.report(name, density, rows);
        if (others.first()) {
          print(std::span<row const>(rows).subspan(before));
        }
      }
    }
  }
  if (!files.empty()) {
    std::string const text = csv_text(rows);
    check(files.front().write(std::as_bytes(std::span<char const>(text))));
    check(files.front().close());
    check(files.front().commit());
  }
}

int run_program(int argc, char** argv) {
  std::vector<std::string> own;
  for (int i = 1; i < argc; ++i) {
    if (!std::string_view(argv[i]).starts_with("--kokkos")) {
      own.emplace_back(argv[i]);
    }
  }
  auto const known = known_selectors();
  command_line const read = read_command_line(own, known);
  if (!read.help.empty()) {
    std::fputs(read.help.c_str(), stdout);
    return 0;
  }
  check(read.fault);
  processes others(read.asked.processes);
  Kokkos::initialize(argc, argv);
  try {
    run(read.asked, others);
  } catch (...) {
    Kokkos::finalize();
    throw;
  }
  Kokkos::finalize();
  return !others.first() || others.join() ? 0 : 1;
}

} // namespace
} // namespace select_bench

int main(int argc, char** argv) {
  try {
    return select_bench::run_program(argc, argv);
  } catch (std::exception const& fault) {
    std::fprintf(stderr, "select_bench: %s\n", fault.what());
    return 1;
  }
}
