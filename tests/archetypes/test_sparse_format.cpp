// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The concept `sparse_format`: what it asks for is enough, and each part of it is asked for.

#include "archetypes/suite.hpp"
#include "support/policies.hpp"

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/select/exact.hpp>

#include <cstring>

using namespace oktopk_tests;

namespace {

using host_entries = oktopk::sparse_ref<std::int32_t, double, Kokkos::HostSpace>;

// No template anywhere, one execution space, a name that is no std::string: pairs of index and value.
struct archetype {
  using index_type = std::int32_t;
  using value_type = double;

  static char const* name() { return "archetype"; }
  static constexpr bool lossless = true;
  static constexpr bool exact_size = true;
  static constexpr int bytes_per_cut = 0;
  static std::int64_t max_encoded_bytes(std::int64_t count, oktopk::region) { return count * 12; }

  static std::int64_t encode(host_execution const& exec, host_entries entries, oktopk::region, std::byte* out) {
    exec.fence();
    for (std::int64_t i = 0; i < entries.size(); ++i) {
      std::memcpy(out + 12 * i, &entries.indices(i), 4);
      std::memcpy(out + 12 * i + 4, &entries.values(i), 8);
    }
    return entries.size() * 12;
  }

  static void decode(host_execution const& exec, std::byte const* in, std::int64_t, std::int64_t count, oktopk::region,
                     std::int32_t* indices, double* values) {
    exec.fence();
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(indices + i, in + 12 * i, 4);
      std::memcpy(values + i, in + 12 * i + 4, 8);
    }
  }
};

static_assert(oktopk::sparse_format<archetype>);

// One defect each, of one part each.
template <class F>
inline constexpr bool only_nameless =
    !oktopk::detail::names_its_types<F> && oktopk::detail::bounds_its_size<F> && !oktopk::sparse_format<F>;
template <class F>
inline constexpr bool only_boundless = oktopk::detail::names_its_types<F> && !oktopk::detail::bounds_its_size<F> &&
                                       oktopk::detail::encodes_on<F, host_execution> && !oktopk::sparse_format<F>;
template <class F>
inline constexpr bool only_uncoded = oktopk::detail::names_its_types<F> && oktopk::detail::bounds_its_size<F> &&
                                     !oktopk::detail::encodes_on<F, host_execution> && !oktopk::sparse_format<F>;

DEFECT(only_nameless, index_is_unsigned, archetype, using index_type = std::uint32_t);
DEFECT(only_nameless, index_is_floating, archetype, using index_type = float);
DEFECT(only_nameless, without_index, archetype, using index_type = void);
DEFECT(only_nameless, value_is_integer, archetype, using value_type = int);
DEFECT(only_nameless, without_name, archetype, void name() = delete);
DEFECT(only_nameless, name_is_number, archetype, static int name());

DEFECT(only_boundless, without_lossless, archetype, void lossless());
DEFECT(only_boundless, without_exact_size, archetype, void exact_size());
DEFECT(only_boundless, without_max_encoded_bytes, archetype, void max_encoded_bytes() = delete);
DEFECT(only_boundless, max_encoded_bytes_is_narrow, archetype,
       static int max_encoded_bytes(std::int64_t, oktopk::region));
DEFECT(only_boundless, max_encoded_bytes_changes_the_format, archetype,
       std::int64_t max_encoded_bytes(std::int64_t, oktopk::region));
DEFECT(only_boundless, without_bytes_per_cut, archetype, void bytes_per_cut());

DEFECT(only_uncoded, without_encode, archetype, void encode() = delete);
DEFECT(only_uncoded, encode_tells_no_size, archetype,
       static void encode(host_execution const&, host_entries, oktopk::region, std::byte*));
DEFECT(only_uncoded, encodes_other_values, archetype,
       static std::int64_t encode(host_execution const&, oktopk::sparse_ref<std::int32_t, float, Kokkos::HostSpace>,
                                  oktopk::region, std::byte*));
DEFECT(only_uncoded, without_decode, archetype, void decode() = delete);
DEFECT(only_uncoded, decode_wants_to_write, archetype,
       static void decode(host_execution const&, std::byte*, std::int64_t, std::int64_t, oktopk::region, std::int32_t*,
                          double*));
DEFECT(only_uncoded, decode_tells_too_much, archetype,
       static bool decode(host_execution const&, std::byte const*, std::int64_t, std::int64_t, oktopk::region,
                          std::int32_t*, double*));

} // namespace

TEST_CASE("ok_topk runs with a format that has what the concept asks for and nothing else") {
  constexpr std::int64_t length = 700;
  constexpr std::int64_t k = 30;
  using algorithm = oktopk::ok_topk<host_execution, oktopk::in_process_communicator,
                                    policies_of<archetype, oktopk::exact, oktopk::exact>>;
  for (int const ranks : {1, 3, 8}) {
    auto const expected = top_of_sums<double>(ranks, length, k);
    oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
      algorithm allreduce(host_execution(), comm, {.length = length, .k = k});
      CHECK((sums_in(allreduce(seeded_whole_numbers<double>(length, comm.rank()))) == expected));
    });
  }
}
