// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "allreduce.hpp"

#include <oktopk/catalogue/catalogue.hpp>
#ifdef FASHION_WITH_ZFP
#include <oktopk/catalogue/with_zfp.hpp>
#endif

namespace fashion {

allreduce make_allreduce(execution const& exec, communicator const& comm, options const& how, std::int64_t length) {
  oktopk::gradient_size const size{.length = length, .k = {}, .density = how.density};
#ifdef FASHION_WITH_ZFP
  return oktopk::make_allreduce(exec, comm, how.algorithm, size, oktopk::zfp_codec<execution>());
#else
  return oktopk::make_allreduce(exec, comm, how.algorithm, size);
#endif
}

std::string list_text() {
#ifdef FASHION_WITH_ZFP
  return oktopk::catalogue_text(oktopk::zfp_codec());
#else
  return oktopk::catalogue_text();
#endif
}

} // namespace fashion
