// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The concepts `dense_allreduce` and `codec`: what they ask for is enough, and each part of it is asked for.

#include "support/catch.hpp"
#include "support/seeded.hpp"

#include <oktopk/algorithm/dense_rabenseifner.hpp>
#include <oktopk/comm/in_process.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

using namespace oktopk_tests;
using ranks_type = oktopk::in_process_communicator;

namespace {

// Rank 0 gathers and sums, and the others hear of it. Everybody loses a quarter on the way.
class archetype_reduce {
public:
  static constexpr bool lossless = false;
  static char const* name() { return "archetype"; }
  static double bound_words(std::int64_t count, int) { return 3.0 * static_cast<double>(count); }

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
struct reduce_without_run : archetype_reduce {
  void run() = delete;
};
struct reduce_that_answers : archetype_reduce {
  bool run(host_execution const&, ranks_type&, float*, float*, std::int64_t);
};
struct reduce_of_doubles : archetype_reduce {
  void run(host_execution const&, ranks_type&, double*, double*, std::int64_t);
};
struct reduce_without_name : archetype_reduce {
  void name() = delete;
};
struct reduce_without_lossless : archetype_reduce {
  void lossless();
};
struct reduce_without_bound : archetype_reduce {
  void bound_words() = delete;
};
struct reduce_with_narrow_bound : archetype_reduce {
  static float bound_words(std::int64_t, int);
};
static_assert(!is_dense<reduce_without_default> && !is_dense<reduce_without_run> && !is_dense<reduce_that_answers>);
static_assert(!is_dense<reduce_of_doubles> && !is_dense<reduce_without_name> && !is_dense<reduce_without_lossless>);
static_assert(!is_dense<reduce_without_bound> && !is_dense<reduce_with_narrow_bound>);

// Whole numbers from -127 to 127, a byte each.
struct archetype_codec {
  static char const* name() { return "archetype"; }
  static constexpr bool lossless = false;

  template <class Value>
  static std::int64_t encoded_bytes(std::int64_t count) {
    return count;
  }
  static void encode(host_execution const& exec, float const* values, std::int64_t count, std::byte* out) {
    exec.fence();
    for (std::int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<std::byte>(static_cast<std::int8_t>(std::fmin(std::fmax(std::rint(values[i]), -127), 127)));
    }
  }
  static void decode(host_execution const&, std::byte const* in, std::int64_t count, float* values) {
    for (std::int64_t i = 0; i < count; ++i) {
      values[i] = static_cast<std::int8_t>(in[i]);
    }
  }
  static void decode_and_add(host_execution const&, std::byte const* in, std::int64_t count, float* values) {
    for (std::int64_t i = 0; i < count; ++i) {
      values[i] += static_cast<std::int8_t>(in[i]);
    }
  }
};

template <class C>
inline constexpr bool is_codec = oktopk::codec<C, float, host_execution>;

static_assert(is_codec<archetype_codec>);

// One defect each.
struct codec_without_name : archetype_codec {
  void name() = delete;
};
struct codec_without_lossless : archetype_codec {
  void lossless();
};
struct codec_without_size : archetype_codec {
  void encoded_bytes() = delete;
};
struct codec_of_narrow_size : archetype_codec {
  template <class Value>
  static int encoded_bytes(std::int64_t);
};
struct codec_without_encode : archetype_codec {
  void encode() = delete;
};
struct codec_without_decode : archetype_codec {
  void decode() = delete;
};
struct codec_that_cannot_add : archetype_codec {
  void decode_and_add() = delete;
};
struct codec_that_answers : archetype_codec {
  static int decode(host_execution const&, std::byte const*, std::int64_t, float*);
};
static_assert(!is_codec<codec_without_name> && !is_codec<codec_without_lossless> && !is_codec<codec_without_size>);
static_assert(!is_codec<codec_of_narrow_size> && !is_codec<codec_without_encode> && !is_codec<codec_without_decode>);
static_assert(!is_codec<codec_that_cannot_add> && !is_codec<codec_that_answers>);

using coded_reduce = oktopk::rabenseifner<host_execution, ranks_type, float, archetype_codec>;
using coded = oktopk::dense<host_execution, ranks_type, float, std::int32_t, coded_reduce>;
using plain = oktopk::dense<host_execution, ranks_type, float, std::int32_t, archetype_reduce>;

constexpr std::int64_t length = 50;

// Multiples of 1/8, so that all sums and differences are exact.
vector_of<float> eighths(int rank) {
  vector_of<float> const made("accumulator", length);
  seeded draw(static_cast<std::uint64_t>(rank) + 3);
  for (std::size_t i = 0; i < made.extent(0); ++i) {
    made(i) = static_cast<float>(draw.below(161) - 80) / 8;
  }
  return made;
}

// The update, and what all ranks put in less what all ranks got back.
template <class Algorithm>
void nothing_is_lost(int ranks) {
  std::vector<float> balance(length, 0);
  std::vector<float> sums(length, 0);
  double returned = 0;
  oktopk::in_process::run(ranks, [&](ranks_type comm) {
    Algorithm allreduce(host_execution(), comm, {.length = length});
    auto const accumulator = eighths(comm.rank());
    auto const& update = allreduce(accumulator);
    for (std::size_t i = 0; i < balance.size(); ++i) {
      balance[i] += accumulator(i);
    }
    for (std::int64_t i = 0; i < update.returned().size(); ++i) {
      balance[static_cast<std::size_t>(update.returned().indices(i))] -= update.returned().values(i);
      returned += std::fabs(static_cast<double>(update.returned().values(i)));
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] = update.values()(i);
    }
  });
  CHECK(balance == sums);
  CHECK(returned > 0);
}

} // namespace

TEST_CASE("dense runs with an allreduce that has what the concept asks for and nothing else") {
  for (int const ranks : {1, 2, 5}) {
    nothing_is_lost<plain>(ranks);
  }
}

TEST_CASE("rabenseifner runs with a codec that has what the concept asks for and nothing else") {
  for (int const ranks : {1, 2, 5, 8}) {
    nothing_is_lost<coded>(ranks);
  }
}

TEST_CASE("ranks that code values differently are told apart by name") {
  using in_bfloat16 = oktopk::rabenseifner<host_execution, ranks_type, float, oktopk::bfloat16>;
  CHECK(std::string(coded_reduce::name()) != std::string(in_bfloat16::name()));
}
