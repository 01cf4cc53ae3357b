// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "allreduce.hpp"

#include "programs/added_codecs.hpp"

namespace fashion {

allreduce make_allreduce(execution const& exec, communicator const& comm, options const& how, std::int64_t length) {
  return oktopk::make_allreduce(exec, comm, how.algorithm, {.length = length, .k = {}, .density = how.density},
                                oktopk_programs::added_codecs<execution>());
}

std::string list_text() {
  return oktopk::catalogue_text(oktopk_programs::added_codecs());
}

} // namespace fashion
