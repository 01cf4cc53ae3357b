// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A selector of your own: it selects every value whose magnitude reaches a fixed threshold.
//
// `oktopk/select/concept.hpp` holds the contract of selectors, and `tests/select/suite.hpp` tests all of it. The
// program hands the selector to `ok_topk` as the local one, and fails when a rank contributes other entries than it
// must.

#include <oktopk/allreduce.hpp>
#include <oktopk/comm/in_process.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

/// Every value with |x| >= threshold, however many they are; nothing where k is 0.
class fixed_threshold : public oktopk::selector_base {
public:
  struct options {
    double threshold = 1; ///< not negative; the same on all ranks
  };

  /// The selector carries nothing from one iteration to the next.
  template <class Value>
  struct state {
    static bool is_sound(std::int64_t) { return true; }
    static void list_facts(oktopk::agreement&) {}
    template <class State, class Visit>
    static void each_part(State&, Visit&) {} // for `save` and `load`
  };

  fixed_threshold() : fixed_threshold(options{}) {}
  explicit fixed_threshold(options const& how) : options_(how) {}

  static std::string name() { return "fixed_threshold"; }
  /// All ranks compare this text: it names every option.
  std::string describe() const { return "fixed_threshold (threshold " + std::to_string(options_.threshold) + ")"; }
  std::string problem() const { return options_.threshold >= 0 ? "" : "the threshold of fixed_threshold is negative"; }
  static bool bounded() { return false; }
  oktopk::selection_promises promises() const { return {.rule = describe(), .largest = true}; }
  static std::int64_t capacity(std::int64_t, std::int64_t length) { return length; }

  template <class E, class Index, class Value, class Group, class Source>
  oktopk::selection<Index, Value, typename E::memory_space>
  select(oktopk::selection_context<E, Index, Value, Group> const& context, Source const& source, state<Value>&) const {
    auto& workspace = context.workspace;
    workspace.reserve(context.exec, source.size());
    Index* const indices = workspace.indices.data();
    Value* const values = workspace.values.data();
    auto const threshold = static_cast<Value>(options_.threshold);
    bool const any = context.k > 0;
    Source const from = source;
    std::int64_t count = 0;
    Kokkos::parallel_scan(
        "fixed_threshold::select",
        Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>(context.exec, 0, from.size()),
        KOKKOS_LAMBDA(std::int64_t i, std::int64_t & position, bool final) {
          Value const x = final ? from.load(i) : from.peek(i); // every value must be loaded, selected or not
          // What is not finite counts as the largest.
          if (any && (x >= threshold || -x >= threshold || x != x)) {
            if (final) {
              indices[position] = from.index(i);
              values[position] = x;
            }
            position += 1;
          }
        },
        count);
    context.exec.fence(); // the count is a number of the host
    return {workspace.entries(count), context.group.gather_counts(count), false};
  }

private:
  options options_;
};

static_assert(oktopk::selector<fixed_threshold>);

struct my_policies : oktopk::default_policies {
  using local_selector = fixed_threshold;
};

using space = Kokkos::DefaultExecutionSpace;

/// Ones and minus ones in some places, small values elsewhere; every rank has other places.
void fill(Kokkos::View<float*, space> const& gradient, int rank) {
  auto const place = static_cast<std::size_t>(rank);
  Kokkos::parallel_for(
      "fill", Kokkos::RangePolicy<space>(0, gradient.extent(0)),
      KOKKOS_LAMBDA(std::size_t i) { gradient(i) = i % 50 == place ? (i % 100 < 50 ? 1.0F : -1.0F) : 0.001F; });
}

int main(int argc, char** argv) {
  Kokkos::ScopeGuard const kokkos(argc, argv);
  bool right = true;
  oktopk::in_process::run(3, [&](oktopk::in_process_communicator comm) {
    using allreduce_type = oktopk::ok_topk<space, oktopk::in_process_communicator, my_policies>;
    int const length = 1000; // 20 places of each rank reach the threshold
    allreduce_type allreduce(space(), comm, {.length = length, .k = 60, .local_select = {.threshold = 0.5}});
    Kokkos::View<float*, space> const gradient("gradient", length);
    fill(gradient, comm.rank());

    auto const& update = allreduce(gradient);

    auto const mine = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), update.contributed());
    std::printf("rank %d contributed %zu of %zu sums\n", comm.rank(), mine.extent(0), update.indices().extent(0));
    right = right && mine.extent(0) == 20 && update.indices().extent(0) == 60;
    for (std::size_t i = 0; i < mine.extent(0); ++i) {
      right = right && mine(i) % 50 == comm.rank();
    }
  });
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
