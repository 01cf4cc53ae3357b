// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Algorithms by name: a text from the command line says which allreduce to make, and with which policies.
//
//   algorithm_by_name "ok_topk(local=reused(tau_prime=16))" "ring_chunked(codec=block_float(rate=8))"
//   algorithm_by_name --list
//
// The program calls each algorithm once on four ranks in one process. It fails when the largest sum is not at the place
// where it must be, or when a wrong name is taken. Without arguments it tries some algorithms.

#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/in_process.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

namespace {

using space = Kokkos::DefaultExecutionSpace;
constexpr int ranks = 4;
constexpr int length = 10000;

/// Every rank has its largest value, 1, at index 5000, and smaller ones around it.
void fill(Kokkos::View<float*, space> const& gradient) {
  Kokkos::parallel_for(
      "fill", Kokkos::RangePolicy<space>(0, length), KOKKOS_LAMBDA(std::int64_t i) {
        std::int64_t const distance = i < 5000 ? 5000 - i : i - 5000;
        gradient(static_cast<std::size_t>(i)) = 1.0F / (1.0F + static_cast<float>(distance));
      });
}

/// Whether the algorithm of this text gives the sum 4 at index 5000, and its largest there.
bool works(std::string const& text) {
  bool right = true;
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
    auto allreduce = oktopk::make_allreduce(space(), comm, text, {.length = length, .density = 0.01});
    Kokkos::View<float*, space> const gradient("gradient", length);
    fill(gradient);

    auto const& update = allreduce(gradient);

    auto const indices = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), update.indices());
    auto const sums = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), update.values());
    std::size_t largest = 0;
    for (std::size_t i = 0; i < sums.extent(0); ++i) {
      largest = sums(i) > sums(largest) ? i : largest;
    }
    // A lossy codec rounds: eight bits keep about two digits.
    right = right && sums.extent(0) > 0 && indices(largest) == 5000 && std::fabs(sums(largest) - 4.0F) < 0.1F;
    if (comm.rank() == 0) {
      std::printf("%-60s %zu sums\n", text.c_str(), sums.extent(0));
    }
  });
  return right;
}

/// Whether a wrong name is an error on every rank that lists the right ones.
bool refuses_wrong_name() {
  try {
    return works("okk_topk") && false;
  } catch (oktopk::error const& caught) {
    std::printf("%s\n", caught.what());
    return caught.code() == oktopk::fault::option_out_of_range &&
           std::string(caught.what()).find("ok_topk") != std::string::npos;
  }
}

} // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard const kokkos(argc, argv);
  std::vector<std::string> texts(argv + 1, argv + argc);
  if (texts.size() == 1 && texts[0] == "--list") {
    std::printf("%s", oktopk::catalogue_text().c_str());
    return EXIT_SUCCESS;
  }
  if (texts.empty()) {
    texts = {"ok_topk", "ok_topk(local=reused(tau_prime=16), partition=balanced(tau=32))", "topk_a",
             "ring_chunked(codec=block_float(rate=8))"};
  }
  bool right = true;
  for (std::string const& text : texts) {
    right = works(text) && right;
  }
  right = refuses_wrong_name() && right;
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
