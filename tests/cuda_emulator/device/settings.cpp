// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace cuda_emulator {

namespace {

u64 number(char const* name, u64 otherwise) {
  char const* const text = std::getenv((std::string("OKTOPK_CUDA_EMULATOR_") + name).c_str());
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 0);
}

} // namespace

settings const& settings::given() {
  static settings const read_once = {
      .lazy = number("LAZY", 0) != 0,
      .seed = number("SEED", 0),
      .uninitialised_reads = number("INITCHECK", 0) != 0,
      .trace = number("TRACE", 0) != 0,
      .multiprocessors = std::max<u64>(1, number("MULTIPROCESSORS", 4)),
      .max_steps = number("MAX_STEPS", 1'000'000'000),
  };
  return read_once;
}

} // namespace cuda_emulator
