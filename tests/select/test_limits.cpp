// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Nothing is written or reported beyond the room there is: not where patterns come near the end of their type, and not
// where a step is told a wrong count. The sanitizers see what these tests do not.

#include "select/distributions.hpp"
#include "support/caught.hpp"

#include <oktopk/select/exact.hpp>

using namespace oktopk_tests;
using oktopk::detail::bits_of;
using oktopk::detail::magnitude_bits;

namespace {

template <class Value>
Value from_bits(bits_of<Value> bits) {
  return oktopk::detail::magnitude_from_bits<Value>(bits);
}

} // namespace

TEMPLATE_TEST_CASE("the digits of a range that ends above every magnitude count all candidates", "", float, double) {
  using value = TestType;
  using bits = bits_of<value>;
  constexpr int all_bits = oktopk::detail::magnitude_bit_count<value>;
  bits const largest = static_cast<bits>(~bits(0) >> 1);
  std::vector<value> values; // 128 of each, for whole blocks are what goes wrong
  for (bits const pattern : {largest, static_cast<bits>(largest - 5), oktopk::detail::infinity_bits<value>,
                             static_cast<bits>(largest / 2), bits(0)}) {
    values.insert(values.end(), 128, from_bits<value>(pattern));
  }
  for (int const range_bits : {all_bits - 7, all_bits - 1}) {
    bits const reach = bits(1) << (range_bits - 1);
    for (bits const middle : {static_cast<bits>(largest - 3), static_cast<bits>(largest - reach / 2),
                              oktopk::detail::infinity_bits<value>}) {
      oktopk::detail::magnitude_range<value> const range{static_cast<bits>(middle - reach), range_bits};
      // The second digit, below every first one that some value has.
      int const width = 4;
      int const shift = range_bits - 8;
      for (bits prefix = 0; prefix < 16; ++prefix) {
        oktopk::detail::digit<value> const which{range, prefix, shift, width};
        CAPTURE(range_bits, middle, prefix);
        std::vector<std::int64_t> counted(static_cast<std::size_t>(which.bins()), 0);
        oktopk::detail::count_stretch(values.data(), static_cast<std::int64_t>(values.size()), which, counted.data());
        CHECK((counted == histogram_by_definition(values, which)));
        CHECK(static_cast<bits>(which.beyond() >> all_bits) == 0);
      }
    }
  }
}

TEMPLATE_TEST_CASE("the first digit of a range counts all candidates above it in its last bin", "", float, double) {
  using value = TestType;
  using bits = bits_of<value>;
  bits const largest = static_cast<bits>(~bits(0) >> 1);
  constexpr int octave = std::numeric_limits<value>::digits - 1;
  for (int const range_bits : {4, 12, octave - 1, octave, octave + 2}) {
    bits const span = bits(1) << range_bits;
    for (bits const floor :
         {bits(0), bits(77), oktopk::detail::magnitude_bits(value(1)), oktopk::detail::infinity_bits<value>,
          static_cast<bits>(largest - span + 1), static_cast<bits>(largest - 3)}) {
      CAPTURE(range_bits, floor);
      std::vector<value> values;
      for (std::uint64_t i = 0; i < 1000; ++i) { // most of them inside, and some below and above
        auto const away = static_cast<bits>(noise(floor, i) % (span + span / 4));
        values.push_back(from_bits<value>(std::min<bits>(largest, away + (floor > span / 8 ? floor - span / 8 : 0))));
      }
      values.insert(values.end(), 70, from_bits<value>(largest));
      values.insert(values.end(), 70, value(0));
      int const width = std::min(range_bits, 6);
      oktopk::detail::digit<value> const which{{floor, range_bits}, 0, range_bits - width, width};
      std::vector<std::int64_t> counted(static_cast<std::size_t>(which.bins()), 0);
      oktopk::detail::count_stretch(values.data(), static_cast<std::int64_t>(values.size()), which, counted.data());
      CHECK((counted == histogram_by_definition(values, which)));
    }
  }
}

TEST_CASE("a selection is no larger than k whatever threshold and ties it is told") {
  for (std::int64_t const size : {100, 3000, 70000}) { // the last one is cut in chunks where there are threads
    auto const values = drawn<float>(distributions<float>()[0].second, size, 3);
    auto const view = to_view(values);
    for (std::int64_t const k : {std::int64_t(1), std::int64_t(10), size / 3, size}) {
      for (bool const all_ties : {true, false}) {
        CAPTURE(size, k, all_ties);
        workspace_of<float> workspace;
        std::int64_t const ties = all_ties ? oktopk::detail::every_entry : 0;
        std::int64_t const count = oktopk::detail::write_above_threshold(execution(), candidates_in(view),
                                                                         bits_of<float>(0), ties, k, workspace)
                                       .kept;
        REQUIRE(count <= k);
        auto const chosen = selection_in(workspace, count);
        std::vector<std::int64_t> first_nonzero; // every magnitude above 0 passes, and the first of them are kept
        for (std::int64_t i = 0; i < size && static_cast<std::int64_t>(first_nonzero.size()) < k; ++i) {
          if (all_ties || values[static_cast<std::size_t>(i)] != 0) {
            first_nonzero.push_back(i);
          }
        }
        CHECK((std::vector<std::int64_t>(chosen.indices.begin(), chosen.indices.end()) == first_nonzero));
      }
    }
  }
}

TEST_CASE("a list of undecided candidates is no longer than it is told, whatever the bracket holds") {
  std::vector<float> const values(1000, 1.0F);
  auto const view = to_view(values);
  for (std::int64_t const claimed : {0, 1, 7, 999, 1000}) {
    workspace_of<float> workspace;
    workspace.numbers.reserve(execution(), 1); // less than told: what room there was before is not to be trusted either
    oktopk::detail::kth_bracket<float> bracket;
    bracket.floor = 0;
    bracket.shift = oktopk::detail::magnitude_bit_count<float>;
    bracket.inside = claimed;
    oktopk::detail::list_inside<execution, std::int32_t, float>(execution(), candidates_in(view), bracket, workspace);
    std::vector<std::int64_t> const listed(workspace.numbers.host(), workspace.numbers.host() + claimed);
    CHECK((listed == std::vector<std::int64_t>(static_cast<std::size_t>(claimed), magnitude_bits(1.0F))));
  }
}

TEST_CASE("rows of candidates that no ranks can have sent are an error") {
  oktopk::detail::kth_bracket<float> bracket;
  bracket.found = true;
  bracket.shift = 4;
  bracket.inside_total = 3;
  bracket.wanted = 2;
  std::vector<std::int64_t> undecided;
  auto const of = [&](std::vector<std::int64_t> rows) {
    return outcome_of([&] { oktopk::detail::decide<float>(bracket, rows, 5, 0, undecided); }).code;
  };
  CHECK(of({7, 2, 9, 8, 0, 6, 1, 5, 0, 0}) == oktopk::fault::none);
  CHECK(of({7, 4, 9, 8, 0, 6, 1, 5, 0, 0}) == oktopk::fault::damaged_message); // longer than a row
  CHECK(of({7, 2, 9, 8, 0, 6, -1, 5, 0, 0}) == oktopk::fault::damaged_message);
  CHECK(of({7, 2, 9, 8, 0, std::int64_t(1) << 60, 1, 5, 0, 0}) == oktopk::fault::damaged_message);
  CHECK(of({-7, 2, 9, 8, 0, 6, 1, 5, 0, 0}) == oktopk::fault::damaged_message);
  CHECK(of({7, 1, 9, 8, 0, 6, 0, 5, 0, 0}) == oktopk::fault::damaged_message); // fewer than are wanted
}
