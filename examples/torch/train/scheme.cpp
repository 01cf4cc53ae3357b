// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "scheme.hpp"

#include <oktopk/catalogue/catalogue.hpp>

namespace torch_training {

scheme make_scheme(communicator const& comm, std::string const& name, std::int64_t length, double density) {
  return oktopk::make_allreduce(execution(), comm, name, {.length = length, .k = {}, .density = density});
}

} // namespace torch_training
