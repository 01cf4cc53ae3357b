// expect: satisfaction of 'cancels<|does not satisfy 'cancels'
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A communicator that ends messages with an exception: the compiler must name the part that is missing.

#include <oktopk/comm/self.hpp>

#include <span>

struct throwing : oktopk::self_communicator {
  void cancel(std::span<request>) {}
};

template <oktopk::communicator C>
void needs_a_communicator(C const&) {
}

void use() {
  needs_a_communicator(throwing{});
}
