// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The concepts `dense_allreduce`, `dense_wire` and `codec`: what they ask for is enough, and each part of it is asked
// for.

#include "algorithm/suite.hpp"
#include "archetypes/suite.hpp"
#include "fuzz/subject_of.hpp"

#include <oktopk/algorithm/dense_family.hpp>

using namespace oktopk_tests;
using ranks_type = oktopk::any_communicator;

namespace {

// Rank 0 gathers and sums, and the others hear of it. Everybody loses a quarter on the way.
class archetype_reduce : public oktopk::dense_reduce_base {
public:
  static constexpr bool lossless = false;
  static char const* name() { return "archetype"; }
  static double bound_words(std::int64_t count, int) { return 3.0 * static_cast<double>(count); }
  static double expected_messages(std::int64_t, int ranks) { return ranks; }

  void run(host_execution const& exec, ranks_type& comm, float* values, float* lost, std::int64_t count) {
    exec.fence();
    for (std::int64_t i = 0; i < count; ++i) {
      if (lost != nullptr) {
        lost[i] = values[i] * 0.25F;
      }
      values[i] *= 0.75F;
    }
    comm.allreduce(std::span<float>(values, static_cast<std::size_t>(count)), oktopk::reduction::sum,
                   oktopk::phase::reduce);
  }
};

template <class D>
inline constexpr bool is_dense = oktopk::dense_allreduce<D, host_execution, ranks_type, float>;

static_assert(is_dense<archetype_reduce>);

// One defect each.
struct reduce_without_default : archetype_reduce {
  explicit reduce_without_default(int);
};
template <class T>
inline constexpr bool no_dense = !is_dense<T>;
DEFECT(no_dense, reduce_without_run, archetype_reduce, void run() = delete);
DEFECT(no_dense, reduce_that_answers, archetype_reduce,
       bool run(host_execution const&, ranks_type&, float*, float*, std::int64_t));
DEFECT(no_dense, reduce_of_doubles, archetype_reduce,
       void run(host_execution const&, ranks_type&, double*, double*, std::int64_t));
DEFECT(no_dense, reduce_without_name, archetype_reduce, void name() = delete);
DEFECT(no_dense, reduce_without_lossless, archetype_reduce, void lossless());
DEFECT(no_dense, reduce_without_bound, archetype_reduce, void bound_words() = delete);
DEFECT(no_dense, reduce_with_narrow_bound, archetype_reduce, static float bound_words(std::int64_t, int));
DEFECT(no_dense, reduce_without_messages, archetype_reduce, void expected_messages() = delete);
DEFECT(no_dense, reduce_that_sends_whole_messages, archetype_reduce, static int sent_messages(std::int64_t, int));
DEFECT(no_dense, reduce_that_may_differ_somehow, archetype_reduce, static int ranks_may_differ());
DEFECT(no_dense, reduce_whose_losses_overflow, archetype_reduce, static bool losses_may_overflow());
DEFECT(no_dense, reduce_that_may_start_messages, archetype_reduce, void starts_no_messages());
struct reduce_without_base : private archetype_reduce {
  using archetype_reduce::bound_words, archetype_reduce::expected_messages, archetype_reduce::lossless,
      archetype_reduce::losses_may_overflow, archetype_reduce::name, archetype_reduce::options,
      archetype_reduce::problem, archetype_reduce::ranks_may_differ, archetype_reduce::run,
      archetype_reduce::sent_messages, archetype_reduce::starts_no_messages;
};
static_assert(!is_dense<reduce_without_default> && !is_dense<reduce_without_base>);

// Whole numbers from -127 to 127, a byte each.
struct archetype_codec : oktopk::codec_base {
  static char const* name() { return "archetype"; }
  static constexpr bool lossless = false;
  static constexpr int block_size = 1;

  template <class Value>
  static double error_bound(double largest) {
    return std::fmax(0.5, largest - 127);
  }

  template <class Value>
  static std::int64_t encoded_bytes(std::int64_t count) {
    return count;
  }
  static void encode(host_execution const& exec, float const* values, std::int64_t count, std::byte* out, float* lost) {
    exec.fence();
    for (std::int64_t i = 0; i < count; ++i) {
      auto const coded = static_cast<std::int8_t>(std::fmin(std::fmax(std::rint(values[i]), -127), 127));
      out[i] = static_cast<std::byte>(coded);
      if (lost != nullptr) {
        lost[i] = values[i] - static_cast<float>(coded);
      }
    }
  }
  static void decode(host_execution const&, std::byte const* in, std::int64_t count, float* values) {
    for (std::int64_t i = 0; i < count; ++i) {
      values[i] = static_cast<std::int8_t>(in[i]);
    }
  }
  template <class Operation>
  static void decode_and_reduce(host_execution const&, Operation, std::byte const* in, std::int64_t count,
                                float* values) {
    for (std::int64_t i = 0; i < count; ++i) {
      values[i] = Operation::of(values[i], static_cast<float>(static_cast<std::int8_t>(in[i])));
    }
  }
};

template <class C>
inline constexpr bool is_codec = oktopk::codec<C, float, host_execution>;

static_assert(is_codec<archetype_codec>);

// One defect each.
template <class T>
inline constexpr bool no_codec = !is_codec<T>;
DEFECT(no_codec, codec_without_name, archetype_codec, void name() = delete);
DEFECT(no_codec, codec_without_lossless, archetype_codec, void lossless());
DEFECT(no_codec, codec_without_size, archetype_codec, void encoded_bytes() = delete);
DEFECT(no_codec, codec_of_narrow_size, archetype_codec, template <class Value> static int encoded_bytes(std::int64_t));
DEFECT(no_codec, codec_without_encode, archetype_codec, void encode() = delete);
DEFECT(no_codec, codec_without_decode, archetype_codec, void decode() = delete);
DEFECT(no_codec, codec_that_cannot_reduce, archetype_codec, void decode_and_reduce() = delete);
DEFECT(no_codec, codec_without_block_size, archetype_codec, void block_size());
DEFECT(no_codec, codec_without_bound, archetype_codec, void error_bound() = delete);
DEFECT(no_codec, codec_that_answers, archetype_codec,
       static int decode(host_execution const&, std::byte const*, std::int64_t, float*));

DEFECT(no_codec, codec_that_may_be_stable, archetype_codec, void stable());
DEFECT(no_codec, codec_without_problem, archetype_codec, static int problem());
struct codec_without_base : private archetype_codec {
  using archetype_codec::block_size, archetype_codec::decode, archetype_codec::decode_and_reduce,
      archetype_codec::encode, archetype_codec::encoded_bytes, archetype_codec::error_bound, archetype_codec::lossless,
      archetype_codec::name, archetype_codec::options, archetype_codec::problem, archetype_codec::stable;
};
static_assert(!is_codec<codec_without_base>);

// A wire made of another: its codec's bytes, under a name of its own.
class archetype_wire {
public:
  static constexpr bool lossless = false;
  static constexpr bool is_plain = false;
  static constexpr std::int64_t block_size = 1;
  struct options {};

  template <class E, class Value>
  using bound_to = oktopk::detail::bound_coded_wire<E, Value, archetype_codec>;

  archetype_wire() = default;
  explicit archetype_wire(options const&) {}

  archetype_codec const& codec() const { return codec_; } // for `bound_to`, as the next
  static oktopk::detail::codec_level level() { return oktopk::detail::codec_level::collective; }

  static char const* describe() { return "archetype"; }
  static char const* problem() { return ""; }
  static std::string name_after(std::string const& algorithm) { return algorithm + " on an archetype"; }
  static bool codes(std::int64_t) { return true; }
  static bool ranks_may_differ(bool) { return false; }
  static char const* fault_of_coding_anew() { return ""; }
  static std::int64_t segment() { return 20; }

  template <class Value>
  static std::int64_t encoded_bytes(std::int64_t count) {
    return count;
  }
  template <class Value>
  static bool losses_may_overflow(int) {
    return false;
  }

private:
  archetype_codec codec_;
};

template <class W>
inline constexpr bool is_wire = oktopk::detail::dense_wire<W, host_execution, float>;

static_assert(is_wire<archetype_wire> && is_wire<oktopk::detail::plain_wire> &&
              is_wire<oktopk::coded_wire<archetype_codec>>);

// One defect each.
class wire_without_options : public archetype_wire {
public:
  using archetype_wire::archetype_wire;

private:
  using options = archetype_wire::options;
};
struct wire_not_made_from_options : archetype_wire {};
struct derived_wire : archetype_wire {
  using archetype_wire::archetype_wire;
};
template <class T>
inline constexpr bool no_wire = !is_wire<T>;
DEFECT(no_wire, wire_without_lossless, derived_wire, void lossless());
DEFECT(no_wire, wire_without_block_size, derived_wire, void block_size());
DEFECT(no_wire, wire_without_description, derived_wire, void describe() = delete);
DEFECT(no_wire, wire_without_name, derived_wire, void name_after() = delete);
DEFECT(no_wire, wire_without_size, derived_wire, void encoded_bytes() = delete);
DEFECT(no_wire, wire_of_narrow_segment, derived_wire, static int segment());
DEFECT(no_wire, wire_of_unknown_results, derived_wire, void ranks_may_differ() = delete);
DEFECT(no_wire, wire_without_fault, derived_wire, void fault_of_coding_anew() = delete);
DEFECT(no_wire, wire_that_codes_at_will, derived_wire, void codes() = delete);
class wire_without_buffers : public archetype_wire {
public:
  using archetype_wire::archetype_wire;

private:
  template <class E, class Value>
  using bound_to = archetype_wire::bound_to<E, Value>;
};
static_assert(is_wire<derived_wire> && !is_wire<wire_not_made_from_options>);
static_assert(!is_wire<wire_without_options>);
static_assert(!is_wire<wire_without_buffers>);

using coded_reduce = oktopk::rabenseifner<host_execution, ranks_type, float, oktopk::coded_wire<archetype_codec, 0>>;

/// `dense` with an allreduce keeps its promises.
template <class Reduce>
void check_sums() {
  using algorithm = oktopk::dense<host_execution, ranks_type, float, std::int32_t, Reduce>;
  auto const of = oktopk_fuzz::typed_subject<algorithm>(std::string(Reduce().name()));
  for (int const ranks : {1, 2, 5, 8}) {
    INFO(of.about.name << " on " << ranks << " ranks");
    shape const what{50, 50, 3};
    CHECK(run_fault(of, run(of, ranks, what, whole_numbers{1, 2}), what) == "");
  }
}

/// As does each algorithm that takes a wire.
template <class Wire>
void check_wire() {
  check_sums<oktopk::rabenseifner<host_execution, ranks_type, float, Wire>>();
  check_sums<oktopk::ring_chunked<host_execution, ranks_type, float, Wire>>();
  check_sums<oktopk::recursive_doubling<host_execution, ranks_type, float, Wire>>();
}

} // namespace

TEST_CASE("dense runs with an allreduce, and its family with a codec and a wire, that have what the concepts ask for") {
  check_sums<archetype_reduce>();
  check_wire<oktopk::coded_wire<archetype_codec, 0>>(); // which does not recode
  check_wire<archetype_wire>();
}

TEST_CASE("ranks that code values differently are told apart by name") {
  using in_bfloat16 = oktopk::rabenseifner<host_execution, ranks_type, float, oktopk::coded_wire<oktopk::bfloat16>>;
  CHECK(coded_reduce().name() != in_bfloat16().name());
}
