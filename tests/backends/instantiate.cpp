// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Everything of the library that launches kernels, for the default execution space: what compile.sh hands to compilers
// for devices. It is compiled and never run.

#include "support/policies.hpp"

#include <oktopk/allreduce.hpp>
#include <oktopk/catalogue/impl.hpp>
#include <oktopk/codec/block_float.hpp>
#include <oktopk/codec/elementwise.hpp>
#include <oktopk/core/workspace.hpp>
#include <oktopk/format/coo_or_dense.hpp>
#include <oktopk/format/packed.hpp>
#include <oktopk/format/values/fixed.hpp>
#include <oktopk/format/values/floats.hpp>
#include <oktopk/select/chunked.hpp>
#include <oktopk/select/gaussian.hpp>
#include <oktopk/sgd.hpp>
#include <oktopk/sparse_sum.hpp>
#ifdef OKTOPK_TESTS_WITH_MPI
#include <oktopk/mpi.hpp>
#endif

#include <cstdint>
#include <sstream>

namespace {

using space = Kokkos::DefaultExecutionSpace;
using memory = space::memory_space;
static_assert(oktopk::detail::is_device<space>, "the default execution space of this Kokkos is no device");

using in_process = oktopk::in_process_communicator;

template <class Value>
using vector = Kokkos::View<Value*, memory>;

/// Calls with an accumulator, with one in the making through `sgd`, and a checkpoint.
template <class Allreduce>
std::int64_t all_of(typename Allreduce::communicator_type comm) {
  using value = typename Allreduce::value_type;
  typename Allreduce::options how;
  how.length = 1000;
  Allreduce allreduce(space(), comm, how);
  vector<value> const weights("weights", 1000);
  Kokkos::View<value const*, memory> const gradient = weights;
  auto const& update = allreduce(gradient);
  oktopk::sgd<Allreduce> optimizer(space(), allreduce, {.learning_rate = 0.5});
  optimizer.step(weights, gradient);
  optimizer.before_allreduce([](auto) {});
  optimizer.step(weights, gradient);
  std::stringstream stream;
  oktopk::save(stream, optimizer.state());
  optimizer.restore(oktopk::load<decltype(optimizer.state())>(stream));
  return static_cast<std::int64_t>(update.indices().extent(0));
}

/// A sum of sparse vectors.
template <class Policies>
std::int64_t sum_of(in_process comm) {
  oktopk::sparse_sum<space, in_process, Policies> sum(space(), comm, {.length = 1000, .width = 2});
  using sum_type = decltype(sum);
  return sum(vector<typename sum_type::index_type>("indices", 3), vector<typename sum_type::value_type>("values", 6))
      .size();
}

struct in_stages : oktopk::sum_policies<Kokkos::complex<double>, std::int64_t> {
  using schedule = oktopk::radix;
};

} // namespace

// Declared before, for those who ask that of what others can see.
std::int64_t every_name(in_process comm);
std::int64_t by_type(in_process comm);

/// As a gradient in half precision.
struct narrow_value {
  unsigned short bits;
  KOKKOS_INLINE_FUNCTION explicit operator float() const { return static_cast<float>(bits); }
};

// Every algorithm with all policies, formats and codecs that the catalogue has, for floats and indices of 32 bits.
std::int64_t every_name(in_process comm) {
  auto allreduce = oktopk::make_allreduce(space(), comm, oktopk::catalogue_text(), {.length = 1000, .k = 10});
  oktopk::error_feedback feedback(allreduce);
  vector<float> const average("average", 1000);
  feedback.average(feedback(vector<narrow_value>("gradient", 1000)), average);
  return allreduce.k();
}

// What the catalogue has not: other types, formats of one codec, and sgd.
std::int64_t by_type(in_process comm) {
  using oktopk_tests::policies_of;
  using wide = oktopk::coo<double, std::int64_t>;
  using wide_packed = oktopk::packed<double, std::int64_t, oktopk::fixed_values<4>>;
  using narrow_packed = oktopk::packed<float, std::int32_t, oktopk::bfloat16_values>;
  using reused = policies_of<wide, oktopk::reused_threshold, oktopk::reused_threshold, oktopk::balanced>;
  using coded = oktopk::coded_wire<oktopk::block_float>;
  // Memory that kernels cannot reach, as messages are staged in where a device has no page-locked memory.
  oktopk::detail::buffer<float, Kokkos::HostSpace> on_host("host");
  on_host.reserve(space(), 10);
  return on_host.capacity() + all_of<oktopk::ok_topk<space, in_process>>(comm) +
         all_of<oktopk::ok_topk<space, in_process, policies_of<wide, oktopk::chunked>>>(comm) +
         all_of<oktopk::ok_topk<space, in_process, policies_of<wide, oktopk::gaussian>>>(comm) +
         all_of<oktopk::ok_topk<space, in_process, reused>>(comm) +
         all_of<oktopk::ok_topk<space, in_process, oktopk::with_format<oktopk::coo_or_dense<>>>>(comm) +
         all_of<oktopk::paper_ok_topk<space, in_process, oktopk::with_format<wide, oktopk::paper_policies>>>(comm) +
         all_of<oktopk::topk_a<space, in_process, oktopk::with_format<wide>>>(comm) +
         all_of<oktopk::topk_dsa<space, in_process, oktopk::with_format<narrow_packed>>>(comm) +
         all_of<oktopk::topk_dsa<space, in_process, oktopk::with_format<oktopk::coo_or_dense<double, std::int64_t>>>>(
             comm) +
         all_of<oktopk::gtopk<space, in_process, oktopk::with_format<wide>>>(comm) +
         all_of<oktopk::gtopk<space, in_process, oktopk::with_format<wide_packed>>>(comm) +
         all_of<oktopk::dense_bfloat16<space, in_process>>(comm) +
         all_of<oktopk::dense_rabenseifner<space, in_process, double, std::int64_t>>(comm) +
         all_of<oktopk::dense_ring_pipelined<space, in_process, double, std::int64_t>>(comm) +
         all_of<oktopk::dense_ring_chunked<space, in_process, double, std::int64_t, coded>>(comm) +
         all_of<oktopk::dense_recursive_doubling<space, in_process, float, std::int32_t, coded>>(comm) +
         sum_of<oktopk::sum_policies<>>(comm) + sum_of<oktopk::sum_policies<std::int64_t>>(comm) +
         sum_of<in_stages>(comm);
}

#ifdef OKTOPK_TESTS_WITH_MPI

std::int64_t over_mpi(oktopk::mpi_communicator comm);

std::int64_t over_mpi(oktopk::mpi_communicator comm) {
  using counted = oktopk::counted<oktopk::mpi_communicator>;
  return all_of<oktopk::ok_topk<space, counted>>(counted(comm)) +
         all_of<oktopk::dense<space, oktopk::mpi_communicator>>(comm) + (comm.can_access<memory>() ? 1 : 0);
}

#endif
