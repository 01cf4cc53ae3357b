// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The whole suite over a transport that is not MPI's; see support/foreign_transport.hpp. The results have the same bits
// as over one that tells sizes and reaches all memory.

#include "algorithm/transport_suite.hpp"
#include "support/foreign_transport.hpp"

#include <oktopk/algorithm/dense_family.hpp>
#include <oktopk/allreduce.hpp>

using namespace oktopk_tests;

namespace {

using foreign = oktopk::counted<foreign_communicator>;

static_assert(oktopk::control_communicator<control_archetype> && !oktopk::bulk_communicator<control_archetype>);
static_assert(oktopk::bulk_communicator<bulk_archetype> && !oktopk::control_communicator<bulk_archetype>);
static_assert(oktopk::communicator<foreign_communicator> && oktopk::communicator<foreign>);

template <class Comm>
using ring = oktopk::dense_ring<execution, Comm>;
template <class Comm>
using ring_chunked = oktopk::dense_ring_chunked<execution, Comm>;
template <class Comm>
using halving_doubling = oktopk::dense_halving_doubling<execution, Comm>;
template <class Comm>
using recursive_doubling = oktopk::dense_recursive_doubling<execution, Comm>;
template <class Comm>
using rabenseifner = oktopk::dense_rabenseifner<execution, Comm>;

} // namespace

TEST_CASE("every algorithm passes its suite over a transport that moves bulk data of kernels alone") {
  check_sparse_algorithms_over<foreign>();
}

TEST_CASE("the textbook allreduces keep the invariants over such a transport") {
  SECTION("ring") {
    check_invariants<transport_subject<ring, foreign>>();
  }
  SECTION("ring_chunked") {
    check_invariants<transport_subject<ring_chunked, foreign>>();
  }
  SECTION("halving_doubling") {
    check_invariants<transport_subject<halving_doubling, foreign>>();
  }
  SECTION("recursive_doubling") {
    check_invariants<transport_subject<recursive_doubling, foreign>>();
  }
  SECTION("rabenseifner") {
    check_invariants<transport_subject<rabenseifner, foreign>>();
  }
}
