// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Prints what a program can observe of seeded calls: a line a call with checksums of the results of all ranks, messages
// and bytes of each phase, the checksum of the saved state, and the sentence of an error. Two revisions of the library
// behave alike where their lines are equal: see compare_revisions.sh.

#include <oktopk/allreduce.hpp>
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using space = Kokkos::DefaultExecutionSpace;
using communicator = oktopk::counted<oktopk::in_process_communicator>;

/// FNV-1a, of bytes in the order in which they come.
class checksum {
public:
  void add(void const* data, std::size_t bytes) {
    auto const* each = static_cast<unsigned char const*>(data);
    for (std::size_t i = 0; i < bytes; ++i) {
      value_ = (value_ ^ each[i]) * 1099511628211ULL;
    }
  }

  template <class View>
  void add_view(View const& view) {
    auto const host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
    std::uint64_t const size = host.extent(0);
    add(&size, sizeof(size));
    for (std::size_t i = 0; i < size; ++i) {
      add(&host(i), sizeof(host(i)));
    }
  }

  unsigned long long value() const { return value_; }

private:
  std::uint64_t value_ = 14695981039346656037ULL;
};

/// One scheme at one size, with everything drawn from the seed.
struct call_case {
  std::string text;
  int ranks = 1;
  std::int64_t length = 0;
  std::int64_t k = 0;
  std::uint32_t seed = 0;
};

// Each algorithm, format, values codec, selector, partitioner and codec of the catalogue at least once.
std::vector<std::string> const texts{
    "ok_topk",
    "ok_topk(local_select=reused, tau_prime=3)",
    "ok_topk(local_select=unguarded, global_select=gathered)",
    "ok_topk(local_select=gaussian, global_select=reused)",
    "ok_topk(local_select=chunked)",
    "ok_topk(local_select=chunked, global_select=unguarded, partition=balanced)",
    "ok_topk(partition=balanced, tau=2)",
    "ok_topk(partition=uniform)",
    "ok_topk(format=coo_or_dense)",
    "ok_topk(format=packed)",
    "ok_topk(format=packed, values=bfloat16)",
    "ok_topk(format=packed, values=fixed8, local_select=reused)",
    "ok_topk(format=packed, values=fixed4)",
    "ok_topk(format=packed, values=fixed2, partition=balanced)",
    "ok_topk(format=packed, values=sign)",
    "ok_topk(global=foreseen)",
    "ok_topk(reduce=radix(2))",
    "ok_topk(reduce=radix(3), format=packed, values=bfloat16)",
    "ok_topk(partition=uniform(blocks=3), format=packed, values=fixed8)",
    "ok_topk(global=foreseen, reduce=radix(2), partition=uniform(blocks=4), format=packed, values=bfloat16)",
    "paper_ok_topk",
    "paper_ok_topk(tau=2, tau_prime=2)",
    "paper_ok_topk(format=packed, values=bfloat16)",
    "topk_a",
    "topk_a(format=packed, values=fixed4)",
    "topk_a(format=coo_or_dense)",
    "topk_dsa",
    "topk_dsa(format=coo)",
    "topk_dsa(format=packed, values=bfloat16)",
    "gtopk",
    "gtopk(format=packed)",
    "gtopk(format=packed, values=sign, return_dropped=false)",
    "gaussian_k",
    "gaussian_k(format=packed, values=fixed8)",
    "dense",
    "dense_rabenseifner",
    "dense_rabenseifner(codec=bfloat16)",
    "dense_bfloat16",
    "ring",
    "ring_chunked",
    "ring_chunked(codec=block_float)",
    "ring_chunked(codec=block_float, rate=4)",
    "ring_chunked(codec=bfloat16)",
    "ring_pipelined",
    "halving_doubling",
    "recursive_doubling",
    "recursive_doubling(codec=block_float)",
    "recursive_doubling(codec=identity)",
};

call_case draw(std::uint32_t seed) {
  std::mt19937 random(seed);
  auto const below = [&](std::uint32_t end) { return static_cast<std::int64_t>(random() % end); };
  call_case drawn;
  drawn.text = texts[seed % texts.size()];
  drawn.ranks = std::array{1, 2, 3, 4, 5, 7, 8, 13}[static_cast<std::size_t>(below(8))];
  drawn.length = std::array<std::int64_t, 6>{1, 37, 500, 4096, 10'007, 50'000}[static_cast<std::size_t>(below(6))];
  drawn.k = std::array<std::int64_t, 4>{
      drawn.length / 100, drawn.length / 10, drawn.length,
      below(static_cast<std::uint32_t>(drawn.length) + 1)}[static_cast<std::size_t>(below(4))];
  drawn.seed = seed;
  return drawn;
}

/// A gradient of that rank and iteration: heavy-tailed, with ties and zeros, and large in one region for some seeds.
std::vector<float> gradient_of(call_case const& one, int rank, int iteration) {
  std::mt19937 random(one.seed * 1'000'003u + static_cast<std::uint32_t>(rank) * 1009u +
                      static_cast<std::uint32_t>(iteration));
  std::mt19937 shared(one.seed);
  std::vector<float> values(static_cast<std::size_t>(one.length));
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto const unit = [](std::mt19937& from) { return static_cast<float>(from() % 20001) / 10000.0F - 1.0F; };
    float const own = unit(random);
    float const common = unit(shared);
    values[i] = own * own * own + common;
    if (one.seed % 5 == 0 && i % 3 == 0) {
      values[i] = 0.5F;
    }
    if (one.seed % 7 == 0 && i < values.size() / 10) {
      values[i] *= 100.0F;
    }
  }
  return values;
}

struct observed {
  checksum results;
  checksum state;
  std::array<oktopk::traffic, 8> phases{};
  std::string error;
};

std::string sentence_of(std::exception_ptr const& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (std::exception const& caught) {
    return caught.what();
  }
}

/// Several calls in a row, one with a fault for some seeds, and a restored object in the middle.
void run(call_case const& one) {
  std::vector<observed> seen(static_cast<std::size_t>(one.ranks));
  auto const failures = oktopk::in_process::run_and_collect(one.ranks, [&](oktopk::in_process_communicator plain) {
    observed& own = seen[static_cast<std::size_t>(plain.rank())];
    communicator comm(plain);
    auto allreduce = oktopk::make_allreduce(space(), comm, one.text, {.length = one.length, .k = one.k});
    Kokkos::View<float*, space> const gradient("gradient", static_cast<std::size_t>(one.length));
    for (int iteration = 0; iteration < 5; ++iteration) {
      auto values = gradient_of(one, plain.rank(), iteration);
      bool const faulty = one.seed % 9 == 0 && iteration == 3;
      if (faulty && plain.rank() == one.ranks / 2) {
        values[values.size() / 2] = std::numeric_limits<float>::quiet_NaN();
      }
      Kokkos::deep_copy(gradient, Kokkos::View<float const*, Kokkos::HostSpace>(values.data(), values.size()));
      try {
        auto const& update = allreduce(gradient);
        own.results.add_view(update.indices());
        own.results.add_view(update.values());
        own.results.add_view(update.contributed());
        own.results.add_view(update.returned().indices);
        own.results.add_view(update.returned().values);
      } catch (oktopk::error const& caught) {
        own.error += std::string(caught.what()) + "; ";
      }
      std::ostringstream saved;
      oktopk::save(saved, allreduce.state());
      own.state.add(saved.str().data(), saved.str().size());
      if (iteration == 2) {
        auto const kept = allreduce.state();
        allreduce.restore(kept);
      }
    }
    for (std::size_t p = 0; p < oktopk::phase_count; ++p) {
      own.phases[p] = comm.of_phase(static_cast<oktopk::phase>(p));
    }
  });
  checksum results;
  checksum state;
  std::array<oktopk::traffic, 8> phases{};
  std::string errors;
  for (std::size_t rank = 0; rank < seen.size(); ++rank) {
    auto const result = seen[rank].results.value();
    auto const saved = seen[rank].state.value();
    results.add(&result, sizeof(result));
    state.add(&saved, sizeof(saved));
    for (std::size_t p = 0; p < phases.size(); ++p) {
      phases[p] += seen[rank].phases[p];
    }
    if (rank == 0 || seen[rank].error != seen[0].error) {
      errors += seen[rank].error;
    }
    if (failures[rank]) {
      errors += "rank " + std::to_string(rank) + ": " + sentence_of(failures[rank]) + "; ";
    }
  }
  std::printf("%u %s P=%d n=%lld k=%lld | results %016llx | state %016llx |", one.seed, one.text.c_str(), one.ranks,
              static_cast<long long>(one.length), static_cast<long long>(one.k), results.value(), state.value());
  for (std::size_t p = 0; p < oktopk::phase_count; ++p) {
    std::printf(" %lld/%lld", static_cast<long long>(phases[p].messages_sent),
                static_cast<long long>(phases[p].bytes_sent));
  }
  std::printf(" | %s\n", errors.c_str());
}

} // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard const kokkos(argc, argv);
  std::uint32_t const cases = argc > 1 ? static_cast<std::uint32_t>(std::strtoul(argv[1], nullptr, 10)) : 440;
  for (std::uint32_t seed = 0; seed < cases; ++seed) {
    run(draw(seed));
  }
  return EXIT_SUCCESS;
}
