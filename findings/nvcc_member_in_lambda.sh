#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# sh findings/nvcc_member_in_lambda.sh: decltype of a member of a base, in a generic lambda of a template, does not compile with nvcc.
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
compiled() {
  "$@" -std=c++20 -c -o "$scratch/member.o" >"$scratch/log" 2>&1 && echo compiles || sed -n 's/.*error: //p' "$scratch/log" | head -n 1
}
seen=
for type in 'decltype(this->member)' 'decltype(base<T>::member)'; do
  cat >"$scratch/member.cpp" <<EOF
template <class T>
struct base {
  T member;
};

template <class T>
struct derived : base<T> {
  T twice() {
    auto const made = [&](auto by) {
      using type = $type;
      return static_cast<type>(this->member * by);
    };
    return made(2);
  }
};

int main() { return derived<int>{{2}}.twice() == 4 ? 0 : 1; }
EOF
  cp "$scratch/member.cpp" "$scratch/member.cu"
  seen="$seen${seen:+; }$type: g++ $(compiled g++ "$scratch/member.cpp"), nvcc: $(compiled "$nvcc" "$scratch/member.cu" | tr -d '‘’'"'")"
done
verdict "g++ and nvcc compile both" "decltype(this->member): g++ compiles, nvcc: base operand of -> is not a pointer; \
decltype(base<T>::member): g++ compiles, nvcc: compiles" "$seen"
