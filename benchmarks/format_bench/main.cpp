// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Measures sparse formats: bits an entry, and entries encoded and decoded a second, beside what others would do.

#include "messages.hpp"
#include "rivals.hpp"
#include "subject.hpp"

#include "programs/google_benchmark.hpp"

#include <oktopk/format/coo.hpp>
#include <oktopk/format/packed.hpp>
#include <oktopk/format/values/fixed.hpp>
#include <oktopk/format/values/floats.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace format_bench {
namespace {

struct options {
  std::int64_t length = 14'728'266;
  std::vector<double> densities = {0.001, 0.01, 0.05};
  std::vector<std::int64_t> parts = {1};
  std::vector<std::string> kinds = {format_bench::kinds, std::end(format_bench::kinds)};
  std::vector<std::string> files;
  std::string label = "files";
};

template <class Values>
using packed_with = oktopk::packed<float, std::int32_t, Values>;

/// A value codec that sends no values: what is left are the indices, with all that belongs to them.
struct no_values : oktopk::value_codec_base {
  static constexpr bool lossless = false;
  static std::string name() { return "none"; }

  template <class Value>
  KOKKOS_INLINE_FUNCTION static int most_bytes(int) {
    return 0;
  }

  template <class Value>
  KOKKOS_INLINE_FUNCTION static std::byte* encode(Value const*, int, std::byte* out) {
    return out;
  }

  template <class Value>
  KOKKOS_INLINE_FUNCTION static std::byte const* decode(std::byte const* in, std::byte const*, int, Value*) {
    return in;
  }
};

/// All formats: a new one is a line here.
void bench_all(case_of const& on) {
  bench_format<copied>("memcpy", on);
  bench_format<oktopk::coo<>>("coo", on);
  bench_format<rice>("rice", on);
  bench_format<oktopk::packed<>>("packed", on);
  bench_format<packed_with<oktopk::bfloat16_values>>("packed_bfloat16", on);
  bench_format<packed_with<oktopk::fixed_values<8>>>("packed_fixed8", on);
  bench_format<packed_with<oktopk::fixed_values<4>>>("packed_fixed4", on);
  bench_format<packed_with<oktopk::fixed_values<2>>>("packed_fixed2", on);
  bench_format<packed_with<oktopk::sign_values>>("packed_sign", on);
  bench_format<packed_with<no_values>>("packed_indices", on);
#ifdef FORMAT_BENCH_WITH_STREAMVBYTE
  bench_format<streamvbyte>("streamvbyte", on);
#endif
#ifdef FORMAT_BENCH_WITH_ZSTD
  bench_format<zstd>("zstd", on);
  bench_format<zstd_all>("zstd_all", on);
#endif
}

/// Measures; false where nothing was asked for.
bool run(options const& asked) {
  std::deque<input> inputs;
  for (double const density : asked.densities) {
    for (std::int64_t const parts : asked.parts) {
      if (!asked.files.empty()) {
        bench_all({inputs.emplace_back(read_input(asked.files, asked.label, density, parts)), density, parts});
        continue;
      }
      for (std::string const& kind : asked.kinds) {
        bench_all({inputs.emplace_back(make_input(kind, asked.length, density, parts)), density, parts});
      }
    }
  }
  return benchmark::RunSpecifiedBenchmarks() > 0;
}

std::string fault_of_kind(std::string const& text) {
  return is_kind(text) ? "" : "must be uniform, clustered, alternating or random_bits, not " + text;
}

int run_program(int argc, char** argv) {
  options asked;
  CLI::App app("Measures sparse formats on one core: bits an entry, and entries a second.", "format_bench");
  oktopk_programs::add_selection_options(app, asked.length, asked.densities);
  app.add_option("--parts", asked.parts, "Messages that a selection is cut into")
      ->delimiter(',')
      ->transform(oktopk_programs::whole(1, 1 << 30))
      ->type_name("P[,P...]")
      ->capture_default_str();
  app.add_option("--input", asked.kinds, "How the entries lie: uniform, clustered, alternating, random_bits")
      ->delimiter(',')
      ->check(fault_of_kind)
      ->type_name("NAME[,NAME...]")
      ->capture_default_str();
  app.add_option("--files", asked.files,
                 "Accumulators in their place, .npy or raw little-endian float32,\nthe largest of each are sent")
      ->delimiter(',')
      ->type_name("FILE[,FILE...]");
  app.add_option("--label", asked.label, "Name of what is in the files")->type_name("NAME")->capture_default_str();
  if (!oktopk_programs::reads_options(app, argc, argv)) {
    return 0;
  }
  std::vector<std::string> library = {"--benchmark_repetitions=5", "--benchmark_min_time=0.02",
                                      "--benchmark_report_aggregates_only=true"};
  auto const more = app.remaining();
  library.insert(library.end(), more.begin(), more.end());
  oktopk_programs::initialize_benchmarks(argv[0], library, space::name());
  Kokkos::ScopeGuard const kokkos(argc, argv);
  return run(asked) ? 0 : 1;
}

} // namespace
} // namespace format_bench

int main(int argc, char** argv) {
  return oktopk_programs::guarded("format_bench", format_bench::run_program, argc, argv);
}
