// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/allreduce.hpp>
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/sgd.hpp>
#include <oktopk/sparse_sum.hpp>
#ifdef OKTOPK_TESTS_WITH_MPI
#include <oktopk/mpi.hpp>
#endif

/// One step of gradient descent on a gradient of 2, 1, 0, 0, … from weights of zero; gives the first weight.
float first_weight_in_two(std::int64_t length);

/// The same, compiled in every translation unit that includes this file: the linker must merge what they share.
inline float first_weight(std::int64_t length) {
  using space = Kokkos::DefaultHostExecutionSpace;
  using host_array = Kokkos::View<float*, space::memory_space>;
  host_array const weights("weights", static_cast<std::size_t>(length));
  host_array const gradient("gradient", static_cast<std::size_t>(length));
  gradient(0) = 2;
  gradient(1) = 1;

  using algorithm = oktopk::ok_topk<space, oktopk::self_communicator>;
  algorithm allreduce(space(), oktopk::self_communicator(), {.length = length, .k = 1});
  oktopk::sgd<algorithm> optimizer(space(), allreduce, {.learning_rate = 0.5});
  optimizer.step(weights, gradient);
  for (auto const& [text, entries] : {std::pair("topk_a", 1), std::pair("ring", 10)}) { // of two families
    auto by_name = oktopk::make_allreduce(space(), oktopk::self_communicator(), text, {.length = length, .k = 1});
    if (by_name(gradient).indices().extent_int(0) != entries) {
      return 0;
    }
  }
  space().fence();
  return weights(0);
}
