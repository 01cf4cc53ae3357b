// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Compiled with headers that say another version than the library oktopk::catalogue: must not be linked with it.

#include <oktopk/catalogue/automatic.hpp>

int main() {
  using E = Kokkos::DefaultHostExecutionSpace;
  oktopk::gradient_size const size{.length = 1, .k = 1};
  auto const made = oktopk::make_allreduce(E(), oktopk::any_communicator(oktopk::self_communicator()), "dense", size);
  return made.length() == 1 && oktopk::catalogue::forecast_all<E, float, std::int32_t>(size, 1).empty() &&
                 oktopk::list_allreduces().empty() && oktopk::catalogue_text().empty()
             ? 0
             : 1;
}
