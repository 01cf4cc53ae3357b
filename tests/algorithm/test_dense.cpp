// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <oktopk/algorithm/dense.hpp>

using namespace oktopk_tests;

namespace {

/// Leaves on rank 1 alone what is no number: as sums, as a codec may that loses again in every message; or, where it loses
/// values, as a loss that no residual can hold.
template <class E, class Comm, class Value, bool Lossless>
class overflows_on_rank_1 : public oktopk::dense_reduce_base {
public:
  static constexpr bool lossless = Lossless;
  static std::string name() { return "overflows on rank 1"; }
  static bool ranks_may_differ() { return Lossless; }
  static bool losses_may_overflow(int) { return !Lossless; }
  static double bound_words(std::int64_t, int) { return 0; }
  static double expected_messages(std::int64_t, int) { return 0; }
  static void run(E const& exec, Comm& comm, Value* values, Value* lost, std::int64_t count) {
    using array = oktopk::array_ref<Value, typename E::memory_space>;
    auto const all = static_cast<std::size_t>(count);
    if (!Lossless) {
      Kokkos::deep_copy(exec, array(lost, all), Value(0));
    }
    if (comm.rank() == 1) {
      Kokkos::deep_copy(exec, Lossless ? array(values, all) : array(lost + count - 1, 1),
                        std::numeric_limits<Value>::infinity());
    }
  }
};

template <bool Lossless>
void check_overflow_on_rank_1(std::string const& words) {
  using reduction = overflows_on_rank_1<execution, counting, float, Lossless>;
  auto const failures = outcomes_of(3, [](oktopk::in_process_communicator inner) {
    counting comm(inner);
    oktopk::dense<execution, counting, float, std::int32_t, reduction> allreduce(execution(), comm, {.length = 10});
    comm.reset();
    auto const heard = outcome_of([&] { allreduce(to_view(std::vector<float>(10))); });
    CHECK(allreduce.state().iteration == 0);
    CHECK((Lossless || comm.total().words_sent() <= allreduce.bound_words())); // else they leave, which is beside it
    throw oktopk::error(heard.code, heard.text);
  });
  CHECK(unlike(failures, oktopk::fault::non_finite, words) == "");
}

} // namespace

TEST_CASE("dense ends on all ranks where one of them sees an overflow, of a sum or of what it has lost") {
  check_overflow_on_rank_1<true>("a sum or partial sum at index 0 overflows");
  check_overflow_on_rank_1<false>("rank 1: the residual at index 9 overflows with what is returned to it");
}
