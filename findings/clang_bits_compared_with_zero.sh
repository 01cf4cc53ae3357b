#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# sh findings/clang_bits_compared_with_zero.sh: whether integer arithmetic on a float's bits depends on the mode in which
# denormals are read as zero, which -ffast-math of another library and torch.set_flush_denormal(True) set.
cd "$(dirname "$0")" || exit
# shellcheck source=findings/common.sh
. ./common.sh
need clang-19 1:19.1.7-3+b1
cat >"$scratch/bits.cpp" <<'EOF'
#include <bit>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <xmmintrin.h>

// Neither reads its argument as a floating-point number.
[[gnu::noinline]] bool is_zero(float x) {
  return (std::bit_cast<std::uint32_t>(x) & 0x7fffffffU) == 0;
}

[[gnu::noinline]] bool reaches(float x, std::uint32_t least) {
  return (std::bit_cast<std::uint32_t>(x) & 0x7fffffffU) >= least;
}

int main() {
  float volatile const denormal = std::numeric_limits<float>::denorm_min(); // not known when it is compiled
  std::printf("%d %d, ", is_zero(denormal), reaches(denormal, 1));
  _mm_setcsr(_mm_getcsr() | 0x40U); // denormals are zeros
  std::printf("%d %d", is_zero(denormal), reaches(denormal, 1));
}
EOF
clang++-19 -std=c++20 -O1 "$scratch/bits.cpp" -o "$scratch/bits"
verdict "the bits of 1e-45 are not zero and at least 1, in the usual mode and where denormals are read as zeros (0 1, 0 1)" \
  "0 1, 1 1" "$("$scratch/bits")"
