// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// One case after another must not compile, and the compiler must say why: see CMakeLists.txt.

#include <Kokkos_Core.hpp>

#ifdef CASE_without_mpi_h
// expect: error.*oktopk: <mpi.h> was not found; link oktopk::mpi
// The MPI adapter in a program that does not link the component: the compiler must name what to link.
#include <oktopk/mpi.hpp>
#endif

#ifdef CASE_view_layout_of_nvcc
// expect: kernels would read garbage behind a Kokkos::View. Take Kokkos 4.7.02
// What nvcc 13.0 and Kokkos 4.6.99 define: every header that knows a View must refuse them.
#undef KOKKOS_VERSION
#define KOKKOS_VERSION 40699
#undef KOKKOS_ENABLE_CUDA
#define KOKKOS_ENABLE_CUDA
#undef KOKKOS_ENABLE_IMPL_VIEW_LEGACY
#undef MDSPAN_IMPL_USE_ATTRIBUTE_NO_UNIQUE_ADDRESS
#define MDSPAN_IMPL_USE_ATTRIBUTE_NO_UNIQUE_ADDRESS 1
#undef __NVCC__
#define __NVCC__
#undef __CUDACC_VER_MAJOR__
#define __CUDACC_VER_MAJOR__ 13
#undef __CUDACC_VER_MINOR__
#define __CUDACC_VER_MINOR__ 0
#include <oktopk/core/kokkos_ext/concepts.hpp>
#endif

#include "support/policies.hpp"

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/comm/self.hpp>
#include <oktopk/exchange/radix.hpp>
#include <oktopk/format/packed.hpp>
#include <oktopk/sgd.hpp>
#include <oktopk/sparse/combiners.hpp>

using E = Kokkos::DefaultHostExecutionSpace;
using oktopk::balanced_allgatherv, oktopk::coo, oktopk::sampled, oktopk::exact, oktopk::rotated;
using oktopk_tests::policies_of;
using ranks = oktopk::self_communicator;

#ifdef CASE_accumulator_no_view
// expect: satisfaction of 'vector_or_accumulation<|does not satisfy 'vector_or_accumulation'
void use(oktopk::dense<E, ranks>& allreduce, std::vector<float> const& accumulator) {
  allreduce(accumulator);
}
#endif

#ifdef CASE_accumulator_of_doubles
// expect: satisfaction of 'same_value_type<|because 'same_value_type<Kokkos::View<double
void use(oktopk::ok_topk<E, ranks>& allreduce, Kokkos::View<double*, E::memory_space> accumulator) {
  allreduce(accumulator);
}
#endif

#ifdef CASE_integer_gradient
// expect: static assertion failed.*: oktopk: P::format is no sparse_format of one float or double
// Sums of sparse vectors may be of integers, gradients may not.
template class oktopk::ok_topk<E, ranks, policies_of<coo<int>>>;
#endif

#ifdef CASE_short_value
// expect: satisfaction of 'wire_value<|does not satisfy 'wire_value'
using halves = coo<short>;
#endif

#ifdef CASE_allreduce_without_state
// expect: satisfaction of 'saves_its_state<|does not satisfy 'saves_its_state'
struct stateless : oktopk::dense<E, ranks> {
  void restore() = delete;
};
using optimizer = oktopk::sgd<stateless>;
#endif

#ifdef CASE_cancel_may_throw
// expect: satisfaction of 'cancels<|does not satisfy 'cancels'
struct throwing : ranks {
  void cancel(std::span<request>) {}
};
static_assert(oktopk::communicator<throwing>);
#endif

#ifdef CASE_communicator_without_wait
// expect: satisfaction of 'waits<|does not satisfy 'waits'
struct impatient : ranks {
  void wait_all() = delete;
};
static_assert(oktopk::communicator<impatient>);
#endif

#ifdef CASE_communicator_without_base
// expect: satisfaction of 'derives_from_communicator_base<|does not satisfy 'derives_from_communicator_base'
struct stranger : private ranks {
  using ranks::request, ranks::rank, ranks::size, ranks::isend, ranks::irecv, ranks::wait_all, ranks::cancel;
};
static_assert(oktopk::control_communicator<stranger>);
#endif

#ifdef CASE_communicator_with_old_count
// expect: .as_const.untagged_objects..(' (is|would be) invalid|.*same_as|.* does not satisfy)
// A member that is hidden by one of another type: the compiler must name the member.
struct by_value : ranks {
  std::int64_t untagged_objects() const { return 0; }
};
static_assert(oktopk::communicator<by_value>);
#endif

#ifdef CASE_request_without_size
// expect: satisfaction of 'knows_what_arrived<|does not satisfy 'knows_what_arrived'
// A communicator that claims to tell sizes and whose requests do not say how much arrived.
struct forgetful : ranks {
  struct bulk_request {
    bool active() const;
  };
  template <class Space>
  void start(Space const&, std::span<oktopk::bulk_message const>, std::span<bulk_request>);
  void wait_all(std::span<request>);
  void wait_all(std::span<bulk_request>);
  void cancel(std::span<request>) noexcept;
  void cancel(std::span<bulk_request>) noexcept;
};
static_assert(oktopk::communicator<forgetful>);
#endif

#ifdef CASE_deduced_communicator
// expect: static assertion failed.*: oktopk: no communicator: it needs .int rank.. const
// A communicator whose rank() is not const, through deduction: the first error is about the communicator.
struct unsteady : ranks {
  int rank() { return 0; }
};
void use() {
  oktopk::ok_topk allreduce(E(), unsteady(), {.length = 10, .density = 0.1});
}
#endif

#ifdef CASE_codec_without_decode
// expect: satisfaction of 'codes_blocks_of<|does not satisfy 'codes_blocks_of'
struct one_way : oktopk::exact_values {
  void decode() = delete;
};
using format = oktopk::packed<float, std::int32_t, one_way>;
#endif

#ifdef CASE_format_with_unsigned_index
// expect: satisfaction of 'gradient_index<|does not satisfy 'gradient_index'
struct unsigned_coo : coo<float, std::int32_t> {
  using index_type = std::uint32_t;
};
static_assert(oktopk::sparse_format<unsigned_coo>);
#endif

#ifdef CASE_format_without_bound
// expect: satisfaction of 'bounds_its_size<|does not satisfy 'bounds_its_size'
struct boundless : coo<> {
  static std::int64_t max_encoded_bytes() = delete;
};
static_assert(oktopk::sparse_format<boundless>);
#endif

#ifdef CASE_selector_without_capacity
// expect: satisfaction of 'bounds_its_selection<|does not satisfy 'bounds_its_selection'
struct unlimited : exact {
  using exact::exact;
  std::int64_t capacity() const = delete;
};
static_assert(oktopk::selector<unlimited>);
#endif

#ifdef CASE_selector_without_sound_state
// expect: satisfaction of 'carries_state<|does not satisfy 'carries_state'
struct credulous : exact {
  using exact::exact;
  template <class>
  struct state {};
};
static_assert(oktopk::selector<credulous>);
#endif

#ifdef CASE_group_without_counts
// expect: required expression 'group.gather_counts.count.' is invalid|because 'group.gather_counts.count.' would be
struct secretive : oktopk::detail::one_rank {
  std::int64_t gather_counts() = delete;
};
static_assert(oktopk::selection_group<secretive>);
#endif

#ifdef CASE_schedule_without_source
// expect: 'how.source.number, number, number.' (is|would be) invalid
struct one_way : rotated {
  using rotated::rotated;
  static int source() = delete;
};
static_assert(oktopk::schedule<one_way>);
#endif

#ifdef CASE_format_for_policies
// expect: static assertion failed.*: oktopk: P::format is no sparse_format
// A format, as it was written once, in the place of the policies.
template class oktopk::ok_topk<E, ranks, coo<double>>;
#endif

#ifdef CASE_policies_in_wrong_places
// expect: static assertion failed.*: oktopk: the partitioner does not serve this communicator: P::partitioner
// A deliverer in the place of the partitioner: the first error must name the member of the policies.
struct swapped : oktopk::default_policies {
  using partitioner = oktopk::everything;
  using deliverer = sampled;
};
template class oktopk::ok_topk<E, ranks, swapped>;
#endif

#ifdef CASE_policies_of_a_number
// expect: static assertion failed.*: oktopk: P::local_selector is no selector
struct of_int : oktopk::default_policies {
  using local_selector = int;
};
template class oktopk::ok_topk<E, ranks, of_int>;
#endif

#ifdef CASE_combiner_without_fault
// expect: static assertion failed.*: oktopk: P::combiner is no combiner of gradients
// The mean of a sparse_sum, by which a sum that overflows would be a result.
struct means : oktopk::default_policies {
  template <class Value>
  using combiner = oktopk::mean_of<Value>;
};
template class oktopk::ok_topk<E, ranks, means>;
#endif

#ifdef CASE_mean_in_stages
// expect: static assertion failed.*: oktopk: P::combiner is no sum, so P takes
struct means : oktopk::default_policies {
  using schedule = oktopk::radix;
  template <class Value>
  using combiner = oktopk::mean_of<Value, oktopk::non_finite_fault>;
};
template class oktopk::ok_topk<E, ranks, means>;
#endif

#ifdef CASE_policies_without_schedule
// expect: static assertion failed.*: oktopk: P::schedule is no schedule
// The first error must say which member is missing.
struct incomplete {
  using format = coo<>;
  using local_selector = exact;
  using partitioner = sampled;
  using deliverer = oktopk::search_and_gather<exact>;
};
template class oktopk::ok_topk<E, ranks, incomplete>;
#endif

// Relations between a policy and a communicator are said in a sentence.

#ifdef CASE_gather_without_result
// expect: static assertion failed.*: oktopk: the gather does not serve this communicator
struct silent : balanced_allgatherv {
  using balanced_allgatherv::balanced_allgatherv;
  template <class Space, class Comm, class Format>
  struct step {
    explicit step(silent const&);
    template <class... Arguments>
    void run(Arguments&&...);
  };
};
template class oktopk::ok_topk<E, ranks, policies_of<coo<>, exact, exact, sampled, rotated, silent>>;
#endif

#ifdef CASE_global_selector_alone
// expect: static assertion failed.*: oktopk: the global selector does not select among the ranks
// A selector that serves one rank alone, in the place of the global one.
struct hermit : exact {
  using exact::exact;
  template <class Source>
  oktopk::selection<std::int32_t, float, E::memory_space>
  select(oktopk::selection_context<E, std::int32_t, float, oktopk::detail::one_rank> const&, Source const&,
         state<float>&) const;
};
template class oktopk::ok_topk<E, ranks, policies_of<coo<>, exact, hermit>>;
#endif

#ifdef CASE_partitioner_for_others
// expect: static assertion failed.*: oktopk: the partitioner does not serve this communicator
// A partitioner that asks for more than the communicator has.
struct for_trees : oktopk::uniform {
  using uniform::uniform;
  template <class Space, class Comm>
    requires requires(Comm& comm) { comm.parent(); }
  struct step {
    explicit step(for_trees const&);
    std::span<std::int64_t const> run(oktopk::call_context<Space, Comm>&,
                                      oktopk::array_ref<std::int32_t const, E::memory_space>);
  };
};
template class oktopk::ok_topk<E, ranks, policies_of<coo<>, exact, exact, for_trees>>;
#endif

// A share where a number of entries is meant is refused, not taken for 0.

#ifdef CASE_share_as_k
// expect: static assertion failed.*: oktopk: a number of elements is an integer; a share of the length is a density
void make(ranks comm) {
  oktopk::ok_topk allreduce(E(), comm, {.length = 1000, .k = 0.01});
}
#endif

#ifdef CASE_share_as_k_in_a_call
// expect: static assertion failed.*: oktopk: a number of elements is an integer; a share of the length is a density
void shrink(oktopk::ok_topk<E, ranks>& allreduce) {
  allreduce.set_k(0.01);
}
#endif

#ifdef CASE_share_as_k_by_assignment
// expect: static assertion failed.*: oktopk: a number of elements is an integer; a share of the length is a density
void choose(oktopk::ok_topk<E, ranks>::options& how) {
  how.k = 0.01F;
}
#endif
