// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// `foreseen` gives the updates of `exact`, to the bit, in fewer messages where magnitudes move slowly, and goes on as
// `exact` does where they do not.

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/collect.hpp"
#include "support/generators.hpp"
#include "support/noting.hpp"
#include "support/policies.hpp"

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/exchange/foreseen.hpp>
#include <oktopk/format/packed.hpp>

#include <functional>

using namespace oktopk_tests;

namespace {

constexpr std::int64_t full_length = 3000;

using gradients = std::function<float(moment when, std::int64_t i)>;

template <class Format>
struct foreseen_policies : policies_of<Format> {
  using deliverer = oktopk::foreseen<>;
};

template <class Format>
using foreseeing = oktopk::ok_topk<execution, counting, foreseen_policies<Format>>;

/// Calls by the messages of their gathers: how many foresaw the threshold.
struct observed {
  int foreseen = 0;
  int searched = 0; ///< and nothing was gathered before
  int went_on = 0;  ///< after a gather that was of no use
  bool within_bound = true;
};

/// The messages that a rank sends in a phase of a call.
class message_counter {
public:
  explicit message_counter(counting const& comm) : comm_(comm) {}
  std::int64_t in(oktopk::phase use) {
    auto& last = last_[static_cast<std::size_t>(use)];
    auto const now = comm_.of_phase(use).messages_sent;
    return now - std::exchange(last, now);
  }

private:
  counting const& comm_;
  std::array<std::int64_t, oktopk::phase_count> last_{};
};

template <class Format>
observed compare(int ranks, std::int64_t n, std::int64_t k, int calls, gradients const& gradient) {
  observed seen;
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
    counting quick_messages(comm);
    counting slow_messages(comm);
    foreseeing<Format> quick(execution(), quick_messages, {.length = n, .k = k});
    oktopk::ok_topk<execution, counting, policies_of<Format>> slow(execution(), slow_messages, {.length = n, .k = k});
    message_counter sent(quick_messages);
    sent.in(oktopk::phase::gather);
    std::int64_t const steps = oktopk::detail::ceil_log2(ranks);
    for (int call = 0; call < calls; ++call) {
      std::vector<float> values(static_cast<std::size_t>(n));
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = gradient({comm.rank(), ranks, call}, static_cast<std::int64_t>(i));
      }
      auto const accumulator = to_view(values);
      double const before = quick_messages.total().words_sent();
      auto const& found = quick(accumulator);
      double const words = quick_messages.total().words_sent() - before;
      auto const& expected = slow(accumulator);
      CAPTURE(ranks, k, call);
      CHECK(to_vector(found.indices()) == to_vector(expected.indices()));
      CHECK(bits(to_vector(found.values())) == bits(to_vector(expected.values())));
      CHECK(to_vector(found.contributed()) == to_vector(expected.contributed()));
      CHECK(quick.bound_words() >= words);
      // A search after foreseen thresholds costs no more than one after searches.
      CHECK((quick.state().global.guess.bracket == slow.state().global.guess.bracket));
      bool const searches = sent.in(oktopk::phase::threshold) > 0;
      bool const gathers_twice = sent.in(oktopk::phase::gather) > steps;
      if (comm.rank() == 0) {
        seen.foreseen += searches ? 0 : 1;
        seen.searched += searches && !gathers_twice ? 1 : 0;
        seen.went_on += searches && gathers_twice ? 1 : 0;
      }
    }
  });
  return seen;
}

float shared_and_own(moment when, std::int64_t i) {
  auto const place = static_cast<std::uint64_t>(i);
  double const shared = heavy_tailed(noise(7, place));
  double const own = heavy_tailed(noise(8, place, static_cast<std::uint64_t>(when.rank * 1000 + when.iteration)));
  return static_cast<float>(shared + 0.1 * own);
}

} // namespace

TEST_CASE("foreseen selects what exact does, and foresees magnitudes that move slowly") {
  for (int const ranks : {1, 2, 5, 16}) {
    for (std::int64_t const k : {1500, 1}) {
      for (double const drift : {0.99, 1.02}) {
        CAPTURE(ranks, k, drift);
        auto const seen = compare<oktopk::coo<>>(ranks, 15000, k, 20, [drift](moment when, std::int64_t i) {
          return shared_and_own(when, i) * static_cast<float>(std::pow(drift, when.iteration));
        });
        CHECK(seen.searched + seen.went_on + seen.foreseen == 20);
        if (ranks > 1 && k == 1500) {
          CHECK(seen.foreseen >= 13); // of 14: regions are made anew in calls 0, 1, 2, 4, 8 and 16
        }
      }
    }
  }
}

TEST_CASE("foreseen selects what exact does where magnitudes jump, are equal, or are few") {
  struct input {
    char const* name;
    int least_foreseen;
    int most_foreseen;
    gradients gradient;
  };
  std::vector<input> const inputs{
      {"ten times less in every third call", 0, 20,
       [](moment when, std::int64_t i) { return shared_and_own(when, i) * (when.iteration % 3 == 0 ? 0.1F : 1.0F); }},
      {"another magnitude in every call", 0, 10,
       [](moment when, std::int64_t i) {
         auto const order = noise(3, static_cast<std::uint64_t>(when.iteration)) % 20;
         return shared_and_own(when, i) * static_cast<float>(std::pow(10.0, static_cast<double>(order) - 10));
       }},
      {"256 times less in every call, down to nothing", 0, 24,
       [](moment when, std::int64_t i) { return std::ldexp(shared_and_own(when, i), -8 * when.iteration); }},
      {"all equal", 0, 24, [](moment, std::int64_t) { return 1.0F; }},
      {"three magnitudes", 0, 24, [](moment, std::int64_t i) { return static_cast<float>(1 + i % 3); }},
      {"zeros, then values, then zeros", 0, 24,
       [](moment when, std::int64_t i) { return when.iteration / 5 % 2 == 0 ? 0.0F : shared_and_own(when, i); }},
      {"one rank with everything", 0, 24, // in few regions, which get too much of it
       [](moment when, std::int64_t i) { return when.rank == 0 ? shared_and_own(when, i) : 0.0F; }},
      {"everything in one region, which moves", 0, 24,
       [](moment when, std::int64_t i) {
         return i / 250 == when.iteration % 12 ? shared_and_own(when, i) : shared_and_own(when, i) * 1e-6F;
       }},
      {"sums that cancel", 0, 24,
       [](moment when, std::int64_t i) {
         float const one = shared_and_own({0, when.ranks, when.iteration}, i);
         return when.rank % 2 == 0 ? one : -one;
       }},
  };
  for (input const& each : inputs) {
    for (int const ranks : {3, 16}) {
      for (std::int64_t const k : {full_length, std::int64_t(250), std::int64_t(3), std::int64_t(0)}) {
        CAPTURE(each.name, ranks, k);
        auto const seen = compare<oktopk::packed<>>(ranks, full_length, k, 25, each.gradient);
        CHECK(seen.foreseen <= (k == 0 ? 25 : each.most_foreseen));
        CHECK((k != 250 || seen.foreseen >= each.least_foreseen));
        CHECK(seen.went_on <= 12); // it pauses
      }
    }
  }
}

TEST_CASE("a call sends the bytes that are expected of it") {
  using algorithm = foreseeing<oktopk::coo<>>;
  for (int const ranks : {2, 5, 16}) {
    oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
      counting counted(comm);
      algorithm::options const how{.length = 15000, .k = 1500};
      algorithm allreduce(execution(), counted, how);
      for (int call = 0; call < 8; ++call) { // regions are made anew in calls 0, 1, 2 and 4
        std::vector<float> values(15000);
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] = shared_and_own({comm.rank(), ranks, call}, static_cast<std::int64_t>(i));
        }
        counted.reset();
        allreduce(to_view(values));
      }
      auto const sent = static_cast<double>(counted.total().bytes_sent);
      double const expected = algorithm::expected_cost(how, ranks).bytes;
      CAPTURE(ranks, sent, expected);
      CHECK(expected > 0.6 * sent);
      CHECK(expected < 1.6 * sent);
    });
  }
}

TEST_CASE("foreseen goes on from a saved state, and refuses one that is damaged or not the same on all ranks") {
  using algorithm = foreseeing<oktopk::coo<>>;
  oktopk::in_process::run(3, [](oktopk::in_process_communicator comm) {
    counting counted(comm);
    algorithm allreduce(execution(), counted, {.length = full_length, .k = 300});
    auto const input = [&](int call) {
      std::vector<float> values(static_cast<std::size_t>(full_length));
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = shared_and_own({comm.rank(), 3, call}, static_cast<std::int64_t>(i));
      }
      return to_view(values);
    };
    for (int call = 0; call < 5; ++call) {
      allreduce(input(call));
    }
    auto const saved = allreduce.state();
    CHECK(saved.global.next.is_ready());
    CHECK(saved.global.counts.size() == 3);
    auto const refused = [&](oktopk::fault code, auto const& spoil) {
      auto damaged = saved;
      spoil(damaged.global);
      CHECK(outcome_of([&] { allreduce.restore(damaged); }).code == code);
    };
    using oktopk::fault;
    refused(fault::bad_state, [](auto& state) { state.next.kth = -1; });
    refused(fault::bad_state, [](auto& state) { state.next.reach = -1; });
    refused(fault::bad_state, [](auto& state) { state.next.drift = 1 << 30; });
    refused(fault::bad_state, [](auto& state) { state.next.misses = 7; });
    refused(fault::bad_state, [](auto& state) { state.next.pause = -1; });
    refused(fault::bad_state, [](auto& state) { state.next.hits = -1; });
    refused(fault::bad_state, [](auto& state) { state.counts[1] = -1; });
    refused(fault::ranks_disagree, [&](auto& state) { state.next.reach += comm.rank(); });
    refused(fault::ranks_disagree, [&](auto& state) { state.counts[0] += comm.rank(); });
    auto const searches = [&](auto const& from, int call) {
      allreduce.restore(from);
      allreduce(input(call));
      return allreduce.last_call().global_reevaluated;
    };
    CHECK(!searches(saved, 5));
    for (auto const& counts :
         {std::vector<std::int64_t>{}, {1, 2}, {full_length, full_length, 1}}) { // none, too few, too large
      auto other = saved;
      other.global.counts = counts;
      CHECK(searches(other, 5));
    }
  });
}

TEST_CASE("a sum that overflows where the threshold is foreseen is an error on all ranks, and calls go on") {
  oktopk::in_process::run(3, [](oktopk::in_process_communicator comm) {
    counting counted(comm);
    foreseeing<oktopk::coo<>> allreduce(execution(), counted, {.length = full_length, .k = 300});
    auto const call = [&](int number, float at_last) {
      std::vector<float> values(static_cast<std::size_t>(full_length));
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = shared_and_own({comm.rank(), 3, number}, static_cast<std::int64_t>(i));
      }
      values.back() += at_last;
      allreduce(to_view(values));
    };
    for (int number = 0; number < 5; ++number) {
      call(number, 0);
    }
    CHECK(allreduce.state().global.next.is_ready());
    auto const said = outcome_of([&] { call(5, std::numeric_limits<float>::max()); });
    CHECK(said.code == oktopk::fault::non_finite);
    CHECK(said.says("sum or partial sum at index " + std::to_string(full_length - 1) + " overflows"));
    call(5, 0);
    CHECK(!allreduce.last_call().global_reevaluated);
  });
}

TEST_CASE("a k-th magnitude that jumps, up or down, tells nothing of the next one") {
  for (float const jump : {8.0F, 0.125F}) {
    oktopk::detail::foresight<float> of;
    of.learn_search(1);
    of.learn_search(1.01F);
    CHECK(of.drift > 0);
    of.learn_search(jump);
    CHECK(of.drift == 0);
  }
}

TEST_CASE("the floor goes down where too few sums reached it, and up where they were too many") {
  oktopk::detail::foresight<float> of;
  CHECK(!of.is_ready());
  of.learn_search(4);
  CHECK(of.is_ready());
  auto const below = [&] { return static_cast<double>(oktopk::detail::magnitude_bits(4.0F) - of.floor()); };
  double const at_first = below();
  of.learn_miss(true);
  CHECK(below() > at_first);
  of.learn_miss(false);
  of.learn_miss(false);
  CHECK(below() < at_first);
  CHECK(of.pause == 4); // calls, after three misses
  // A sum in every thousand patterns: when the misses are forgotten, k/32 of them lie above the floor and below the k-th.
  for (int hit = 0; hit < 200; ++hit) {
    of.learn_hit(4, 1000 + static_cast<std::int64_t>(below() / 1000), 1000);
  }
  CHECK(of.misses == 0);
  CHECK(std::abs(below() / 1000 - 1000.0 / 32) <= 2);
}

TEST_CASE("foreseen: most of what a rank sends goes to ranks next to it") {
  constexpr int ranks = 16;
  constexpr int near = 4;
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
    std::vector<sent_message> sent;
    oktopk::ok_topk<execution, noting, foreseen_policies<oktopk::coo<>>> allreduce(execution(), noting(comm, sent),
                                                                                   {.length = full_length, .k = 600});
    std::size_t to_near = 0;
    std::size_t to_all = 0;
    for (int call = 0; call < 8; ++call) {
      std::vector<float> values(full_length);
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = shared_and_own({comm.rank(), ranks, call}, static_cast<std::int64_t>(i));
      }
      sent.clear();
      allreduce(to_view(values));
      if (allreduce.last_call().global_reevaluated) {
        continue;
      }
      for (sent_message const& each : sent) {
        std::size_t const bytes = each.use == oktopk::phase::gather ? each.bytes : 0;
        to_all += bytes;
        to_near += each.to / near == comm.rank() / near ? bytes : 0;
      }
    }
    CAPTURE(to_near, to_all);
    CHECK(to_all > 0);
    CHECK(static_cast<double>(to_near) > 0.7 * static_cast<double>(to_all)); // 12 of 15 parts
  });
}
