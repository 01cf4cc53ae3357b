// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/counted.hpp>
#include <oktopk/mpi.hpp>

namespace fashion {

using communicator = oktopk::counted<oktopk::mpi_communicator>;

} // namespace fashion
