// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "input.hpp"
#include "measure.hpp"
#include "quality.hpp"
#include "report.hpp"
#include "result.hpp"
#include "run.hpp"
#include "sums.hpp"
#include "verify.hpp"

#include "programs/added_codecs.hpp"
#include "programs/pending_file.hpp"
#include "programs/progress.hpp"
#include "programs/together.hpp"

#include <oktopk/catalogue/catalogue.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace oktopk_bench {

/// No decorator around the communicator of the algorithms.
template <oktopk::communicator Comm>
using undecorated = Comm;

/// The whole program on the ranks of one communicator. The algorithms get a `Decorator` of it, below which their
/// messages are counted.
///
/// What can go wrong on one rank alone is caught there and settled among all of them, so that every rank throws the
/// same sentence and none is left waiting. Communication of the tool's own goes past the counters.
template <oktopk::communicator Comm, template <oktopk::communicator> class Decorator = undecorated>
class bench {
public:
  using counting = counting_communicator<Comm>;
  using decorated = Decorator<counting>;
  using allreduce = oktopk::any_allreduce<space>;

  bench(Comm comm, options const& asked, std::string const& note) : comm_(comm), asked_(asked), note_(note) {}

  void run() {
    prepare();
    if (first() && !note_.empty()) {
      std::fprintf(stderr, "%s\n", note_.c_str());
    }
    auto const steps = asked_.warmup + asked_.measured_steps();
    {
      oktopk_programs::progress bar(first(), steps * static_cast<std::int64_t>(asked_.algorithms.size()));
      for (std::string const& text : asked_.algorithms) {
        run_algorithm(text, bar);
      }
    }
    finish();
  }

private:
  bool first() const { return comm_.rank() == 0; }

  template <class Action>
  auto together(char const* what, oktopk::fault code, Action const& action) {
    return oktopk_programs::together(comm_, what, code, action);
  }

  void prepare() {
    input_ = together("input", oktopk::fault::bad_file, [&]() -> std::unique_ptr<input> {
      if (asked_.length) {
        return std::make_unique<synthetic_input>(*asked_.length, asked_.seed, comm_.rank());
      }
      return std::make_unique<file_input>(asked_.inputs, comm_.rank());
    });
    std::array<double, 1> length{first() ? static_cast<double>(input_->length()) : 0};
    comm_.allreduce(std::span<double>(length), oktopk::reduction::sum, oktopk::phase::control);
    auto const expected = static_cast<std::int64_t>(length[0]);
    together("input", oktopk::fault::bad_file, [&] {
      if (input_->length() != expected) {
        throw local_fault("its input has " + std::to_string(input_->length()) + " values, but rank 0's has " +
                          std::to_string(expected));
      }
    });
    together("output", oktopk::fault::bad_file, [&] {
      check_dump_folder(asked_.dump);
      if (!asked_.csv.empty() && first()) {
        files_.emplace_back(asked_.csv);
      }
    });
  }

  void run_algorithm(std::string const& text, oktopk_programs::progress& bar) {
    counting counted{timed<Comm>(comm_)};
    allreduce algorithm = oktopk::make_allreduce(exec_, decorated(counted), text,
                                                 {.length = input_->length(), .k = asked_.k, .density = asked_.density},
                                                 oktopk_programs::added_codecs<space>());
    promised_ = algorithm.promises();
    together("memory", oktopk::fault::option_out_of_range, [&] { reserve(); });
    bool const is_yardstick = std::is_same_v<decorated, counting> && algorithm.name() == "dense";
    typename allreduce::update_type update;
    for (std::int64_t step = -asked_.warmup; step < asked_.measured_steps(); ++step) {
      std::string const which = step < 0 ? "warm-up" : "step " + std::to_string(step);
      read(step);
      measurement row =
          measure(comm_, algorithm, counted, accumulator_, is_yardstick, promised_.global.has_value(), which, update);
      if (step >= 0) {
        row.algorithm = text;
        row.length = input_->length();
        row.step = step;
        check(algorithm, update, row, text + ", " + which);
        rows_.push_back(row);
      }
      bar.advance(text);
    }
    if (!asked_.dump.empty()) {
      together("output", oktopk::fault::bad_file,
               [&] { write_dump(asked_.dump, text, comm_.rank(), result_of(update), files_); });
    }
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
    together("input", oktopk::fault::bad_file, [&] { input_->read(step, host_); });
    Kokkos::View<float const*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>> const source(host_.data(),
                                                                                                        host_.size());
    Kokkos::deep_copy(exec_, accumulator_, source);
    exec_.fence();
  }

  void check(allreduce const& algorithm, typename allreduce::update_type const& update, measurement& row,
             std::string const& call) {
    if (asked_.quality) {
      sum_.add_up(comm_, host_);
      // The scheme's own k, where it has one; a dense one is compared with the others.
      bool const selects = promised_.local || algorithm.k() < algorithm.length();
      std::int64_t const k = selects ? algorithm.k() : asked_.entries_of(input_->length());
      row.quality = together("memory", oktopk::fault::option_out_of_range,
                             [&] { return first() ? sum_.compare(result_of(update), k) : update_quality(); });
    }
    if (asked_.verify) {
      // Where nothing is rounded it makes no difference who adds up. Of blocks that are dealt out the owners are not told.
      std::vector<std::int64_t> boundaries;
      if (rounds_entries(promised_) && has_whole_regions(promised_)) {
        boundaries = boundaries_of(algorithm, comm_.size());
      }
      verify(comm_, call, host_, result_of(update), algorithm.last_call(), promised_, algorithm.k(), boundaries);
    }
  }

  void finish() {
    together("output", oktopk::fault::bad_file, [&] {
      if (!asked_.csv.empty() && first()) {
        files_.front().write(csv_text(rows_));
        files_.front().close();
      }
    });
    // All files are whole on all ranks: now they get their names.
    together("output", oktopk::fault::bad_file, [&] {
      for (oktopk_programs::pending_file& file : files_) {
        file.commit();
      }
    });
    if (first()) {
      std::fputs(heading_text(asked_, rows_, input_->description(), space::name()).c_str(), stdout);
      std::fputs(table_text(rows_).c_str(), stdout);
      std::fputs(asked_.control ? control_text(rows_).c_str() : "", stdout);
    }
  }

  Comm comm_;
  options const& asked_;
  std::string const& note_;
  space exec_;
  std::unique_ptr<input> input_;
  std::vector<oktopk_programs::pending_file> files_;
  std::vector<float> host_;
  dense_sum sum_; // with --quality
  accumulator_view accumulator_;
  allreduce_promises promised_; // of the algorithm that runs
  std::vector<measurement> rows_;
};

/// Runs the program for a command line that was read on this rank; throws what is wrong, the same on every rank. `note`
/// goes to the standard error stream before anything is measured.
template <oktopk::communicator Comm>
void run_bench(Comm comm, command_line const& read, std::string const& note = {}) {
  oktopk::agreement agreed("command line");
  agreed.fact("options", read.line);
  if (!read.fault.empty()) {
    agreed.note(oktopk::fault::option_out_of_range, read.fault);
  }
  agreed.check_on(comm);
  if (!read.text.empty()) {
    if (comm.rank() == 0) {
      std::fputs(read.text.c_str(), stdout);
    }
    return;
  }
  if (read.asked.operation == "sparse_sum") {
    sums_bench<Comm>(comm, read.asked, note).run();
    return;
  }
#ifdef OKTOPK_BENCH_WITH_XXHASH
  if (read.asked.checked) { // not before the ranks agree: a sealed message cannot meet one without
    run_checked(comm, read.asked, note);
    return;
  }
#endif
#ifdef OKTOPK_BENCH_WITH_MPI
  if constexpr (std::is_same_v<Comm, oktopk::mpi_communicator>) {
    if (read.asked.over_tcp) {
      run_over_tcp(comm, read.asked, note);
      return;
    }
  }
#endif
  bench<Comm>(comm, read.asked, note).run();
}

} // namespace oktopk_bench
