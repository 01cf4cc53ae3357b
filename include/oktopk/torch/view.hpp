// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/accumulate.h>

#include <cstddef>

namespace oktopk {

namespace detail {

/// The device on which torch sees memory of Kokkos: torch calls AMD's devices "cuda", too.
template <class MemorySpace>
inline constexpr at::DeviceType torch_device = family_of<MemorySpace> == device_family::unknown ? at::kCPU : at::kCUDA;

template <class T>
inline constexpr at::ScalarType torch_type = c10::CppTypeToScalarType<std::remove_const_t<T>>::value;

} // namespace detail

template <class T, class MemorySpace = Kokkos::HostSpace>
using torch_view_type = Kokkos::View<T*, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// The elements of a tensor as a Kokkos view of rank 1, in the same memory.
///
/// The tensor may have any number of dimensions; its elements come in the order in which they lie. The view does not
/// keep the tensor alive, and autograd does not see what is written to it. Copies nothing. Throws `not_contiguous`
/// where the elements do not lie one after the other, and `option_out_of_range` where they are not of type `T` or lie
/// on another device than `MemorySpace`: that is the host, unless Kokkos is built for CUDA or HIP and the space is
/// theirs.
template <class T, class MemorySpace = Kokkos::HostSpace>
torch_view_type<T, MemorySpace> torch_view(at::Tensor const& tensor) {
  auto const refuse = [](fault what, std::string const& text) -> void {
    throw error(what, "torch_view: the tensor " + text);
  };
  if (!tensor.defined()) {
    refuse(fault::option_out_of_range, "is not defined");
  }
  if (tensor.scalar_type() != detail::torch_type<T>) {
    refuse(fault::option_out_of_range, std::string("holds elements of type ") + c10::toString(tensor.scalar_type()) +
                                           ", expected " + c10::toString(detail::torch_type<T>));
  }
  if (tensor.device().type() != detail::torch_device<MemorySpace>) {
    refuse(fault::option_out_of_range, "lies on " + c10::DeviceTypeName(tensor.device().type()) + ", expected " +
                                           c10::DeviceTypeName(detail::torch_device<MemorySpace>));
  }
  if (tensor.layout() != at::kStrided || !tensor.is_contiguous()) {
    refuse(fault::not_contiguous, "is not contiguous");
  }
  return torch_view_type<T, MemorySpace>(static_cast<T*>(tensor.data_ptr()), static_cast<std::size_t>(tensor.numel()));
}

/// A view of rank 1 as a tensor of these sizes, in the same memory, which the tensor keeps alive if the view does.
/// Copies nothing; for autograd it is a tensor of its own. Throws `not_contiguous` where the view has a stride, and
/// `length_mismatch` where the sizes are those of another number of elements.
template <detail::kokkos_vector View>
  requires(!std::is_const_v<typename View::value_type>)
at::Tensor torch_tensor(View const& view, at::IntArrayRef sizes) {
  if (!view.span_is_contiguous()) {
    throw error(fault::not_contiguous, "torch_tensor: the view is not contiguous");
  }
  if (c10::multiply_integers(sizes) != static_cast<std::int64_t>(view.extent(0))) {
    throw error(fault::length_mismatch, "torch_tensor: the view has " + std::to_string(view.extent(0)) +
                                            " elements, and the sizes make " +
                                            std::to_string(c10::multiply_integers(sizes)));
  }
  using value = typename View::value_type;
  return at::from_blob(
      view.data(), sizes, [view](void*) {},
      at::TensorOptions().dtype(detail::torch_type<value>).device(detail::torch_device<typename View::memory_space>));
}

/// The same as a tensor of one dimension.
template <detail::kokkos_vector View>
  requires(!std::is_const_v<typename View::value_type>)
at::Tensor torch_tensor(View const& view) {
  return torch_tensor(view, {static_cast<std::int64_t>(view.extent(0))});
}

} // namespace oktopk
