// expect: satisfaction of 'waits<|does not satisfy 'waits'
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A communicator that can send and receive but not wait: the compiler must name the part that is missing.

#include <oktopk/comm/self.hpp>

struct impatient : oktopk::self_communicator {
  void wait_all() = delete;
};

template <oktopk::communicator C>
void needs_a_communicator(C const&) {
}

void use() {
  needs_a_communicator(impatient{});
}
