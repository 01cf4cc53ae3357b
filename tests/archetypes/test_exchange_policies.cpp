// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Partitioner, schedule and gather: what is asked of them is enough, and each part of it is asked for.

#include "archetypes/suite.hpp"
#include "support/policies.hpp"

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/select/exact.hpp>

using namespace oktopk_tests;
using ranks_type = oktopk::in_process_communicator;

namespace {

using host_indices = oktopk::array_ref<std::int32_t const, host_memory>;

// Everything belongs to one rank.
class archetype_partitioner {
public:
  struct options {
    int owner = 0;
  };

  template <class E, class Comm>
  class step {
  public:
    explicit step(archetype_partitioner const& how) : owner_(how.owner_) {}
    step(step const&) = delete;
    step& operator=(step const&) = delete;

    std::span<std::int64_t const> run(oktopk::call_context<E, Comm>& call, host_indices) {
      boundaries_.assign(static_cast<std::size_t>(call.comm.size()) + 1, call.length);
      std::fill_n(boundaries_.begin(), owner_ + 1, 0);
      return boundaries_;
    }

  private:
    int owner_;
    std::vector<std::int64_t> boundaries_;
  };

  explicit archetype_partitioner(options how) : owner_(how.owner) {}
  archetype_partitioner(archetype_partitioner const&) = default;
  archetype_partitioner& operator=(archetype_partitioner const&) = delete;

  char const* describe() const { return "archetype"; }
  char const* problem() const { return ""; }
  bool due(std::int64_t) const { return true; }
  double bound_words(int) const { return 0; }

private:
  int owner_;
};

template <class P>
inline constexpr bool is_partitioner = oktopk::partitioner<P, host_execution, ranks_type>;
template <class P>
inline constexpr bool only_undescribed =
    !oktopk::detail::has_partitioner_options<P> && oktopk::detail::partitions_for<P, host_execution, ranks_type> &&
    !is_partitioner<P>;
template <class P>
inline constexpr bool only_idle = oktopk::detail::has_partitioner_options<P> &&
                                  !oktopk::detail::partitions_for<P, host_execution, ranks_type> && !is_partitioner<P>;

static_assert(is_partitioner<archetype_partitioner>);

// One defect each.
DEFECT(only_undescribed, partitioner_without_options, archetype_partitioner, using options = void);
struct partitioner_not_made_from_options : archetype_partitioner {
  partitioner_not_made_from_options();
};
DEFECT(only_undescribed, partitioner_without_describe, archetype_partitioner, void describe() = delete);
DEFECT(only_undescribed, partitioner_without_fault, archetype_partitioner, void problem() = delete);
DEFECT(only_undescribed, partitioner_without_due, archetype_partitioner, void due() = delete);
DEFECT(only_undescribed, partitioner_without_bound, archetype_partitioner, void bound_words() = delete);
DEFECT(only_undescribed, partitioner_due_at_some_time, archetype_partitioner, std::int64_t due(std::int64_t) const);
DEFECT(only_idle, partitioner_without_step, archetype_partitioner, using step = void);
struct partitioner_whose_step_is_not_made_from_it : archetype_partitioner {
  using archetype_partitioner::archetype_partitioner;
  template <class E, class Comm>
  struct step : archetype_partitioner::step<E, Comm> {
    step();
  };
};
struct partitioner_that_answers_nothing : archetype_partitioner {
  using archetype_partitioner::archetype_partitioner;
  template <class E, class Comm>
  struct step : archetype_partitioner::step<E, Comm> {
    using archetype_partitioner::step<E, Comm>::step;
    void run(oktopk::call_context<E, Comm>&, host_indices);
  };
};
struct partitioner_for_others : archetype_partitioner {
  using archetype_partitioner::archetype_partitioner;
  template <class E, class Comm>
  struct step : archetype_partitioner::step<E, Comm> {
    using archetype_partitioner::step<E, Comm>::step;
    std::span<std::int64_t const> run(std::vector<int>&, host_indices);
  };
};
static_assert(only_undescribed<partitioner_not_made_from_options>);
static_assert(only_idle<partitioner_whose_step_is_not_made_from_it>);
static_assert(only_idle<partitioner_that_answers_nothing>);
static_assert(only_idle<partitioner_for_others>);

// The ring the other way round, one step at a time.
class archetype_schedule {
public:
  struct options {};

  explicit archetype_schedule(options) {}
  archetype_schedule(archetype_schedule const&) = default;
  archetype_schedule& operator=(archetype_schedule const&) = delete;

  int destination(int rank, int step, int ranks) const { return (rank + ranks - step) % ranks; }
  int source(int rank, int step, int ranks) const { return (rank + step) % ranks; }
  int bucket() const { return 1; }
  char const* describe() const { return "archetype"; }
  char const* problem() const { return ""; }
};

static_assert(oktopk::schedule<archetype_schedule>);

// One defect each.
template <class T>
inline constexpr bool no_schedule = !oktopk::schedule<T>;
DEFECT(no_schedule, schedule_without_options, archetype_schedule, using options = void);
struct schedule_not_made_from_options : archetype_schedule {
  schedule_not_made_from_options();
};
struct schedule_that_cannot_be_copied : archetype_schedule {
  using archetype_schedule::archetype_schedule;
  schedule_that_cannot_be_copied(schedule_that_cannot_be_copied const&) = delete;
};
DEFECT(no_schedule, schedule_without_destination, archetype_schedule, void destination() = delete);
DEFECT(no_schedule, schedule_without_source, archetype_schedule, void source() = delete);
DEFECT(no_schedule, schedule_with_wide_source, archetype_schedule, std::int64_t source(int, int, int) const);
DEFECT(no_schedule, schedule_without_bucket, archetype_schedule, void bucket() = delete);
DEFECT(no_schedule, schedule_without_describe, archetype_schedule, void describe() = delete);
DEFECT(no_schedule, schedule_without_fault, archetype_schedule, void problem() = delete);
static_assert(!oktopk::schedule<schedule_not_made_from_options>);

// Everybody sends everybody all it has, indices and values apart.
class archetype_gather {
public:
  struct options {};

  explicit archetype_gather(options) {}
  archetype_gather(archetype_gather const&) = delete;
  archetype_gather& operator=(archetype_gather const&) = delete;

  char const* describe() const { return "archetype"; }
  char const* problem() const { return ""; }

  template <class E, class Comm, class Format>
  class step {
  public:
    step(archetype_gather const&, Format const&) {}
    step(step const&) = delete;
    step& operator=(step const&) = delete;

    oktopk::gathered<Format, E> run(oktopk::call_context<E, Comm>& call, oktopk::entries_of<Format, E> mine,
                                    std::span<std::int64_t const> sizes) {
      call.exec.fence();
      std::vector<std::int64_t> offsets(1, 0);
      for (std::int64_t const size : sizes) {
        offsets.push_back(offsets.back() + size);
      }
      indices_.resize(static_cast<std::size_t>(offsets.back()));
      values_.resize(indices_.size());
      std::span const my_indices(mine.indices.data(), static_cast<std::size_t>(mine.size()));
      std::span const my_values(mine.values.data(), static_cast<std::size_t>(mine.size()));
      std::vector<typename Comm::request> requests;
      for (int rank = 0; rank < call.comm.size(); ++rank) {
        auto const at = static_cast<std::size_t>(offsets[static_cast<std::size_t>(rank)]);
        auto const size = static_cast<std::size_t>(sizes[static_cast<std::size_t>(rank)]);
        std::span const indices(indices_.data() + at, size);
        std::span const values(values_.data() + at, size);
        if (rank == call.comm.rank()) {
          std::copy(my_indices.begin(), my_indices.end(), indices.begin());
          std::copy(my_values.begin(), my_values.end(), values.begin());
        } else {
          requests.push_back(call.comm.irecv(std::as_writable_bytes(indices), rank, oktopk::phase::gather));
          requests.push_back(call.comm.irecv(std::as_writable_bytes(values), rank, oktopk::phase::gather));
          requests.push_back(call.comm.isend(std::as_bytes(my_indices), rank, oktopk::phase::gather));
          requests.push_back(call.comm.isend(std::as_bytes(my_values), rank, oktopk::phase::gather));
        }
      }
      call.comm.wait_all(requests);
      return {{indices_.data(), values_.data(), offsets.back()}, false};
    }

    oktopk::word_bound bound_words(int, std::int64_t, std::int64_t) const { return {}; }

  private:
    std::vector<typename Format::index_type> indices_;
    std::vector<typename Format::value_type> values_;
  };
};

template <class G>
inline constexpr bool is_gather = oktopk::gather_policy<G, host_execution, ranks_type, oktopk::coo<>>;
template <class G>
inline constexpr bool only_unoptioned = !oktopk::detail::has_gather_options<G> && !is_gather<G>;
template <class G>
inline constexpr bool only_inactive = oktopk::detail::has_gather_options<G> && !is_gather<G>;

static_assert(is_gather<archetype_gather> && is_gather<oktopk::balanced_allgatherv>);

DEFECT(only_unoptioned, gather_without_options, archetype_gather, using options = void);
struct gather_not_made_from_options : archetype_gather {
  gather_not_made_from_options();
};
DEFECT(only_unoptioned, gather_without_describe, archetype_gather, void describe() = delete);
DEFECT(only_unoptioned, gather_without_fault, archetype_gather, void problem() = delete);
DEFECT(only_inactive, gather_without_step, archetype_gather, template <class, class> struct step);
struct gather_of_entries_alone : archetype_gather {
  using archetype_gather::archetype_gather;
  template <class E, class Comm, class Format>
  struct step {
    step(archetype_gather const&, Format const&);
    template <class... Arguments>
    oktopk::entries_of<Format, E> run(Arguments&&...);
    oktopk::word_bound bound_words(int, std::int64_t, std::int64_t) const;
  };
};
struct gather_without_bound : archetype_gather {
  using archetype_gather::archetype_gather;
  template <class E, class Comm, class Format>
  struct step : archetype_gather::step<E, Comm, Format> {
    using archetype_gather::step<E, Comm, Format>::step;
    void bound_words() = delete;
  };
};
static_assert(only_unoptioned<gather_not_made_from_options>);
static_assert(only_inactive<gather_of_entries_alone>);
static_assert(only_inactive<gather_without_bound>);

} // namespace

TEST_CASE("a schedule that cannot be copied is none, for the exchange keeps a copy") {
  CHECK_FALSE(oktopk::schedule<schedule_that_cannot_be_copied>);
}

TEST_CASE("ok_topk runs with a partitioner, a schedule and a gather that have what is asked for and nothing else") {
  constexpr std::int64_t length = 700;
  constexpr std::int64_t k = 30;
  using algorithm = oktopk::ok_topk<host_execution, ranks_type,
                                    policies_of<oktopk::coo<>, oktopk::exact, oktopk::exact, archetype_partitioner,
                                                archetype_schedule, archetype_gather>>;
  for (int const ranks : {1, 2, 3, 8}) {
    auto const expected = top_of_sums<float>(ranks, length, k);
    for (int const owner : {0, ranks / 2, ranks - 1}) {
      oktopk::in_process::run(ranks, [&](ranks_type comm) {
        algorithm allreduce(host_execution(), comm, {.length = length, .k = k, .partition = {.owner = owner}});
        for (int call = 0; call < 2; ++call) {
          CHECK((sums_in(allreduce(seeded_whole_numbers<float>(length, comm.rank()))) == expected));
        }
        auto const& b = allreduce.state().boundaries;
        CHECK(b[static_cast<std::size_t>(owner) + 1] - b[static_cast<std::size_t>(owner)] == length);
      });
    }
  }
}
