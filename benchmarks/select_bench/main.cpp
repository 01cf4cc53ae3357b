// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Measures selection: how long it takes beside passes over the same arrays that only read and write.

#include "inputs.hpp"
#include "memory_passes.hpp"
#include "options.hpp"
#include "processes.hpp"
#include "selectors.hpp"

#include "programs/arguments.hpp"
#include "programs/pending_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
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
  std::string text = "selector,length,density,input,seconds,read_ratio,rrw_ratio,selected\n";
  for (row const& each : rows) {
    text += fmt::format("{},{},{:.9g},{},{:.9g},{:.9g},{:.9g},{}\n", each.selector, each.length, each.density,
                        each.input, each.seconds, each.read_ratio, each.rrw_ratio, each.selected);
  }
  return text;
}

void print_heading(options const& asked) {
  fmt::print("select_bench: Kokkos {}, {} {}, masks by {}, median of {} repetitions\n", space::name(), asked.processes,
             asked.processes == 1 ? "process" : "processes at a time", oktopk::detail::magnitude_mask_name(),
             asked.repetitions);
  fmt::print("{:<17} {:>11} {:>8} {:<13} {:>10} {:>7} {:>7} {:>10}\n", "selector", "length", "density", "input", "ms",
             "x read", "x rrw", "selected");
}

void print(std::span<row const> rows) {
  for (row const& each : rows) {
    fmt::print("{:<17} {:>11} {:>7g}% {:<13} {:>10.3f} {:>7.2f} {:>7.2f} {:>10}\n", each.selector, each.length,
               100 * each.density, each.input, 1e3 * each.seconds, each.read_ratio, each.rrw_ratio, each.selected);
  }
  std::fflush(stdout);
}

void run(options const& asked, processes& others) {
  std::vector<oktopk_programs::pending_file> files;
  if (others.first() && !asked.csv.empty()) {
    files.emplace_back(asked.csv);
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
    files.front().write(csv_text(rows));
    files.front().close();
    files.front().commit();
  }
}

int run_program(int argc, char** argv) {
  oktopk_programs::arguments given(argc, argv);
  auto const known = known_selectors();
  command_line const read = read_command_line(given.own(), known);
  if (!read.help.empty()) {
    std::fputs(read.help.c_str(), stdout);
    return 0;
  }
  if (!read.fault.empty()) {
    throw std::runtime_error(read.fault);
  }
  processes others(read.asked.processes);
  std::string const fault = given.initialize_kokkos();
  try {
    if (!fault.empty()) {
      throw std::runtime_error(fault);
    }
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
    oktopk_programs::complain("select_bench", fault.what());
    return 1;
  }
}
