// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dense/suite.hpp"

#include <oktopk/codec/block_float.hpp>
#include <oktopk/dense/coded_wire.hpp>
#include <oktopk/dense/local_buffers.hpp>
#include <oktopk/dense/ring.hpp>

using namespace oktopk_tests;
using namespace oktopk_tests::dense;

namespace {

using ring = oktopk::ring_chunked<execution, counting, float>;

struct one_vector {
  template <class Comm, class Value>
  using algorithm = oktopk::ring_chunked<execution, Comm, Value>;
};

// Rank r has r % 3 + 1 vectors.
void check_buffers(int ranks, std::int64_t count, reduction op) {
  CAPTURE(ranks, op);
  int vectors = 0;
  std::vector<int> first;
  for (int rank = 0; rank < ranks; ++rank) {
    first.push_back(vectors);
    vectors += rank % 3 + 1;
  }
  auto const inputs = whole_inputs<float>(vectors, count);
  auto const expected = reduced(inputs, op);
  auto const alone = run<one_vector>(std::vector<std::vector<float>>(first.size(), expected), op); // two calls
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator inner) {
    counting comm(inner);
    execution const exec;
    auto const rank = static_cast<std::size_t>(inner.rank());
    std::vector<Kokkos::View<float*, memory>> views;
    std::vector<float*> buffers;
    for (std::size_t i = 0; i <= rank % 3; ++i) {
      views.push_back(to_view(inputs[static_cast<std::size_t>(first[rank]) + i]));
      buffers.push_back(views.back().data());
    }
    oktopk::local_buffers<execution, counting, float, ring> reduce;
    reduce.run(exec, comm, buffers, nullptr, count, op);
    for (auto const& view : views) {
      CHECK(to_vector(view) == expected);
    }
    std::int64_t const sent = comm.total().bytes_sent - comm.of_phase(oktopk::phase::control).bytes_sent;
    CHECK(2 * sent == alone.traffic[rank].bytes_sent); // more vectors take no more bytes
  });
}

} // namespace

TEST_CASE("local_buffers reduces every vector of every rank, in the bytes of one vector a rank") {
  for (int const ranks : rank_counts) {
    for (reduction const op : operations) {
      check_buffers(ranks, 90, op);
    }
  }
}

TEST_CASE("local_buffers without a vector on one rank is an error on every rank") {
  auto const all = outcomes_of(3, [](oktopk::in_process_communicator inner) {
    counting comm(inner);
    execution const exec;
    auto const values = to_view(std::vector<float>(10, 1.0F));
    float* const one = values.data();
    oktopk::local_buffers<execution, counting, float, ring> reduce;
    reduce.run(exec, comm, std::span<float* const>(&one, inner.rank() == 1 ? 0 : 1), nullptr, 10);
  });
  CHECK(unlike(all, oktopk::fault::option_out_of_range, "a rank brought no vectors") == "");
}

TEST_CASE("local_buffers passes on the options of its allreduce") {
  using coded =
      oktopk::ring_chunked<execution, oktopk::in_process_communicator, float, oktopk::coded_wire<oktopk::block_float>>;
  std::vector<float> const input{1, 1 / 3.0F, 1000, -7};
  oktopk::in_process::run(2, [&](oktopk::in_process_communicator comm) {
    execution const exec;
    auto const a = to_view(input);
    auto const b = to_view(input);
    auto const lost = to_view(std::vector<float>(4, 77.0F));
    std::vector<float*> const buffers{a.data(), b.data()};
    oktopk::local_buffers<execution, oktopk::in_process_communicator, float, coded> reduce({.cutoff_bytes = 0});
    reduce.run(exec, comm, buffers, lost.data(), 4);
    CHECK(to_vector(a) == to_vector(b));
    CHECK(to_vector(a)[1] != 4 / 3.0F); // a step is over a third
    CHECK(to_vector(lost)[1] != 0);
  });
}
