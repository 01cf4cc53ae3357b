// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "sparse_sum/given.hpp"

#include <oktopk/catalogue/sparse_sums.hpp>

using namespace oktopk_tests;

namespace {

template <class Value>
using any = oktopk::any_sparse_sum<execution, Value>;

/// Policies as a text chooses them.
template <class Value, class Format, class Combiner = oktopk::sum_of<Value>, class Schedule = oktopk::rotated,
          class Policies = oktopk::sum_policies<Value>>
struct typed : Policies {
  using format = Format;
  using combiner = Combiner;
  using schedule = Schedule;
};

/// The collective that a text names has the bits, the regions, the words and the bound of the one with these policies.
template <class Policies, template <class, class, class> class Type = oktopk::sparse_sum>
void check_text(std::string const& text, std::int64_t width = 1) {
  using value = typename Policies::value_type;
  constexpr std::int64_t length = 150;
  for (int const ranks : {1, 3, 4}) {
    for (entries_lie const way : {entries_lie::anywhere, entries_lie::everywhere, entries_lie::nowhere}) {
      oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator inner) {
        auto const mine = entries_of_rank<std::int32_t, value>(way, length, width, inner.rank());
        counting comm(inner);
        Type<execution, counting, Policies> expected(execution(), comm, {.length = length, .width = width});
        auto found = oktopk::make_sparse_sum<value>(execution(), comm, text, {.length = length, .width = width});
        CHECK(found.text() == text);
        CHECK(found.length() == length);
        CHECK(found.width() == width);
        for (int call = 0; call < 2; ++call) {
          comm.reset();
          auto const wanted = copied(expected(to_view(mine.indices), to_view(mine.values)));
          auto const words = comm.total().words_sent();
          comm.reset();
          auto const given = copied(found(to_view(mine.indices), to_view(mine.values)));
          CAPTURE(text, ranks, static_cast<int>(way), comm.rank());
          CHECK(same_bits(given, wanted));
          CHECK(comm.total().words_sent() == words);
          CHECK(found.bound_words() == expected.bound_words());
          CHECK(std::ranges::equal(found.boundaries(), expected.boundaries()));
          CHECK(found.last_call().global_selected == expected.last_call().global_selected);
        }
      });
    }
  }
}

/// What all ranks hear where they make a sum of these texts, one a rank; empty where they do not hear the same.
std::string heard(std::vector<std::string> const& texts, std::int64_t width = 1) {
  std::vector<std::string> sentences(texts.size());
  oktopk::in_process::run(static_cast<int>(texts.size()), [&](oktopk::in_process_communicator comm) {
    auto const rank = static_cast<std::size_t>(comm.rank());
    try {
      oktopk::make_sparse_sum(execution(), comm, texts[rank], {.length = 10, .width = width});
    } catch (oktopk::error const& found) {
      sentences[rank] = found.what();
    }
  });
  bool const are_alike = std::ranges::adjacent_find(sentences, std::not_equal_to<>()) == sentences.end();
  return are_alike ? sentences[0] : std::string();
}

} // namespace

TEST_CASE("a text makes the sum that its policies make") {
  using oktopk::coo, oktopk::gap8, oktopk::packed;
  check_text<oktopk::sum_policies<>>("sparse_sum", 3);
  check_text<typed<float, coo<>>>("sparse_sum(format=coo, combiner=sum)");
  check_text<typed<double, packed<double>, oktopk::sum_of<double>, oktopk::radix>>(
      " sparse_sum ( reduce = radix , format=packed)");
  check_text<typed<float, gap8<>, oktopk::mean_of<float>>>("sparse_sum(combiner=mean, finite=true)");
  check_text<typed<std::int64_t, gap8<std::int64_t>, oktopk::max_of<std::int64_t>>>("sparse_sum(combiner=max)", 2);
  check_text<typed<float, gap8<>, oktopk::min_of<float>, oktopk::radix>>("sparse_sum(combiner=min, reduce=radix)");
  check_text<oktopk::sum_policies<Kokkos::complex<double>>>("sparse_sum", 2);
  check_text<oktopk::scatter_policies<>, oktopk::sparse_reduce_scatter>("sparse_reduce_scatter");
  check_text<typed<float, coo<>, oktopk::sum_of<float>, oktopk::rotated, oktopk::scatter_policies<>>,
             oktopk::sparse_reduce_scatter>("sparse_reduce_scatter(format=coo)");
}

TEST_CASE("promises of a text are kept, and given up on all ranks") {
  oktopk::in_process::run(2, [&](oktopk::in_process_communicator comm) {
    auto sum = oktopk::make_sparse_sum(execution(), comm, "sparse_sum(ascending=true)", {.length = 10});
    std::vector<std::int32_t> const indices = comm.rank() == 1 ? std::vector{3, 2} : std::vector{2, 3};
    std::string sentence;
    try {
      sum(to_view(indices), to_view(std::vector<float>{1, 1}));
    } catch (oktopk::error const& found) {
      sentence = found.what();
    }
    CHECK(sentence.find("rank 1") != std::string::npos);
    CHECK(sum(to_view(std::vector{2, 3}), to_view(std::vector<float>{1, 1})).size() == 2);
  });
}

TEST_CASE("a text of a sum that is not known is an error on all ranks, with the right names") {
  auto const both = [](std::string const& text) { return heard({text, text}); };
  CHECK(both("sum").find("there is no sum \"sum\"; there are sparse_sum, sparse_reduce_scatter") != std::string::npos);
  CHECK(both("sparse_sum(format=coo3)").find("there are gap8, coo, packed") != std::string::npos);
  CHECK(both("sparse_sum(combiner=max, format=coo)").find("format goes with combiner=sum") != std::string::npos);
  CHECK(both("sparse_sum(combiner=mean, reduce=radix)").find("reduce goes with combiner=sum or ") != std::string::npos);
  CHECK(both("sparse_sum(speed=9)").find("has no option \"speed\" here; it has combiner, format,") !=
        std::string::npos);
  CHECK(both("sparse_sum(").find("a sum is NAME or NAME(KEY=VALUE, ...)") != std::string::npos);
  CHECK(heard({"sparse_sum(format=packed)", "sparse_sum(format=packed)"}, 2).find("width = 2 is more than") !=
        std::string::npos);
  CHECK(heard({"sparse_sum", "sparse_sum(format=coo)"})
            .find("rank 0 has sum = sparse_sum, rank 1 has sum = sparse_sum(format=coo)") != std::string::npos);
}
