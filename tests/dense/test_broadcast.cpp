// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dense/suite.hpp"

#include <oktopk/dense/broadcast.hpp>

using namespace oktopk_tests;
using namespace oktopk_tests::dense;

namespace {

template <class Comm>
void check_broadcast(int ranks, std::int64_t count) {
  CAPTURE(ranks, count);
  auto const inputs = rough_inputs<double>(ranks, count);
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator inner) {
    Comm comm(inner);
    execution const exec;
    oktopk::detail::broadcast_one_to_all<execution, Comm, double> broadcast;
    for (int const root : {0, ranks - 1}) {
      auto const values = to_view(inputs[static_cast<std::size_t>(inner.rank())]);
      broadcast.run(exec, comm, values.data(), count, root);
      CHECK(to_vector(values) == inputs[static_cast<std::size_t>(root)]);
      if constexpr (requires { comm.total(); }) {
        std::int64_t const messages = inner.rank() == root && count > 0 ? ranks - 1 : 0;
        CHECK(comm.total().messages_sent == messages);
        CHECK(comm.total().bytes_sent == 8 * count * messages);
        comm.reset();
      }
    }
  });
}

} // namespace

TEST_CASE("broadcast_one_to_all: the root's values on every rank, in P-1 messages from the root") {
  using far = unreachable<oktopk::in_process_communicator>;
  for (int const ranks : rank_counts) {
    for (std::int64_t const count : {0, 1, 100}) {
      check_broadcast<counting>(ranks, count);
      check_broadcast<far>(ranks, count);
    }
  }
}
