// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Ranks that disagree, or of which one has found a fault, all hear the same sentence.

#include "comm/testing.hpp"

#include <oktopk/comm/agreement.hpp>
#include <oktopk/core/version.hpp>

#include <bit>
#include <cfenv>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

using namespace oktopk_tests;
using oktopk::agreement;

namespace {

// Settles on every rank what `state(terms, rank)` lists; everybody must hear the same, and be able to go on.
template <class State>
outcome settled(int ranks, State const& state) {
  std::vector<outcome> heard(static_cast<std::size_t>(ranks));
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    agreement terms("thing");
    state(terms, comm.rank());
    heard[static_cast<std::size_t>(comm.rank())] = outcome_of([&] { terms.check_on(comm); });
    if (ranks > 1) {
      CHECK(pass_around(comm, comm.rank()) == (comm.rank() + ranks - 1) % ranks);
    }
  });
  for (outcome const& each : heard) {
    CHECK(each == heard[0]);
  }
  return heard[0];
}

} // namespace

TEST_CASE("ranks with the same facts agree, at the cost of one allreduce of four words") {
  for (int const ranks : rank_counts) {
    oktopk::in_process::run(ranks, [&](in_process_communicator inner) {
      counted comm(inner);
      agreement terms("ok_topk");
      terms.fact("length", 1000).fact("format", "coo").fact("density", 0.01);
      CHECK_NOTHROW(terms.check_on(comm, oktopk::phase::partition));
      CHECK(comm.total().messages_sent <= doublings(ranks) + 1);
      CHECK(comm.total().bytes_sent == 16 * comm.total().messages_sent);
      CHECK(comm.of_phase(oktopk::phase::partition).bytes_sent == comm.total().bytes_sent);
    });
  }
}

TEST_CASE("facts that differ are named with both ranks' values, numbers that differ in the last bit among them") {
  for (int const ranks : {2, 3, 5, 8, 13}) {
    int const odd_one = ranks - 1;
    auto const heard = settled(ranks, [&](agreement& terms, int rank) {
      terms.fact("k", 5).fact("length", rank == odd_one ? 11 : 10).fact("format", "coo");
    });
    CHECK(heard == outcome{fault::ranks_disagree, "oktopk: the ranks disagree: rank 0 has length = 10, rank " +
                                                      std::to_string(odd_one) + " has length = 11"});
  }
  auto const rank_0 = settled(4, [](agreement& terms, int rank) { terms.fact("k", rank == 0 ? 1 : 2); });
  CHECK(rank_0.text == "oktopk: the ranks disagree: rank 0 has k = 1, rank 1 has k = 2");
  auto const objects =
      settled(2, [](agreement& terms, int rank) { terms = agreement(rank == 0 ? "dense" : "ok_topk"); });
  CHECK(objects.text == "oktopk: the ranks disagree: rank 0 has object = dense, rank 1 has object = ok_topk");
  auto const last_bit = settled(
      3, [](agreement& terms, int rank) { terms.fact("threshold", rank == 1 ? std::nextafter(0.1, 1.0) : 0.1); });
  CHECK(unlike(last_bit, fault::ranks_disagree, "threshold = 0.1") == "");
  auto const fewer = settled(3, [](agreement& terms, int rank) {
    terms.fact("length", 10);
    if (rank < 2) {
      terms.fact("k", 5);
    }
  });
  CHECK(unlike(fewer, fault::ranks_disagree, "rank 0 and rank 2") == "");
}

TEST_CASE("ranks whose arithmetic rounds or treats denormals otherwise are told") {
  auto const heard_where_one_has = [](auto const& set) {
    return settled(3, [&](agreement& terms, int rank) {
      if (rank == 1) {
        std::fenv_t before{};
        std::fegetenv(&before);
        set();
        terms = agreement("thing");
        std::fesetenv(&before);
      }
    });
  };
  std::string const usual =
      "the ranks disagree: rank 0 has arithmetic = rounds to nearest, keeps denormals, rank 1 has ";
  for (auto const& [mode, name] : {std::pair(FE_UPWARD, "up"), std::pair(FE_DOWNWARD, "down"),
                                   std::pair(FE_TOWARDZERO, "towards zero"), std::pair(FE_TONEAREST, "to nearest")}) {
    outcome const heard = heard_where_one_has([rounding = mode] { std::fesetround(rounding); });
    CHECK(heard.code == (mode == FE_TONEAREST ? fault::none : fault::ranks_disagree));
    CHECK((mode == FE_TONEAREST ||
           heard.text == "oktopk: " + usual + "arithmetic = rounds " + name + ", keeps denormals"));
  }
#ifdef __SSE__ // FTZ is bit 15, DAZ is bit 6
  CHECK(heard_where_one_has([] { _mm_setcsr(_mm_getcsr() | 0x8000U); }).text ==
        "oktopk: " + usual + "arithmetic = rounds to nearest, flushes denormals");
  CHECK(heard_where_one_has([] { _mm_setcsr(_mm_getcsr() | 0x40U); }).text ==
        "oktopk: " + usual + "arithmetic = rounds to nearest, keeps denormals, reads denormals as zero");
#endif
}

TEST_CASE("one rank's fault reaches all, with its code, its sentence and its rank") {
  for (int const ranks : {2, 3, 5, 8, 16}) {
    for (int const faulty : {0, ranks / 2, ranks - 1}) {
      auto const heard = settled(ranks, [&](agreement& terms, int rank) {
        terms.fact("length", rank == faulty ? -1 : 10);
        if (rank == faulty) {
          terms.note(fault::option_out_of_range, "length = -1 is negative");
          terms.note(fault::bad_state, "and it is late");
        }
      });
      CHECK(heard.code == fault::option_out_of_range);
      CHECK(heard.text == "oktopk: rank " + std::to_string(faulty) + ": length = -1 is negative");
    }
  }
}

TEST_CASE("of several ranks' faults the lowest rank's is told") {
  auto const heard = settled(5, [](agreement& terms, int rank) {
    if (rank >= 2) {
      terms.note(fault::k_out_of_range, "k of rank " + std::to_string(rank));
    }
  });
  CHECK(heard == outcome{fault::k_out_of_range, "oktopk: rank 2: k of rank 2"});
}

TEST_CASE("a fault that all ranks have is told once, for the object") {
  for (int const ranks : {1, 2, 5}) {
    auto const heard = settled(
        ranks, [](agreement& terms, int) { terms.fact("k", 9).note(fault::k_out_of_range, "k = 9 is too large"); });
    CHECK(heard == outcome{fault::k_out_of_range, "oktopk: thing: k = 9 is too large"});
  }
}

TEST_CASE("long records are compared to their end") {
  for (int const facts : {10, 100, 1000}) {
    for (int const odd_one : {-1, 3}) { // nobody, or the last rank in the last fact
      auto const heard = settled(4, [&](agreement& terms, int rank) {
        for (int i = 0; i < facts; ++i) {
          terms.fact("boundary", i * 1000 + (rank == odd_one && i == facts - 1 ? 1 : 0));
        }
      });
      CHECK(heard.code == (odd_one < 0 ? fault::none : fault::ranks_disagree));
    }
  }
}

TEST_CASE("a long sentence of one rank is told as far as there is room") {
  auto const heard = settled(3, [](agreement& terms, int rank) {
    if (rank == 1) {
      terms.note(fault::bad_file, "begins well" + std::string(5000, '!'));
    }
  });
  CHECK(unlike(heard, fault::bad_file, "rank 1: begins well!!!") == "");
  CHECK(heard.text.size() < 5000);
}

TEST_CASE("ranks with another version of the library or another byte order are told so, both sides by name") {
  auto const heard_of = [](std::string const& library, std::endian order) {
    auto const heard = settled(3, [&](agreement& terms, int rank) {
      if (rank == 2) {
        terms = agreement("thing", library, order);
      }
    });
    CHECK(heard.code == fault::ranks_disagree);
    return heard;
  };
  std::string const version = oktopk::version();
  CHECK(heard_of("9.8.7", std::endian::native)
            .says("rank 0 has version of oktopk = " + version + ", rank 2 has version of oktopk = 9.8.7"));
  auto const other = std::endian::native == std::endian::little ? std::endian::big : std::endian::little;
  CHECK(heard_of(version, other).says("rank 0 has byte order = "));
  CHECK(heard_of(version, other).says("rank 2 has byte order = "));
}
