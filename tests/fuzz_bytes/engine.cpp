// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The way into a target: for libFuzzer (OKTOPK_WITH_LIBFUZZER), or with a main program of its own for compilers without
// it, which replays files and tries a fixed number of damaged seeds.

#include "target.hpp"

#include <Kokkos_Core.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string_view>

namespace oktopk_fuzz {

void found(std::string const& what) {
  std::fprintf(stderr, "finding: %s\n", what.c_str());
  std::abort();
}

namespace {

constexpr std::string_view write_seeds_option = "--write-seeds";

int write_seeds(std::filesystem::path const& folder) {
  std::filesystem::create_directories(folder);
  std::size_t number = 0;
  for (bytes const& seed : seeds()) {
    std::ofstream out(folder / ("seed" + std::to_string(number++)), std::ios::binary);
    out.write(reinterpret_cast<char const*>(seed.data()), static_cast<std::streamsize>(seed.size()));
    if (!out.flush()) {
      std::fprintf(stderr, "%s: a seed could not be written\n", folder.c_str());
      return 1;
    }
  }
  return 0;
}

void start_kokkos() {
  Kokkos::initialize();
  std::atexit([] { Kokkos::finalize(); });
}

} // namespace

} // namespace oktopk_fuzz

#ifdef OKTOPK_WITH_LIBFUZZER

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  oktopk_fuzz::start_kokkos();
  if (*argc == 3 && (*argv)[1] == oktopk_fuzz::write_seeds_option) {
    std::exit(oktopk_fuzz::write_seeds((*argv)[2]));
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  oktopk_fuzz::run(std::as_bytes(std::span(data, size)));
  return 0;
}

#else

namespace oktopk_fuzz {
namespace {

bytes contents(std::filesystem::path const& file) {
  std::ifstream in(file, std::ios::binary);
  std::vector<char> const read{std::istreambuf_iterator<char>(in), {}};
  auto const view = std::as_bytes(std::span(read));
  return {view.begin(), view.end()};
}

// One to eight bytes changed, taken out or put in, or the end cut off.
void damage(bytes& input, std::mt19937_64& draw) {
  for (auto left = draw() % 8 + 1; left > 0; --left) {
    auto const at = static_cast<std::ptrdiff_t>(input.empty() ? 0 : draw() % input.size());
    auto const byte = static_cast<std::byte>(draw());
    switch (input.empty() ? 6 : draw() % 8) {
    case 0: input[static_cast<std::size_t>(at)] ^= static_cast<std::byte>(1U << (draw() % 8)); break;
    case 1:
    case 2:
    case 3: input[static_cast<std::size_t>(at)] = byte; break;
    case 4: input[static_cast<std::size_t>(at)] = draw() % 2 == 0 ? std::byte(0xff) : std::byte(0); break;
    case 5: input.erase(input.begin() + at); break;
    case 6: input.insert(input.begin() + at, byte); break;
    default: input.resize(draw() % 4 == 0 ? static_cast<std::size_t>(at) : input.size()); break;
    }
  }
}

// The number behind an option of libFuzzer; the others mean nothing here.
std::int64_t number_of(std::vector<std::string> const& arguments, std::string_view option) {
  for (std::string const& each : arguments) {
    if (each.starts_with(option)) {
      return std::stoll(each.substr(option.size()));
    }
  }
  return 0;
}

int replay(std::vector<std::string> const& arguments) {
  using clock = std::chrono::steady_clock;
  auto const end = clock::now() + std::chrono::seconds(number_of(arguments, "-max_total_time="));
  std::int64_t const least = number_of(arguments, "-runs=");
  std::vector<bytes> inputs = seeds();
  for (std::string const& each : arguments) {
    if (std::filesystem::is_directory(each)) {
      for (auto const& entry : std::filesystem::directory_iterator(each)) {
        inputs.push_back(contents(entry.path()));
      }
    } else if (!each.starts_with("-")) {
      inputs.push_back(contents(each));
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
  return 0;
}

} // namespace
} // namespace oktopk_fuzz

int main(int argc, char** argv) {
  oktopk_fuzz::start_kokkos();
  std::vector<std::string> const arguments(argv + 1, argv + argc);
  if (arguments.size() == 2 && arguments[0] == oktopk_fuzz::write_seeds_option) {
    return oktopk_fuzz::write_seeds(arguments[1]);
  }
  return oktopk_fuzz::replay(arguments);
}

#endif
