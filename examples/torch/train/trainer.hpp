// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "options.hpp"
#include "scheme.hpp"

namespace torch_training {

/// Trains as the options say, and writes rows. Collective.
void train(oktopk::mpi_communicator world, options const& how);

} // namespace torch_training
