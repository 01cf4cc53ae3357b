// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "algorithms.hpp"
#include "dense_sum.hpp"
#include "dump.hpp"
#include "input.hpp"
#include "measure.hpp"
#include "pending_file.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "verify.hpp"

#include <oktopk/comm/agreement.hpp>
#include <oktopk/comm/counted.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace oktopk_bench {

/// The whole program on the ranks of one communicator.
///
/// What can go wrong on one rank alone is caught there and settled among all of them, so that every rank throws the
/// same sentence and none is left waiting. Communication of the tool's own goes past the counters.
template <oktopk::communicator Comm>
class bench {
public:
  using counting = counting_communicator<Comm>;

  bench(Comm comm, options const& asked) : comm_(comm), asked_(asked) {}

  void run() {
    prepare();
    auto const steps = asked_.warmup + asked_.measured_steps();
    auto bar = std::make_unique<progress>(first(), steps * static_cast<std::int64_t>(asked_.algorithms.size()));
    for (std::string const& name : asked_.algorithms) {
      run_algorithm(name, *bar);
    }
    bar.reset();
    finish();
  }

private:
  bool first() const { return comm_.rank() == 0; }

  /// Runs what may fail on this rank alone, then throws on all ranks if it failed on any.
  template <class Action>
  void together(std::string const& what, oktopk::fault code, Action const& action) {
    std::string fault;
    try {
      fault = action();
    } catch (std::bad_alloc const&) {
      fault = "there is not enough memory";
    } catch (std::exception const& found) {
      fault = found.what();
    }
    oktopk::agreement agreed(what);
    if (!fault.empty()) {
      agreed.note(code, fault);
    }
    agreed.settle(comm_);
  }

  void prepare() {
    together("input", oktopk::fault::bad_file, [&] {
      input_ = open_input(asked_, comm_.rank());
      return std::string();
    });
    std::array<double, 1> length{first() ? static_cast<double>(input_->length()) : 0};
    comm_.allreduce(std::span<double>(length), oktopk::reduction::sum, oktopk::phase::control);
    auto const expected = static_cast<std::int64_t>(length[0]);
    together("input", oktopk::fault::bad_file, [&] {
      return input_->length() == expected ? std::string()
                                          : "its input has " + std::to_string(input_->length()) +
                                                " values, but rank 0's has " + std::to_string(expected);
    });
    together("output", oktopk::fault::bad_file, [&] {
      std::string fault = asked_.dump.empty() ? std::string() : fault_of_dump_folder(asked_.dump);
      if (fault.empty() && !asked_.csv.empty() && first()) {
        fault = files_.emplace_back(asked_.csv).open();
      }
      return fault;
    });
  }

  void run_algorithm(std::string const& name, progress& bar) {
    counting counted{timed<Comm>(comm_)};
    std::unique_ptr<runner> const algorithm = make(name, counted);
    together("memory", oktopk::fault::option_out_of_range, [&] {
      reserve();
      return std::string();
    });
    for (std::int64_t step = -asked_.warmup; step < asked_.measured_steps(); ++step) {
      std::string const which = step < 0 ? "warm-up" : "step " + std::to_string(step);
      read(step);
      measurement row = measure(comm_, *algorithm, counted, accumulator_, which);
      if (step >= 0) {
        row.algorithm = label(name, asked_);
        row.length = input_->length();
        row.step = step;
        row.quality = quality(*algorithm);
        rows_.push_back(row);
        check(*algorithm, name + ", " + which);
      }
      bar.advance(name);
    }
    if (!asked_.dump.empty()) {
      together("output", oktopk::fault::bad_file,
               [&] { return write_dump(asked_.dump, name, comm_.rank(), algorithm->result(), files_); });
    }
  }

  std::unique_ptr<runner> make(std::string const& name, counting const& counted) {
    auto const& known = algorithms<counting>;
    auto const* const entry =
        std::find_if(std::begin(known), std::end(known), [&](auto const& each) { return each.name == name; });
    return entry->make(exec_, counted, input_->length(), asked_);
  }

  void reserve() {
    auto const length = static_cast<std::size_t>(input_->length());
    if (host_.size() != length) {
      host_.resize(length);
      accumulator_ =
          accumulator_view(Kokkos::view_alloc(Kokkos::WithoutInitializing, "oktopk_bench::accumulator"), length);
    }
    if (asked_.quality) {
      sum_.reserve(input_->length(), comm_.rank());
    }
  }

  void read(std::int64_t step) {
    together("input", oktopk::fault::bad_file, [&] {
      input_->read(step, host_);
      return std::string();
    });
    Kokkos::View<float const*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>> const source(host_.data(),
                                                                                                        host_.size());
    Kokkos::deep_copy(exec_, accumulator_, source);
    exec_.fence();
  }

  std::optional<update_quality> quality(runner const& algorithm) {
    if (!asked_.quality) {
      return std::nullopt;
    }
    sum_.add_up(comm_, host_);
    update_quality found;
    together("memory", oktopk::fault::option_out_of_range, [&] {
      if (first()) {
        found = sum_.compare(algorithm.result(), asked_.entries_of(input_->length()));
      }
      return std::string();
    });
    return found;
  }

  void check(runner const& algorithm, std::string const& call) {
    if (asked_.verify) {
      verify(comm_, call, host_, algorithm.result(), algorithm.figures(), algorithm.promised(), algorithm.k());
    }
  }

  void finish() {
    together("output", oktopk::fault::bad_file, [&] {
      if (asked_.csv.empty() || !first()) {
        return std::string();
      }
      std::string const text = csv_text(rows_);
      std::string const fault = files_.front().write(std::as_bytes(std::span<char const>(text)));
      return fault.empty() ? files_.front().close() : fault;
    });
    // All files are whole on all ranks: now they get their names.
    together("output", oktopk::fault::bad_file, [&] {
      std::string fault;
      for (pending_file& file : files_) {
        fault = fault.empty() ? file.commit() : fault;
      }
      return fault;
    });
    if (first()) {
      print();
    }
  }

  void print() const {
    std::printf("oktopk_bench: %d %s, %s, %lld values, %lld %s after %lld of warm-up, %s; Kokkos %s\n", comm_.size(),
                comm_.size() == 1 ? "rank" : "ranks", input_->description().c_str(),
                static_cast<long long>(input_->length()), static_cast<long long>(asked_.measured_steps()),
                asked_.measured_steps() == 1 ? "step" : "steps", static_cast<long long>(asked_.warmup),
                asked_.verify ? "every result verified" : "results not verified", space::name());
    std::fputs(table_text(rows_).c_str(), stdout);
  }

  Comm comm_;
  options const& asked_;
  space exec_;
  std::unique_ptr<input> input_;
  std::vector<pending_file> files_;
  std::vector<float> host_;
  dense_sum sum_; // with --quality
  accumulator_view accumulator_;
  std::vector<measurement> rows_;
};

/// Runs the program for a command line that was read on this rank; throws what is wrong, the same on every rank.
///
/// Gives the text of `--help` where that was asked for.
template <oktopk::communicator Comm>
std::string run_bench(Comm comm, command_line const& read) {
  oktopk::agreement agreed("command line");
  agreed.fact("options", read.help.empty() ? describe(read.asked) : "--help");
  if (!read.fault.empty()) {
    agreed.note(oktopk::fault::option_out_of_range, read.fault);
  }
  agreed.settle(comm);
  if (read.help.empty()) {
    bench<Comm>(comm, read.asked).run();
  }
  return read.help;
}

} // namespace oktopk_bench
