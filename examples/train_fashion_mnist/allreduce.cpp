// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "allreduce.hpp"

#include <oktopk/catalogue/catalogue.hpp>
#ifdef FASHION_WITH_ZFP
#include <oktopk/catalogue/with_zfp.hpp>
#include <oktopk/comm/self.hpp>
#endif

namespace fashion {

allreduce make_allreduce(execution const& exec, communicator const& comm, options const& how, std::int64_t length) {
#ifdef FASHION_WITH_ZFP
  oktopk::add_zfp<execution, communicator>();
#endif
  return oktopk::make_allreduce(exec, comm, how.algorithm, {.length = length, .density = how.density});
}

std::string list_text() {
#ifdef FASHION_WITH_ZFP
  oktopk::add_zfp<Kokkos::DefaultHostExecutionSpace, oktopk::self_communicator>();
#endif
  return oktopk::catalogue_text();
}

} // namespace fashion
