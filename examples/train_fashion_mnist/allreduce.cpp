// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "allreduce.hpp"

#include <oktopk/catalogue/catalogue.hpp>
#ifdef FASHION_WITH_ZFP
#include <oktopk/catalogue/with_zfp.hpp>
#endif

namespace fashion {
namespace {

#ifdef FASHION_WITH_ZFP
using extras = oktopk::with_zfp;
#else
using extras = oktopk::no_extras;
#endif

} // namespace

allreduce make_allreduce(execution const& exec, communicator const& comm, options const& how, std::int64_t length) {
  return oktopk::make_allreduce(exec, comm, how.algorithm, {.length = length, .density = how.density}, extras());
}

std::string list_text() {
  return oktopk::catalogue_text(extras());
}

} // namespace fashion
