// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "options.hpp"
#include "types.hpp"

#include <oktopk/catalogue/any_allreduce.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/mpi.hpp>

#include <cstdint>

namespace fashion {

using communicator = oktopk::counted<oktopk::mpi_communicator>;
using allreduce = oktopk::any_allreduce<execution>;

/// Collective. Makes the algorithm that the options name, for gradients of that length.
allreduce make_allreduce(execution const& exec, communicator const& comm, options const& how, std::int64_t length);

} // namespace fashion
