// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/dense/broadcast.hpp>
#include <oktopk/torch/view.hpp>

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace oktopk::detail {

/// Copies a tensor of rank 0 to all ranks, as bits, whatever its type and device. Collective; size and type are the
/// same on all ranks. Broadcasts the bytes by way of an array of the same size on the execution space's device.
template <execution_space E, communicator Comm>
void copy_from_root(E const& exec, Comm& comm, at::Tensor const& tensor) {
  at::NoGradGuard const not_recorded;
  auto const bytes = static_cast<std::int64_t>(tensor.nbytes());
  std::int64_t const words = (bytes + 3) / 4;
  Kokkos::View<float*, typename E::memory_space> const room(std::string("oktopk::copy_from_root"),
                                                            static_cast<std::size_t>(words));
  at::Tensor const image = torch_tensor(room).view(at::kByte).narrow(0, 0, bytes);
  image.copy_(tensor.detach().contiguous().view(-1).view(at::kByte));
  broadcast_one_to_all<E, Comm, float>().run(exec, comm, room.data(), words, 0);
  tensor.detach().copy_(image.view(tensor.scalar_type()).view(tensor.sizes()));
}

} // namespace oktopk::detail
