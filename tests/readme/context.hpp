// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The names that pieces of the documentation take for granted; never defined, for the pieces are only compiled.
using space = Kokkos::DefaultExecutionSpace;
using Exec = space;
using Communicator = oktopk::mpi_communicator;

struct own_optimizer {
  void step(Kokkos::View<float*, space> weights, Kokkos::View<float*, space> gradient);
};

extern space exec;
extern oktopk::mpi_communicator comm;
extern std::int64_t n;
extern Kokkos::View<float*, space> gradient;
extern Kokkos::View<float*, space> weights;
extern Kokkos::View<float*, space> average;
extern Kokkos::View<float*, space> accumulator;
extern oktopk::ok_topk<space, oktopk::mpi_communicator> allreduce;
extern oktopk::sgd<oktopk::ok_topk<space, oktopk::mpi_communicator>> optimizer;
extern own_optimizer my_optimizer;
void compute_gradient(Kokkos::View<float*, space> weights, Kokkos::View<float*, space> gradient);
using my_communicator = oktopk::mpi_communicator;
