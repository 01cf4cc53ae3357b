// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Counts what a call of ok_topk costs on a device: launches, host waits, copies, bytes and instructions, by parts.

#include "counts.hpp"
#include "ledger.hpp"

#include "programs/arguments.hpp"
#include "programs/options.hpp"
#include "programs/pending_file.hpp"

#include <CLI/CLI.hpp>
#include <oktopk/allreduce.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iomanip>
#include <limits>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace device_cost {
namespace {

/// Gradients with heavy tails, in part shared by all ranks, of which a program takes two by turns: so thresholds move a
/// little, and selections of different ranks overlap. The same in every run.
class workload {
public:
  explicit workload(std::int64_t length) : length_(length) {}

  std::vector<float> gradient(int rank, int turn) const {
    std::vector<float> values(static_cast<std::size_t>(length_));
    auto const own = static_cast<std::uint64_t>(3 * rank + turn + 1);
    for (std::int64_t i = 0; i < length_; ++i) {
      values[static_cast<std::size_t>(i)] = static_cast<float>(draw(0, i) + draw(own, i));
    }
    return values;
  }

private:
  // About a Laplace distribution, whose tail is that of gradients.
  static double draw(std::uint64_t stream, std::int64_t i) {
    std::uint64_t h = (stream << 40) + static_cast<std::uint64_t>(i) + 1;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9U;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebU;
    h = h ^ (h >> 31);
    double const even = (static_cast<double>(h >> 12) + 0.5) / 4503599627370496.0 - 0.5; // in (-1/2, 1/2)
    return (even < 0 ? 1 : -1) * std::log(1 - 2 * std::abs(even));
  }

  std::int64_t length_;
};

using q = quantity;

// A number as a stream prints it, or what stands for one that nobody counted.
std::string known(double number, char const* otherwise, int digits = 10) {
  std::ostringstream text;
  text << std::setprecision(digits) << number;
  return std::isnan(number) ? otherwise : text.str();
}

/// The columns of the table: bytes are those that kernels read and write in global memory, per value of the gradient.
constexpr char const* table_heading =
    "part               launches   blocks    waits   copies   read B/n    written sectors rd sectors wr    instr/n\n";

std::string table_line(std::string_view part_name, std::int64_t length, counts const& each) {
  auto const n = static_cast<double>(length);
  std::ostringstream line;
  line << std::left << std::setw(18) << part_name << std::right;
  for (double const number : {each[q::launches], each[q::blocks], each[q::host_waits], each[q::copies]}) {
    line << std::setw(9) << known(number, "-", 4);
  }
  for (double const number : {each[q::bytes_read], each[q::bytes_written], 32 * each[q::sectors_read],
                              32 * each[q::sectors_written], each[q::instructions]}) {
    line << std::setw(11) << known(number / n, "-", 4);
  }
  line << '\n';
  return line.str();
}

/// The columns of the CSV file behind those that name the case.
constexpr char const* csv_heading =
    "part,launches,blocks,threads,host_waits,copies,bytes_copied,bytes_read,bytes_written,"
    "sector_bytes_read,sector_bytes_written,instructions_per_element,allocations,host_seconds\n";

std::string csv_cells(std::string_view part_name, std::int64_t length, counts const& each) {
  std::ostringstream line;
  line << part_name;
  for (double const number : {each[q::launches], each[q::blocks], each[q::threads], each[q::host_waits],
                              each[q::copies], each[q::bytes_copied], each[q::bytes_read], each[q::bytes_written],
                              32 * each[q::sectors_read], 32 * each[q::sectors_written]}) {
    line << ',' << known(number, "");
  }
  line << std::setprecision(5) << ',' << known(each[q::instructions] / static_cast<double>(length), "", 5) << ','
       << each[q::allocations] << ',' << each[q::seconds] << '\n';
  return line.str();
}

using space = Kokkos::DefaultExecutionSpace;
using vector_type = Kokkos::View<float*, space::memory_space>;

struct options {
  std::vector<std::int64_t> lengths = {10'000, 100'000, 1'000'000};
  double density = 0.01;
  int ranks = 4;
  int steps = 2;
  int warmup = 3;
  std::vector<std::string> forms = {"plain", "fused"};
  std::string csv;
};

vector_type on_device(std::vector<float> const& values) {
  vector_type const there("device_cost::vector", values.size());
  Kokkos::View<float const*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>> const here(values.data(),
                                                                                                    values.size());
  Kokkos::deep_copy(there, here);
  return there;
}

/// Runs the steps on one rank: `call(gradient)` makes one.
template <class Call>
void run_steps(options const& asked, workload const& from, noted_communicator& comm, ledger& book, Call const& call) {
  vector_type const gradients[] = {on_device(from.gradient(comm.rank(), 0)), on_device(from.gradient(comm.rank(), 1))};
  oktopk::collective_workspace workspace;
  auto const everybody = [&] {
    std::int64_t one = 1;
    oktopk::allreduce_integers(comm, std::span(&one, 1), oktopk::reduction::sum, oktopk::phase::control, workspace);
  };
  for (int step = 0; step < asked.warmup; ++step) {
    call(gradients[step % 2]);
  }
  Kokkos::fence();
  everybody();
  if (comm.rank() == 0) { // the others wait
    book.reset();
  }
  everybody();
  for (int step = asked.warmup; step < asked.warmup + asked.steps; ++step) {
    call(gradients[step % 2]);
  }
}

/// Counts a call of one rank in the steady state, of all parts.
ledger measure(options const& asked, std::int64_t length, std::string const& form) {
  workload const from(length);
  ledger book(asked.ranks);
  book.listen();
  oktopk::in_process::run(asked.ranks, [&](oktopk::in_process_communicator inner) {
    noted_communicator comm(inner, book);
    space const exec;
    oktopk::ok_topk<space, noted_communicator> allreduce(exec, comm, {.length = length, .density = asked.density});
    if (form == "fused") {
      using making = oktopk::detail::accumulation<std::int32_t, float, space::memory_space>;
      vector_type const residual = on_device(from.gradient(comm.rank(), 2));
      vector_type const accumulator("device_cost::accumulator", static_cast<std::size_t>(length));
      run_steps(asked, from, comm, book, [&](vector_type const& gradient) {
        making input;
        input.residual = residual;
        input.gradient = gradient;
        input.accumulator = accumulator;
        input.rate = 0.5F;
        allreduce(input);
      });
    } else {
      run_steps(asked, from, comm, book, [&](vector_type const& gradient) { allreduce(gradient); });
    }
  });
  return book;
}

std::string density_text(double density) {
  std::ostringstream text;
  text << density;
  return text.str();
}

/// Prints the table of one length and form, and gives its rows.
std::string report(options const& asked, std::int64_t length, std::string const& form, ledger const& book) {
  std::printf("\nn = %lld, %s, of a rank and call:\n%s", static_cast<long long>(length), form.c_str(), table_heading);
  std::string rows;
  counts all;
  auto const line = [&](std::string_view what, counts const& each) {
    std::fputs(table_line(what, length, each).c_str(), stdout);
    rows += form + ',' + std::to_string(length) + ',' + density_text(asked.density) + ',' +
            std::to_string(asked.ranks) + ',' + csv_cells(what, length, each);
  };
  for (std::size_t which = 0; which < parts; ++which) {
    auto const each = book.of(static_cast<part>(which)) / (double(asked.ranks) * asked.steps);
    line(name(static_cast<part>(which)), each);
    all += each;
  }
  line("all", all);
  return rows;
}

void run(options const& asked, origin where) {
  std::printf("device_cost on %s: %s\n", space::name(), std::string(description(where)).c_str());
  std::optional<oktopk_programs::pending_file> file; // opened before hours of counting
  if (!asked.csv.empty()) {
    file.emplace(asked.csv);
  }
  std::string rows = std::string("form,length,density,ranks,") + csv_heading;
  for (std::int64_t const length : asked.lengths) {
    for (std::string const& form : asked.forms) {
      rows += report(asked, length, form, measure(asked, length, form));
      std::fflush(stdout);
    }
  }
  if (file) {
    file->write(rows);
    file->close();
    file->commit();
  }
}

void add_options(CLI::App& app, options& asked) {
  app.add_option("--n", asked.lengths, "Lengths of the gradient")
      ->delimiter(',')
      ->check(CLI::Range(std::int64_t(1), std::int64_t(std::numeric_limits<std::int32_t>::max())))
      ->type_name("N[,N...]")
      ->capture_default_str();
  app.add_option("--density", asked.density, "Share of the entries to select, in (0, 1]")
      ->check(oktopk_programs::fault_of_density)
      ->type_name("D")
      ->capture_default_str();
  app.add_option("--ranks", asked.ranks, "Ranks in this process")->check(CLI::Range(1, 64))->capture_default_str();
  app.add_option("--steps", asked.steps, "Calls counted")->check(CLI::Range(1, 60))->capture_default_str();
  app.add_option("--warmup", asked.warmup, "Calls before these")->check(CLI::Range(1, 60))->capture_default_str();
  app.add_option("--form", asked.forms,
                 "plain: of an accumulator that lies there; fused: of one\nthat is formed in the same pass, as "
                 "error_feedback does")
      ->delimiter(',')
      ->check(CLI::IsMember({"plain", "fused"}))
      ->capture_default_str();
  app.add_option("--csv", asked.csv, "A row for each length, form and part")->type_name("FILE");
  app.set_version_flag("--version", oktopk_programs::version_text("device_cost"), "Print the version");
}

int run_program(int argc, char** argv) {
  options asked;
  oktopk_programs::arguments given(argc, argv);
  CLI::App app("Counts what a call of ok_topk costs on a device, by parts.", "device_cost");
  add_options(app, asked);
  try {
    auto reversed = given.own();
    std::reverse(reversed.begin(), reversed.end());
    app.parse(reversed);
  } catch (CLI::Error const& ended) {
    return app.exit(ended);
  }
  origin const where = prepare_counting();
  std::string const fault = given.initialize_kokkos();
  if (fault.empty()) {
    run(asked, where);
  } else {
    oktopk_programs::complain("device_cost", fault);
  }
  Kokkos::finalize();
  return fault.empty() ? 0 : 1;
}

} // namespace
} // namespace device_cost

int main(int argc, char** argv) {
  try {
    return device_cost::run_program(argc, argv);
  } catch (std::exception const& fault) {
    oktopk_programs::complain("device_cost", fault.what());
    return 1;
  }
}
