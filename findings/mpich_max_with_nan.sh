#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# sh findings/mpich_max_with_nan.sh: after MPI_Allreduce with MPI_MAX the ranks hold different numbers where one rank had a NaN.
cd "$(dirname "$0")" || exit
# shellcheck source=findings/common.sh
. ./common.sh
need mpich 4.0.2-3+b1
cat >"$scratch/max.c" <<'EOF'
#include <math.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int rank, i;
  float value, largest, all[4];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  value = rank == 3 ? NAN : (float)(rank + 1);
  MPI_Allreduce(&value, &largest, 1, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Gather(&largest, 1, MPI_FLOAT, all, 1, MPI_FLOAT, 0, MPI_COMM_WORLD);
  for (i = 0; rank == 0 && i < 4; ++i) {
    printf("%s%g", i == 0 ? "" : " ", all[i]);
  }
  MPI_Finalize();
  return 0;
}
EOF
mpicc.mpich "$scratch/max.c" -o "$scratch/max" -lm
verdict "maximum of 1, 2, 3, NaN: one number or NaN, the same on all ranks" "nan 3 2 3" "$(mpirun.mpich -n 4 "$scratch/max")"
