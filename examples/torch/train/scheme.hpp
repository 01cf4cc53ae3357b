// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/catalogue/any_allreduce.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/mpi.hpp>

#include <cstdint>
#include <string>

namespace torch_training {

using execution = Kokkos::DefaultHostExecutionSpace;
using communicator = oktopk::counted<oktopk::mpi_communicator>;
using scheme = oktopk::any_allreduce<execution>;

/// Collective. The algorithm of that name, for gradients of that length.
scheme make_scheme(communicator const& comm, std::string const& name, std::int64_t length, double density);

} // namespace torch_training
