// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "torch/torch_first.hpp"

#include "support/catch.hpp"
#include "support/caught.hpp"

#include <ATen/Functions.h>

using namespace oktopk_tests;
using oktopk::fault;

TEST_CASE("a view of a tensor shares its memory, in the order in which elements lie") {
  at::Tensor const tensor = at::arange(6, at::kFloat).reshape({2, 3});
  auto const view = oktopk::torch_view<float>(tensor);
  static_assert(std::is_same_v<decltype(view)::memory_space, Kokkos::HostSpace>);
  REQUIRE(view.extent(0) == 6);
  CHECK(view.data() == tensor.data_ptr<float>());
  CHECK(view(4) == 4);
  view(4) = 7;
  CHECK(tensor[1][1].item<float>() == 7);
  CHECK(oktopk::torch_view<float const>(tensor)(4) == 7);
  CHECK(oktopk::torch_view<float>(at::empty({0}, at::kFloat)).extent(0) == 0);
  CHECK(oktopk::torch_view<std::int64_t>(at::full({2}, 3, at::kLong))(1) == 3);
}

TEST_CASE("a tensor of a view shares its memory, and keeps it") {
  at::Tensor tensor;
  {
    Kokkos::View<double*, Kokkos::HostSpace> const view("view", 5);
    view(3) = 2.5;
    tensor = oktopk::torch_tensor(view);
    CHECK(tensor.data_ptr() == static_cast<void*>(view.data()));
    CHECK(view.use_count() > 1);
  }
  CHECK(tensor.scalar_type() == at::kDouble);
  CHECK(tensor.numel() == 5);
  CHECK(tensor[3].item<double>() == 2.5);
  CHECK(tensor.sum().item<double>() == 2.5);
}

TEST_CASE("a tensor of another type, another device or with strides is refused by name") {
  outcome const type = outcome_of([] { oktopk::torch_view<float>(at::zeros({3}, at::kDouble)); });
  CHECK(type.code == fault::option_out_of_range);
  CHECK(type.says("torch_view: the tensor holds elements of type Double, expected Float"));
  outcome const strided = outcome_of([] { oktopk::torch_view<float>(at::zeros({3, 4}, at::kFloat).t()); });
  CHECK(strided.code == fault::not_contiguous);
  CHECK(outcome_of([] { oktopk::torch_view<float>(at::Tensor()); }).says("is not defined"));
  outcome const device =
      outcome_of([] { oktopk::torch_view<float>(at::empty({3}, at::TensorOptions().device(at::kMeta))); });
  CHECK(device.code == fault::option_out_of_range);
  CHECK(device.says("lies on META, expected CPU"));
  Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::HostSpace> const matrix("matrix", 3, 4);
  outcome const column = outcome_of([&] { oktopk::torch_tensor(Kokkos::subview(matrix, Kokkos::ALL, 1)); });
  CHECK(column.code == fault::not_contiguous);
}
