// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Counts what a call of ok_topk costs on a device: launches, host waits, copies, bytes and instructions, by parts.

#include "programs/arguments.hpp"
#include "programs/options.hpp"
#include "programs/pending_file.hpp"

#include "../../tests/cuda_emulator/counts.hpp"

#include <CLI/CLI.hpp>
#include <oktopk/allreduce.hpp>
#include <oktopk/comm/in_process.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iomanip>
#include <limits>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace device_cost {
namespace {

/// What is counted, in the order of the columns of the CSV file.
enum quantity : std::size_t {
  launches,
  blocks,
  threads,
  host_waits,
  copies, // between host and device, and within the device
  bytes_copied,
  bytes_read, // asked for by loads from global memory; an atomic reads and writes
  bytes_written,
  sector_bytes_read, // of the different sectors of 32 bytes of a warp's load
  sector_bytes_written,
  instructions, // of threads; in the file for each value of the gradient
  allocations,
  seconds, // of the host
  quantities
};
using counts = std::array<double, quantities>;

constexpr char const* heading = "form,length,density,ranks,part,launches,blocks,threads,host_waits,copies,bytes_copied,"
                                "bytes_read,bytes_written,sector_bytes_read,sector_bytes_written,"
                                "instructions_per_element,allocations,host_seconds\n";

// Of this program, which is one thread.
decltype(&oktopk_cuda_emulator_read_counts) emulator = nullptr;
counts counted_by_kokkos{};

void note_kernel(char const*, std::uint32_t, std::uint64_t*) {
  counted_by_kokkos[launches] += 1;
}

/// Finds out who counts; to be called before Kokkos is initialized, since its tools must be set up then.
void prepare_counting() {
  using namespace Kokkos::Tools::Experimental;
#if KOKKOS_VERSION >= 40000
  // Else Kokkos waits for everything whenever a region begins or ends.
  set_request_tool_settings_callback(
      [](std::uint32_t, Kokkos_Tools_ToolSettings* settings) { settings->requires_global_fencing = false; });
#endif
  emulator = reinterpret_cast<decltype(emulator)>(dlsym(RTLD_DEFAULT, "oktopk_cuda_emulator_read_counts"));
  if (emulator != nullptr) {
    return;
  }
  for (quantity const each :
       {blocks, threads, bytes_read, bytes_written, sector_bytes_read, sector_bytes_written, instructions}) {
    counted_by_kokkos[each] = std::numeric_limits<double>::quiet_NaN(); // nobody tells it
  }
  using space = Kokkos::Profiling::SpaceHandle;
  set_begin_parallel_for_callback(note_kernel);
  set_begin_parallel_reduce_callback(note_kernel);
  set_begin_parallel_scan_callback(note_kernel);
  set_begin_deep_copy_callback(
      [](space, char const*, void const*, space, char const*, void const*, std::uint64_t bytes) {
        counted_by_kokkos[copies] += 1;
        counted_by_kokkos[bytes_copied] += static_cast<double>(bytes);
      });
  set_begin_fence_callback([](char const*, std::uint32_t, std::uint64_t*) { counted_by_kokkos[host_waits] += 1; });
  set_allocate_data_callback(
      [](space, char const*, void const*, std::uint64_t) { counted_by_kokkos[allocations] += 1; });
}

/// All counts up to now.
counts count_now() {
  counts now = counted_by_kokkos;
  if (emulator != nullptr) {
    oktopk_cuda_emulator_counts c{};
    emulator(&c);
    std::uint64_t const counted[] = {c.launches,
                                     c.blocks,
                                     c.threads,
                                     c.host_waits,
                                     c.copies,
                                     c.bytes_copied,
                                     c.bytes_read,
                                     c.bytes_written,
                                     32 * c.sectors_read,
                                     32 * c.sectors_written,
                                     c.thread_instructions,
                                     c.allocations};
    std::copy(std::begin(counted), std::end(counted), now.begin());
  }
  now[seconds] = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  return now;
}

/// The parts of a call that are counted apart: the regions that the library opens for Kokkos Tools, and the rest.
constexpr std::string_view regions[] = {"oktopk::local_selection",  "oktopk::space_repartition",
                                        "oktopk::split_and_reduce", "oktopk::global_selection",
                                        "oktopk::balance",          "oktopk::allgatherv"};
constexpr std::string_view parts[] = {"selection", "partition", "reduce", "global selection",
                                      "balance",   "gather",    "rest"};
constexpr std::size_t rest = std::size(regions);

/// Who caused what: all counts go to the part of the call that the running rank is in. Ranks in process are fibres of
/// one thread, which change in a wait for a message alone (`noted_communicator`).
struct ledger {
  std::vector<std::vector<std::size_t>> open; // parts that each rank is in
  std::size_t rank = 0;
  counts last{};
  std::array<counts, std::size(parts)> totals{}; // all ranks together

  void settle() {
    counts const now = count_now();
    counts& total = totals[open[rank].empty() ? rest : open[rank].back()];
    for (std::size_t i = 0; i < quantities; ++i) {
      total[i] += now[i] - last[i];
    }
    last = now;
  }
};
ledger book;

/// From now on this rank runs.
void enter(int rank) {
  book.settle();
  book.rank = static_cast<std::size_t>(rank);
}

void listen_to_regions() {
  Kokkos::Tools::Experimental::set_push_region_callback([](char const* name) {
    book.settle();
    auto const* const found = std::find(std::begin(regions), std::end(regions), name);
    book.open[book.rank].push_back(static_cast<std::size_t>(found - std::begin(regions)));
  });
  Kokkos::Tools::Experimental::set_pop_region_callback([] {
    book.settle();
    if (!book.open[book.rank].empty()) { // one that was opened before anybody listened
      book.open[book.rank].pop_back();
    }
  });
}

/// Ranks in process, noted in the ledger.
class noted_communicator : public oktopk::in_process_communicator {
public:
  explicit noted_communicator(oktopk::in_process_communicator const& inner) : oktopk::in_process_communicator(inner) {
    enter(rank());
  }

  void wait_all(std::span<request> requests) {
    in_process_communicator::wait_all(requests);
    enter(rank());
  }

  template <class T>
  void allreduce(std::span<T> data, oktopk::reduction op, oktopk::phase use) {
    in_process_communicator::allreduce(data, op, use);
    enter(rank());
  }
};

// About a Laplace distribution, whose tail is that of gradients.
KOKKOS_INLINE_FUNCTION double draw(std::uint64_t stream, std::int64_t i) {
  std::uint64_t h = (stream << 40) + static_cast<std::uint64_t>(i) + 1;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9U;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebU;
  h = h ^ (h >> 31);
  double const even = (static_cast<double>(h >> 12) + 0.5) / 4503599627370496.0 - 0.5; // in (-1/2, 1/2)
  return even < 0 ? std::log(1 + 2 * even) : -std::log(1 - 2 * even);
}

using space = Kokkos::DefaultExecutionSpace;
using vector_type = Kokkos::View<float*, space::memory_space>;

struct drawing {
  vector_type to;
  std::uint64_t own;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    to(i) = static_cast<float>(draw(0, i) + draw(own, i));
  }
};

/// Gradients with heavy tails, in part shared by all ranks, of which a program takes two by turns: so thresholds move a
/// little, and selections of different ranks overlap. The same in every run.
vector_type gradient_of(std::int64_t length, int rank, int turn) {
  vector_type const made("device_cost::vector", static_cast<std::size_t>(length));
  Kokkos::parallel_for("device_cost::draw", Kokkos::RangePolicy<space, Kokkos::IndexType<std::int64_t>>(0, length),
                       drawing{made, static_cast<std::uint64_t>(3 * rank + turn + 1)});
  Kokkos::fence();
  return made;
}

struct options {
  std::vector<std::int64_t> lengths = {10'000, 100'000, 1'000'000};
  double density = 0.01;
  int ranks = 4;
  int steps = 2; ///< that are counted
  std::string csv;
};

constexpr int uncounted_steps = 3; // until the state is steady

/// Runs the steps on one rank: `call(gradient)` makes one.
template <class Call>
void run_steps(options const& asked, std::int64_t length, noted_communicator& comm, Call const& call) {
  vector_type const gradients[] = {gradient_of(length, comm.rank(), 0), gradient_of(length, comm.rank(), 1)};
  oktopk::collective_workspace workspace;
  auto const everybody = [&] {
    std::int64_t one = 1;
    oktopk::allreduce_integers(comm, std::span(&one, 1), oktopk::reduction::sum, oktopk::phase::control, workspace);
  };
  for (int step = 0; step < uncounted_steps; ++step) {
    call(gradients[step % 2]);
  }
  Kokkos::fence();
  everybody();
  if (comm.rank() == 0) { // the others wait
    book.totals = {};
    book.last = count_now();
  }
  everybody();
  for (int step = 0; step < asked.steps; ++step) {
    call(gradients[(uncounted_steps + step) % 2]);
  }
}

/// Counts calls in the steady state. The form `plain` has an accumulator that lies there, `fused` one that is formed in
/// the same pass, as error_feedback does.
void measure(options const& asked, std::int64_t length, bool fused) {
  book = ledger();
  book.open.resize(static_cast<std::size_t>(asked.ranks));
  book.last = count_now();
  oktopk::in_process::run(asked.ranks, [&](oktopk::in_process_communicator inner) {
    noted_communicator comm(inner);
    space const exec;
    oktopk::ok_topk<space, noted_communicator> allreduce(exec, comm, {.length = length, .density = asked.density});
    if (!fused) {
      run_steps(asked, length, comm, [&](vector_type const& gradient) { allreduce(gradient); });
      return;
    }
    vector_type const residual = gradient_of(length, comm.rank(), 2);
    vector_type const accumulator("device_cost::accumulator", static_cast<std::size_t>(length));
    oktopk::detail::accumulation<std::int32_t, float, space::memory_space> input;
    input.residual = residual;
    input.accumulator = accumulator;
    input.rate = 0.5F;
    run_steps(asked, length, comm, [&](vector_type const& gradient) {
      input.gradient = gradient;
      allreduce(input);
    });
  });
}

/// The rows of one length and form: of a rank and call, each part and all of them.
std::string rows_of(options const& asked, std::int64_t length, bool fused) {
  measure(asked, length, fused);
  std::ostringstream rows;
  counts all{};
  auto const row = [&](std::string_view part, counts const& counted) {
    rows << (fused ? "fused," : "plain,") << length << ',' << std::setprecision(6) << asked.density << ','
         << asked.ranks << ',' << part;
    for (std::size_t i = 0; i < quantities; ++i) {
      rows << ',';
      if (!std::isnan(counted[i])) {
        rows << std::setprecision(i < instructions ? 10 : 5)
             << counted[i] / (i == instructions ? static_cast<double>(length) : 1);
      }
    }
    rows << '\n';
  };
  for (std::size_t part = 0; part < std::size(parts); ++part) {
    counts mean = book.totals[part];
    for (std::size_t i = 0; i < quantities; ++i) {
      mean[i] /= double(asked.ranks) * asked.steps;
      all[i] += mean[i];
    }
    row(parts[part], mean);
  }
  row("all", all);
  return rows.str();
}

void run(options const& asked) {
  std::printf("device_cost on %s: %s\n", space::name(),
              emulator != nullptr
                  ? "counted by the emulator of CUDA"
                  : "as Kokkos tells its tools, which know no bytes and no instructions; a scan is one launch there");
  oktopk_programs::pending_file file(asked.csv); // opened before hours of counting
  file.write(std::string(heading));
  listen_to_regions();
  for (std::int64_t const length : asked.lengths) {
    for (bool const fused : {false, true}) {
      file.write(rows_of(asked, length, fused));
    }
  }
  file.close();
  file.commit();
}

int run_program(int argc, char** argv) {
  options asked;
  oktopk_programs::arguments given(argc, argv);
  CLI::App app("Counts what a call of ok_topk costs on a device, by parts; run.py show prints the file.",
               "device_cost");
  app.add_option("--n", asked.lengths, "Lengths of the gradient")
      ->delimiter(',')
      ->transform(oktopk_programs::whole(1, std::numeric_limits<std::int32_t>::max()))
      ->type_name("N[,N...]")
      ->capture_default_str();
  app.add_option("--density", asked.density, "Share of the entries to select, in (0, 1]")
      ->check(oktopk_programs::fault_of_density)
      ->type_name("D")
      ->capture_default_str();
  app.add_option("--ranks", asked.ranks, "Ranks in this process")
      ->transform(oktopk_programs::whole(1, 64))
      ->capture_default_str();
  app.add_option("--steps", asked.steps, "Calls that are counted, after three that are not")
      ->transform(oktopk_programs::whole(1, 10'000))
      ->capture_default_str();
  app.add_option("--csv", asked.csv, "A row for each length, form and part")->required()->type_name("FILE");
  app.set_version_flag("--version", oktopk_programs::version_text("device_cost"), "Print the version");
  try {
    auto reversed = given.own();
    std::reverse(reversed.begin(), reversed.end());
    app.parse(reversed);
  } catch (CLI::Error const& ended) {
    return app.exit(ended);
  }
  prepare_counting();
  std::string const fault = given.initialize_kokkos();
  if (fault.empty()) {
    run(asked);
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
    return oktopk_programs::status_of_output("device_cost", device_cost::run_program(argc, argv));
  } catch (std::exception const& fault) {
    oktopk_programs::complain("device_cost", fault.what());
    return 1;
  }
}
