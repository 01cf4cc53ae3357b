// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dense/coded_suite.hpp"

#include <oktopk/dense/ring.hpp>

#include <stdexcept>

using namespace oktopk_tests;
using namespace oktopk_tests::dense;

namespace {

struct ring_subject {
  template <class Comm, class Value>
  using algorithm = oktopk::ring<execution, Comm, Value>;

  static sent expected(int, int ranks, std::int64_t count) {
    return count == 0 ? sent{} : sent{ranks - 1, (ranks - 1) * count};
  }
};

struct chunked {
  template <class Comm, class Value>
  using algorithm = oktopk::ring_chunked<execution, Comm, Value>;

  static sent expected(int rank, int ranks, std::int64_t count) {
    sent all;
    each_ring_message(rank, ranks, count, 2, 1, all);
    return all;
  }
};

// Of blocks that are cut into pieces of so many values at most.
std::int64_t pieces_of(int ranks, std::int64_t count, std::int64_t most) {
  std::int64_t const block = (count + ranks - 1) / ranks;
  return std::max<std::int64_t>(2, (block + most - 1) / most);
}

// Sub-chunks of so many bytes; a sub-chunk of 40 bytes does not divide the blocks of the tests' lengths.
template <std::int64_t Bytes, std::int64_t Ahead>
struct pipelined {
  template <class Comm, class Value>
  struct algorithm : oktopk::ring_pipelined<execution, Comm, Value> {
    algorithm() : oktopk::ring_pipelined<execution, Comm, Value>({.chunk_bytes = Bytes, .ahead = Ahead}) {}
  };
};

template <class Value, std::int64_t Bytes>
struct counted_pipelined : pipelined<Bytes, 3> {
  static sent expected(int rank, int ranks, std::int64_t count) {
    sent all;
    std::int64_t const chunk = Bytes / static_cast<std::int64_t>(sizeof(Value));
    each_ring_message(rank, ranks, count, pieces_of(ranks, count, chunk), 1, all);
    return all;
  }
};

template <class Codec, codec_level Level>
struct coded : coded_subject<oktopk::ring_chunked, Codec, Level> {
  template <class Value>
  static std::pair<std::int64_t, std::int64_t> expected_bytes(int rank, int ranks, std::int64_t count) {
    sent_bytes<Codec, Value> all;
    each_ring_message(rank, ranks, count, pieces_of(ranks, count, coded::segment), Codec::block_size, all);
    return all;
  }
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
using collective = coded<Codec, codec_level::collective>;
template <class Codec>
using message = coded<Codec, codec_level::message>;

} // namespace

TEST_CASE("ring reduces, in the messages and bytes it says") {
  check_lossless<ring_subject>();
}

TEST_CASE("ring has room for what waits on many ranks") {
  for (int const ranks : {17, 31, 32, 33, 63, 64, 65}) {
    auto const inputs = whole_inputs<float>(ranks, 5);
    auto const got = run<ring_subject>(inputs, reduction::sum);
    CHECK(got.results == std::vector<std::vector<float>>(inputs.size(), reduced(inputs, reduction::sum)));
  }
}

TEST_CASE("ring_chunked reduces, in the messages and bytes it says") {
  check_lossless<chunked>();
}

TEST_CASE("ring_chunked sends 2S(P-1)/P bytes in 4(P-1) messages, Gloo's 2S in 4P less the round that is not needed") {
  for (int const ranks : rank_counts) {
    std::int64_t const count = 2 * ranks * 24;
    auto const got = run<chunked>(whole_inputs<float>(ranks, count), reduction::sum);
    for (auto const& traffic : got.traffic) {
      CHECK(traffic.messages_sent == 2 * 4 * (ranks - 1));
      CHECK(traffic.bytes_sent == 2 * 2 * 4 * count / ranks * (ranks - 1));
      CHECK(traffic.bytes_received == traffic.bytes_sent);
    }
  }
}

TEST_CASE("what is lost is told for sums alone, on every rank") {
  auto const all = outcomes_of(3, [](oktopk::in_process_communicator comm) {
    execution const exec;
    auto const values = to_view(std::vector<float>(10, 1.0F));
    chunked::algorithm<oktopk::in_process_communicator, float> algorithm;
    algorithm.run(exec, comm, values.data(), values.data(), 10, reduction::max);
  });
  CHECK(unlike(all, oktopk::fault::option_out_of_range, "only a sum can tell what it rounded off") == "");
}

TEST_CASE("ring_pipelined reduces, in the messages and bytes it says") {
  CHECK(wrong_results<counted_pipelined<float, 40>, float>() == "");
  CHECK(wrong_results<counted_pipelined<double, 40>, double>() == "");
  CHECK(special_values_lost<counted_pipelined<float, 40>>() == "");
  CHECK(wrong_volume<counted_pipelined<float, 40>, float>() == "");
  CHECK(wrong_volume<counted_pipelined<double, 40>, double>() == "");
  CHECK(wrong_when_staged<counted_pipelined<float, 40>, float>() == "");
}

TEST_CASE("ring_pipelined sends a short vector as ring_chunked sends it") {
  CHECK(wrong_volume<counted_pipelined<float, 1 << 20>, float>() == "");
  CHECK(unlike_other<pipelined<1 << 20, 4>, chunked, float>({2, 3, 8}, true) == "");
}

TEST_CASE("ring_pipelined gives the same bits with few and with many receives posted ahead") {
  CHECK(unlike_other<pipelined<16, 1>, pipelined<16, 7>, float>({5}, true) == "");
  CHECK(unlike_other<pipelined<16, 1>, pipelined<16, 1000>, float>({5}, true) == "");
}

TEST_CASE("ring_pipelined says what is wrong with its options") {
  check_cut_options<oktopk::ring_pipelined<execution, counting_any, double>>("ring_pipelined");
}

TEST_CASE("ring_chunked of codecs passes the suite") {
  check_coded<oktopk::ring_chunked, coded, chunked>();
  SECTION("of bfloat16 it gives the same bits at both levels, too") {
    CHECK(unlike_other<collective<oktopk::bfloat16>, message<oktopk::bfloat16>, double>(all_rank_counts) == "");
  }
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
  auto const all = outcomes_of(3, [&](oktopk::in_process_communicator comm) {
    auto const own = to_view(std::vector<float>(300, 1));
    auto const values = to_view(std::vector<float>(300, 2));
    auto const lost = to_view(std::vector<float>(300, 3));
    auto const said = outcome_of(
        [&] { algorithm().run_from(execution(), comm, own.data(), values.data(), lost.data(), 300, reduction::max); });
    CHECK(to_vector(values) == std::vector<float>(300, 2));
    throw oktopk::error(said.code, said.text);
  });
  CHECK(unlike(all, oktopk::fault::option_out_of_range, "only a sum can tell what it rounded off") == "");
}

TEST_CASE("ring_chunked says what is wrong with its options") {
  using of_blocks = oktopk::ring_chunked<execution, counting_any, float, oktopk::coded_wire<oktopk::block_float>>;
  CHECK(of_blocks().problem() == "");
  CHECK(of_blocks({.codec = {.rate = 2}}).problem() == "rate = 2 of block_float is not between 4 and 16");
  CHECK(of_blocks({.segment = 0}).problem() == "segment = 0 of a coded wire is not positive");
  CHECK(of_blocks({.codec = {.rate = 9}}).describe() != of_blocks().describe());
  CHECK(of_blocks({.level = codec_level::message}).describe() != of_blocks().describe());
  CHECK(of_blocks({.codec = {.rate = 9}}).name() == "ring_chunked of block_float 9");
}
