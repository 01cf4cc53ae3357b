#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# sh findings/simgrid_mpi_test.sh: on SimGrid's SMPI each MPI_Test that finds nothing takes longer than the one before.
cd "$(dirname "$0")" || exit
# shellcheck source=findings/common.sh
. ./common.sh
need libsimgrid-dev 3.32-2+b2
cat >"$scratch/platform.xml" <<'EOF'
<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="zone" routing="Full">
    <host id="one" speed="1Gf"/>
    <host id="two" speed="1Gf"/>
    <link id="link" bandwidth="125MBps" latency="50us"/>
    <route src="one" dst="two"><link_ctn id="link"/></route>
  </zone>
</platform>
EOF
printf 'one\ntwo\n' >"$scratch/hosts"
cat >"$scratch/poll.c" <<'EOF'
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int rank, i, done, number = 0;
  double begin, after;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) { /* polls 1000 times for an answer to a question that it asks afterwards */
    MPI_Irecv(&number, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
    begin = MPI_Wtime();
    for (i = 0; i < 1000; ++i) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
    after = MPI_Wtime();
    MPI_Send(&number, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    printf("%.2g s", after - begin);
  } else {
    MPI_Recv(&number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
EOF
smpicc "$scratch/poll.c" -o "$scratch/poll"
simulated() {
  smpirun -np 2 -platform "$scratch/platform.xml" -hostfile "$scratch/hosts" --cfg=smpi/simulate-computation:no --log=root.thres:critical \
    "$@" "$scratch/poll"
}
verdict "1000 polls of smpi/test = 0.1 ms each take 0.1 s, with grow-injected-times or without" "50 s, 0.1 s" \
  "$(simulated), $(simulated --cfg=smpi/grow-injected-times:no)"
