#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# sh findings/nvcc_loop_over_braces.sh: a loop over members in braces, in a template, does not compile with nvcc.
cd "$(dirname "$0")" || exit
# shellcheck source=findings/common.sh
. ./common.sh
# shellcheck source=tests/cuda_emulator/find_nvcc.sh
. ../tests/cuda_emulator/find_nvcc.sh
nvcc=$(find_nvcc) || exit 77
release=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
if [ "$release" != 13.0 ]; then
  echo "This is about nvcc 13.0 of NVIDIA's CUDA toolkit; here is $release."
  exit 77
fi
echo "version:  nvcc $release, g++ $(g++ -dumpfullversion)"
cat >"$scratch/loop.cpp" <<'EOF'
#include <initializer_list>

template <class T>
struct pair {
  T first;
  T second;
};

template <class T>
T sum(pair<T> const& of) {
  T all = 0;
  for (auto const& each : {of.first, of.second}) {
    all += each;
  }
  return all;
}

int main() { return sum(pair<int>{1, 2}) == 3 ? 0 : 1; }
EOF
cp "$scratch/loop.cpp" "$scratch/loop.cu"
compiled() {
  "$@" -std=c++20 -c -o "$scratch/loop.o" >"$scratch/log" 2>&1 && echo compiles || sed -n 's/.*error: //p' "$scratch/log" | head -n 1
}
seen="g++ $(compiled g++ "$scratch/loop.cpp"), nvcc: $(LC_ALL=C compiled "$nvcc" "$scratch/loop.cu" | tr -d '‘’'"'")"
verdict "g++ compiles, nvcc: compiles" "g++ compiles, nvcc: expected ; before } token" "$seen"
