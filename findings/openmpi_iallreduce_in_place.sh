#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# sh findings/openmpi_iallreduce_in_place.sh: MPI_Iallreduce gives other bits in place than with two buffers.
cd "$(dirname "$0")" || exit
# shellcheck source=findings/common.sh
. ./common.sh
need openmpi-bin 4.1.4-3+b1
cat >"$scratch/sum.c" <<'EOF'
#include <mpi.h>
#include <stdio.h>

#define N 20000

int main(int argc, char** argv) {
  static float own[N], apart[N], in_place[N];
  int rank, i, others = 0;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (i = 0; i < N; ++i) {
    own[i] = in_place[i] = 1.0f / (float)(1 + (i * 7 + rank * 13) % 1009);
  }
  MPI_Iallreduce(own, apart, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Iallreduce(MPI_IN_PLACE, in_place, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (i = 0; i < N; ++i) {
    others += apart[i] != in_place[i];
  }
  if (rank == 0) {
    printf("%s", others == 0 ? "same" : others > N / 10 ? "many others" : "few others");
  }
  MPI_Finalize();
  return 0;
}
EOF
mpicc.openmpi "$scratch/sum.c" -o "$scratch/sum"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
verdict "20,000 sums of 5 ranks: the same bits in place and with two buffers" "many others" \
  "$(mpirun.openmpi --oversubscribe --mca mpi_yield_when_idle 1 -n 5 "$scratch/sum")"
