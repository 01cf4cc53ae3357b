// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The names and options of all algorithms; compiles none.

#include <oktopk/catalogue/make.hpp>

namespace oktopk {

template std::vector<detail::listed_allreduce> list_allreduces<void>();
template std::string catalogue_text<void>();

} // namespace oktopk
