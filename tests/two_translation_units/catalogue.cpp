// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The file of a header-only program that has the catalogue. Of the families it compiles one, which shows that the headers
// alone do; the others are the same template, and are linked as the library has compiled them.

#include <oktopk/catalogue/make.hpp>

namespace oktopk::catalogue {

using space = Kokkos::DefaultHostExecutionSpace;
using making_here = making<space, float, std::int32_t>;
extern template void visit_family<family::ok_topk>(detail::option_reader&, gradient_size const&, making_here&);
extern template void visit_family<family::top_k>(detail::option_reader&, gradient_size const&, making_here&);
extern template void visit_family<family::coded>(detail::option_reader&, gradient_size const&, making_here&);
extern template void visit_family<family::automatic>(detail::option_reader&, gradient_size const&, making_here&);

} // namespace oktopk::catalogue

#include <oktopk/catalogue/impl.hpp>
