// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "added_codecs.hpp"

#ifdef OKTOPK_PROGRAMS_WITH_ZFP
#include <oktopk/catalogue/with_zfp.hpp>
#endif

namespace oktopk_programs {

std::span<oktopk::catalogue::added_codec<> const> added_codecs_of_host() {
#ifdef OKTOPK_PROGRAMS_WITH_ZFP
  return oktopk::zfp_codec();
#else
  return {};
#endif
}

} // namespace oktopk_programs
