// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The concept `sparse_format`: each part of it is asked for. tests/extending runs ok_topk with this model.

#include "archetypes/suite.hpp"
#include "extending/pairs.hpp"

using namespace oktopk_tests;

namespace {

using host_entries = oktopk::sparse_ref<std::int32_t, double, Kokkos::HostSpace>;

using archetype = pairs<double>;

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
DEFECT(only_nameless, value_is_character, archetype, using value_type = char);
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

template <class F>
inline constexpr bool only_of_its_own = oktopk::detail::names_its_types<F> && oktopk::detail::bounds_its_size<F> &&
                                        oktopk::detail::encodes_on<F, host_execution> &&
                                        !oktopk::detail::derives_from_format_base<F> && !oktopk::sparse_format<F>;
struct without_base : private archetype {
  using archetype::bytes_per_cut, archetype::decode, archetype::encode, archetype::exact_size,
      archetype::expected_bytes, archetype::index_type, archetype::is_dense, archetype::is_lossy, archetype::lossless,
      archetype::max_encoded_bytes, archetype::name, archetype::value_type;
};
static_assert(only_of_its_own<without_base>);
DEFECT(only_of_its_own, lossy_by_number, archetype, static int is_lossy());
DEFECT(only_of_its_own, expects_without_bound, archetype, static double expected_bytes(double, double));
DEFECT(only_of_its_own, dense_by_count_alone, archetype, static bool is_dense(std::int64_t));

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
