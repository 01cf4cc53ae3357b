// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The parts together, as docs/torch.md shows them.

#include "torch/ranks.hpp"

#include <oktopk/allreduce.hpp>
#include <oktopk/error_feedback.hpp>

#include <ATen/Functions.h>

using namespace oktopk_tests;

TEST_CASE("a tensor of gradients becomes the average of the largest sums, and the rest is kept") {
  on_all_ranks([] {
    using space = Kokkos::DefaultHostExecutionSpace;
    auto const group = new_group();
    at::Tensor const gradient = at::full({200}, 0.5, at::kFloat);
    gradient[17] = 10 + world_rank();
    gradient[150] = -20 - world_rank();

    oktopk::process_group_communicator comm(group);
    oktopk::ok_topk allreduce(space(), comm, {.length = gradient.numel(), .density = 0.01});
    oktopk::error_feedback feedback(allreduce);
    auto const view = oktopk::torch_view<float>(gradient);
    feedback.average(feedback(view), view);

    float const mean_rank = 0.5F * static_cast<float>(world_size() - 1);
    CHECK(gradient[17].item<float>() == 10 + mean_rank);
    CHECK(gradient[150].item<float>() == -20 - mean_rank);
    CHECK(gradient.count_nonzero().item<std::int64_t>() == 2);
    CHECK(feedback.residual()(17) == 0);
    CHECK(feedback.residual()(18) == 0.5F);
  });
}
