// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The way into a target: for libFuzzer (OKTOPK_WITH_LIBFUZZER), or with a main program of its own for compilers without
// it, which replays files and tries a fixed number of damaged seeds.

#include "target.hpp"

#include <Kokkos_Core.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

namespace oktopk_fuzz {

void require(bool holds, char const* what) {
  if (!holds) {
    std::fprintf(stderr, "finding: %s\n", what);
    std::abort();
  }
}

void start_kokkos() {
  Kokkos::initialize();
  std::atexit([] { Kokkos::finalize(); });
}

} // namespace oktopk_fuzz

#ifdef OKTOPK_WITH_LIBFUZZER

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  oktopk_fuzz::start_kokkos();
  for (oktopk_fuzz::bytes const& seed : oktopk_fuzz::seeds()) { // every one, what was found before among them
    oktopk_fuzz::run(seed);
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

// Now and then a seed comes in the place of what was to be changed.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned draw) {
  static std::vector<oktopk_fuzz::bytes> const seeds = oktopk_fuzz::seeds();
  oktopk_fuzz::bytes const& seed = seeds[draw / 16 % seeds.size()];
  if (draw % 16 != 0 || seed.size() > most) {
    return LLVMFuzzerMutate(data, size, most);
  }
  std::memcpy(data, seed.data(), seed.size());
  return seed.size();
}

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  oktopk_fuzz::run(std::as_bytes(std::span(data, size)));
  return 0;
}

#else

namespace oktopk_fuzz {
namespace {

// One to eight bytes changed, taken out or put in, or the end cut off.
void damage(bytes& input, std::mt19937_64& draw) {
  for (auto left = draw() % 8 + 1; left > 0; --left) {
    auto const at = static_cast<std::ptrdiff_t>(input.empty() ? 0 : draw() % input.size());
    auto const byte = static_cast<std::byte>(draw());
    switch (input.empty() ? 3 : draw() % 8) {
    case 0: input[static_cast<std::size_t>(at)] ^= static_cast<std::byte>(1U << (draw() % 8)); break;
    case 1: input[static_cast<std::size_t>(at)] = draw() % 2 == 0 ? std::byte(0xff) : std::byte(0); break;
    case 2: input.erase(input.begin() + at); break;
    case 3: input.insert(input.begin() + at, byte); break;
    case 4: input.resize(draw() % 4 == 0 ? static_cast<std::size_t>(at) : input.size()); break;
    default: input[static_cast<std::size_t>(at)] = byte; break;
    }
  }
}

} // namespace
} // namespace oktopk_fuzz

// Takes files, and of the options of libFuzzer two; the others mean nothing here.
int main(int argc, char** argv) {
  using namespace oktopk_fuzz;
  using clock = std::chrono::steady_clock;
  start_kokkos();
  auto end = clock::now();
  std::int64_t least = 0;
  std::vector<bytes> inputs = seeds();
  for (std::string const& each : std::vector<std::string>(argv + 1, argv + argc)) {
    auto const number = each.substr(each.find('=') + 1);
    if (each.starts_with("-max_total_time=")) {
      end += std::chrono::seconds(std::stoll(number));
    } else if (each.starts_with("-runs=")) {
      least = std::stoll(number);
    } else if (!each.starts_with("-")) {
      std::ifstream in(each, std::ios::binary);
      inputs.push_back(written().text({std::istreambuf_iterator<char>(in), {}}));
    }
  }
  run({});
  for (bytes const& input : inputs) {
    run(input);
  }
  std::mt19937_64 draw(1);
  std::int64_t runs = 0;
  for (; runs < least || clock::now() < end; ++runs) {
    bytes input = inputs[draw() % inputs.size()];
    damage(input, draw);
    run(input);
  }
  std::printf("%zu inputs and %lld damaged ones\n", inputs.size(), static_cast<long long>(runs));
}

#endif
