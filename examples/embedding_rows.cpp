// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Gradients of an embedding table: each rank has a row for each word of its sentences, the frequent ones many times. The
// sum of the rows of all ranks, without a pass over the table. Four ranks in one process; checks itself.
#include <oktopk/sparse_sum.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

using space = Kokkos::DefaultExecutionSpace;
using memory = space::memory_space;

constexpr int words_of_table = 50000;
constexpr int width = 16; // values of a row
constexpr int words_of_rank = 4000;

/// The words of a rank, as frequent as their numbers are small: word w about 1 / (w + 1) times as often as word 0.
std::vector<std::int32_t> words_of(int rank) {
  std::vector<std::int32_t> words;
  std::uint32_t state = 12345U + 6789U * static_cast<std::uint32_t>(rank);
  for (int i = 0; i < words_of_rank; ++i) {
    state = state * 1664525U + 1013904223U;
    double const share = static_cast<double>(state >> 8U) / static_cast<double>(1U << 24U);
    words.push_back(static_cast<std::int32_t>(std::pow(words_of_table, share)) - 1);
  }
  return words;
}

/// The gradient of a word's row: whole numbers, whose sums are exact.
float gradient_of(int rank, int word, int column) {
  return static_cast<float>((rank + word + column) % 5 - 2);
}

/// What every row of the sum must be.
std::vector<float> expected_table(int ranks, std::vector<int>& uses) {
  std::vector<float> table(static_cast<std::size_t>(words_of_table) * width, 0);
  for (int rank = 0; rank < ranks; ++rank) {
    for (int const word : words_of(rank)) {
      uses[static_cast<std::size_t>(word)] += 1;
      for (int j = 0; j < width; ++j) {
        table[static_cast<std::size_t>(word) * width + static_cast<std::size_t>(j)] += gradient_of(rank, word, j);
      }
    }
  }
  return table;
}

int run(oktopk::in_process_communicator comm) {
  using counted = oktopk::counted<oktopk::in_process_communicator>;
  counted counting(comm);
  oktopk::sparse_sum sum(space(), counting, {.length = words_of_table, .width = width});

  auto const words = words_of(comm.rank());
  Kokkos::View<std::int32_t*, memory> const indices("indices", words.size());
  Kokkos::View<float**, Kokkos::LayoutRight, memory> const rows("rows", words.size(), width);
  auto const host_indices = Kokkos::create_mirror_view(indices);
  auto const host_rows = Kokkos::create_mirror_view(rows);
  for (std::size_t i = 0; i < words.size(); ++i) {
    host_indices(i) = words[i]; // in the order of the sentences, a word as often as it comes
    for (int j = 0; j < width; ++j) {
      host_rows(i, static_cast<std::size_t>(j)) = gradient_of(comm.rank(), words[i], j);
    }
  }
  Kokkos::deep_copy(indices, host_indices);
  Kokkos::deep_copy(rows, host_rows);

  counting.reset();
  auto const& all = sum(indices, rows);
  auto const found = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), all.indices());
  auto const values = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), all.values());

  std::vector<int> uses(words_of_table, 0);
  auto const table = expected_table(comm.size(), uses);
  std::size_t wrong = 0;
  std::size_t at = 0;
  for (std::size_t word = 0; word < uses.size(); ++word) {
    if (uses[word] == 0) {
      continue;
    }
    bool right = at < found.extent(0) && found(at) == static_cast<std::int32_t>(word);
    for (std::size_t j = 0; right && j < width; ++j) {
      right = values(at * width + j) == table[word * width + j];
    }
    wrong += right ? 0U : 1U;
    at += 1;
  }
  wrong += at == found.extent(0) ? 0U : 1U;
  if (comm.rank() == 0) {
    std::printf("%zu of %d rows are in the sum, %zu are wrong; rank 0 sent %.0f words, a dense sum sends %.0f\n",
                found.extent(0), words_of_table, wrong, counting.total().words_sent(),
                2.0 * words_of_table * width * (comm.size() - 1) / comm.size());
  }
  return wrong == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard const kokkos(argc, argv);
  int failures = 0;
  oktopk::in_process::run(4, [&](oktopk::in_process_communicator comm) { failures += run(comm); });
  return failures;
}
