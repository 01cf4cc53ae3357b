#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# sh findings/kokkoskernels_dot.sh: KokkosBlas::dot of floats is exact as a return value and not in a View.
cd "$(dirname "$0")" || exit
# shellcheck source=findings/common.sh
. ./common.sh
need libtrilinos-kokkos-kernels-dev 13.2.0-4
cat >"$scratch/dot.cpp" <<'EOF'
#include <KokkosBlas1_dot.hpp>
#include <Kokkos_Core.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  Kokkos::initialize(argc, argv);
  {
    Kokkos::View<float*> ones("ones", 1 << 25);
    Kokkos::deep_copy(ones, 1.0F);
    Kokkos::View<float, Kokkos::HostSpace> into("into");
    KokkosBlas::dot(into, ones, ones);
    std::printf("%.0f %.0f", static_cast<double>(KokkosBlas::dot(ones, ones)), static_cast<double>(into()));
  }
  Kokkos::finalize();
}
EOF
g++ -std=c++17 -O2 -w -I/usr/include/trilinos "$scratch/dot.cpp" -o "$scratch/dot" -ltrilinos_kokkoskernels -ltrilinos_kokkoscore -ldl
verdict "dot of 2^25 ones, returned and into a View<float>: 33554432 33554432" "33554432 16777216" "$("$scratch/dot" 2>"$scratch/log")"
