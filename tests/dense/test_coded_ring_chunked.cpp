// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dense/coded_suite.hpp"

#include <oktopk/dense/ring.hpp>

#include <stdexcept>

using namespace oktopk_tests;
using namespace oktopk_tests::dense;

namespace {

constexpr std::int64_t segment = 50; // of no block's length a divisor

template <class Codec, codec_level Level>
struct subject {
  static constexpr bool lossless = Codec::lossless;
  static Codec codec() { return {}; }

  template <class Comm, class Value>
  struct algorithm : oktopk::ring_chunked<execution, Comm, Value, oktopk::coded_wire<Codec>> {
    algorithm()
        : oktopk::ring_chunked<execution, Comm, Value, oktopk::coded_wire<Codec>>(
              {.codec = {}, .level = Level, .segment = segment, .cutoff_bytes = 0}) {}
  };

  template <class Value>
  static std::pair<std::int64_t, std::int64_t> expected_bytes(int rank, int ranks, std::int64_t count) {
    std::int64_t const block = (count + ranks - 1) / ranks;
    std::int64_t const pieces = std::max<std::int64_t>(2, (block + segment - 1) / segment);
    std::int64_t const block_size = Codec::block_size;
    std::int64_t const blocks = (count + block_size - 1) / block_size;
    auto const boundary = [&](std::int64_t i) { return std::min(count, blocks * i / (ranks * pieces) * block_size); };
    std::pair<std::int64_t, std::int64_t> all{0, 0};
    for (int step = 0; step < 2 * (ranks - 1); ++step) {
      std::int64_t const which = (rank + 2 * ranks - step) % ranks;
      for (std::int64_t j = which * pieces; j < (which + 1) * pieces; ++j) {
        std::int64_t const width = boundary(j + 1) - boundary(j);
        all.first += width > 0 ? 1 : 0;
        all.second += codec().template encoded_bytes<Value>(width);
      }
    }
    return all;
  }
};

struct raw {
  template <class Comm, class Value>
  using algorithm = oktopk::ring_chunked<execution, Comm, Value>;
};

/// The same from a vector of its own, which must stay as it was, to values that hold garbage before.
template <class Subject>
struct out_of_place {
  template <class Comm, class Value>
  struct algorithm : Subject::template algorithm<Comm, Value> {
    void run(execution const& exec, Comm& comm, Value* values, Value* lost, std::int64_t count, reduction op) {
      auto const size = static_cast<std::size_t>(count);
      oktopk::array_ref<Value, execution::memory_space> const given(values, size);
      Kokkos::View<Value*, execution::memory_space> const own("own", size);
      Kokkos::deep_copy(own, given);
      Kokkos::deep_copy(given, Value(1e9));
      auto const before = to_vector(own);
      this->run_from(exec, comm, own.data(), values, lost, count, op);
      exec.fence();
      if (to_vector(own) != before) {
        throw std::runtime_error("what went in has changed");
      }
    }
  };
};

template <class Codec>
using collective = subject<Codec, codec_level::collective>;
template <class Codec>
using message = subject<Codec, codec_level::message>;

} // namespace

TEST_CASE("ring_chunked of codecs passes the suite") {
  check_coded<subject, raw>();
}

TEST_CASE("ring_chunked of stable codecs gives the same bits at both levels") {
  CHECK(unlike_other<collective<oktopk::block_float>, message<oktopk::block_float>, float>(all_rank_counts) == "");
  CHECK(unlike_other<collective<oktopk::bfloat16>, message<oktopk::bfloat16>, double>(all_rank_counts) == "");
}

TEST_CASE("ring_chunked of a codec reads one vector and writes another, with the same bits") {
  std::vector<int> const ranks{1, 2, 3, 5, 8};
  CHECK(unlike_other<collective<oktopk::block_float>, out_of_place<collective<oktopk::block_float>>, float>(ranks) ==
        "");
  CHECK(unlike_other<collective<oktopk::identity>, out_of_place<collective<oktopk::identity>>, double>(ranks) == "");
  CHECK(unlike_other<collective<oktopk::bfloat16>, out_of_place<collective<oktopk::bfloat16>>, float>(ranks) == "");
  CHECK(unlike_other<message<oktopk::block_float>, out_of_place<message<oktopk::block_float>>, float>(ranks) == "");
}

TEST_CASE("ring_chunked of a codec refuses to tell what a maximum lost, and writes nothing") {
  using algorithm = collective<oktopk::block_float>::algorithm<oktopk::in_process_communicator, float>;
  int refused = 0;
  oktopk::in_process::run(3, [&](oktopk::in_process_communicator comm) {
    auto const own = to_view(std::vector<float>(300, 1));
    auto const values = to_view(std::vector<float>(300, 2));
    auto const lost = to_view(std::vector<float>(300, 3));
    try {
      algorithm().run_from(execution(), comm, own.data(), values.data(), lost.data(), 300, reduction::max);
    } catch (oktopk::error const&) {
      refused += 1;
    }
    CHECK(to_vector(values) == std::vector<float>(300, 2));
  });
  CHECK(refused == 3);
}

TEST_CASE("ring_chunked codes nothing below the cut-off") {
  using coded = oktopk::ring_chunked<execution, counting, float, oktopk::coded_wire<oktopk::block_float>>;
  auto const wrap = [](auto inner) { return counting(inner); };
  auto const inputs = rough_inputs<float>(4, 1000);
  auto const expected = run<raw>(inputs, reduction::sum);
  coded const under({.cutoff_bytes = 4001});
  auto const as_is = run_with(under, inputs, reduction::sum, true, wrap);
  CHECK(as_is.results == expected.results);
  CHECK(as_is.lost == std::vector<std::vector<float>>(4, std::vector<float>(1000, 0.0F)));
  CHECK(as_is.traffic[0].bytes_sent == expected.traffic[0].bytes_sent);
  CHECK(under.bound_words(1000, 4) == raw::algorithm<counting, float>().bound_words(1000, 4));
  auto const rounded = run_with(coded({.cutoff_bytes = 4000}), inputs, reduction::sum, true, wrap);
  CHECK(rounded.results != expected.results);
  CHECK(rounded.traffic[0].bytes_sent < expected.traffic[0].bytes_sent / 2);
}

TEST_CASE("ring_chunked says what is wrong with its options") {
  using coded = oktopk::ring_chunked<execution, counting, float, oktopk::coded_wire<oktopk::block_float>>;
  CHECK(coded().problem() == "");
  CHECK(coded({.codec = {.rate = 2}}).problem() == "rate = 2 of block_float is not between 4 and 16");
  CHECK(coded({.segment = 0}).problem() == "segment = 0 of a coded wire is not positive");
  CHECK(coded({.codec = {.rate = 9}}).describe() != coded().describe());
  CHECK(coded({.level = codec_level::message}).describe() != coded().describe());
  CHECK(coded({.codec = {.rate = 9}}).name() == "ring_chunked of block_float 9");
}
