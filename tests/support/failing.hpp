// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/catch.hpp"
#include "support/caught.hpp"

#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/decorator.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/comm/revocation.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/format/coo.hpp>

#include <exception>
#include <functional>
#include <new>

// Collectives that are left in the middle: each of their operations fails in turn, on each rank.
namespace oktopk_tests {

/// What the ranks of one world have asked of their communicators, and which of it is to fail.
struct failing_plan {
  std::vector<std::int64_t> operations;                          ///< so far, by rank
  int rank = -1;                                                 ///< that fails; -1: nobody does
  std::int64_t operation = 0;                                    ///< of that rank, from 1
  std::size_t longest = std::numeric_limits<std::size_t>::max(); ///< message that may be sent

  void step(int at) {
    std::int64_t const done = ++operations[static_cast<std::size_t>(at)];
    if (at == rank && done == operation) {
      throw oktopk::error(oktopk::fault::communication, "the network is down");
    }
  }
};

/// All ranks of a world but the last, and a communicator whose n-th operation on one rank fails: a send, a receive, a
/// wait or an allreduce (of sums, which is made of messages here, for the last rank does not take part).
class failing_communicator : public oktopk::communicator_decorator<oktopk::in_process_communicator> {
public:
  failing_communicator(oktopk::in_process_communicator inner, failing_plan& plan)
      : communicator_decorator(inner), plan_(&plan) {}

  int size() const { return in_process_communicator::size() - 1; }

  request isend(std::span<std::byte const> out, int peer, oktopk::phase use) {
    plan_->step(rank());
    if (out.size() > plan_->longest) {
      throw oktopk::error(oktopk::fault::communication, "a message is too long");
    }
    return inner().isend(out, peer, use);
  }
  request irecv(std::span<std::byte> in, int peer, oktopk::phase use) {
    plan_->step(rank());
    return inner().irecv(in, peer, use);
  }
  template <oktopk::execution_space E>
  void start(E const&, std::span<oktopk::bulk_message const> messages, std::span<request> requests) {
    oktopk::start_one_by_one(*this, messages, requests);
  }
  void wait_all(std::span<request> requests) {
    plan_->step(rank());
    inner().wait_all(requests);
  }

  template <class T>
  void allreduce(std::span<T> data, oktopk::reduction, oktopk::phase use) {
    plan_->step(rank());
    std::vector<T> theirs(data.size());
    request one;
    oktopk::detail::cancel_on_unwind const guard(inner(), one);
    auto const finish = [&](request started) {
      one = started;
      inner().wait_all(std::span(&one, 1));
    };
    if (rank() > 0) {
      finish(inner().isend(std::as_bytes(data), 0, use));
      finish(inner().irecv(std::as_writable_bytes(data), 0, use));
      return;
    }
    for (int other = 1; other < size(); ++other) {
      finish(inner().irecv(std::as_writable_bytes(std::span(theirs)), other, use));
      std::transform(data.begin(), data.end(), theirs.begin(), data.begin(), std::plus<T>());
    }
    for (int other = 1; other < size(); ++other) {
      finish(inner().isend(std::as_bytes(data), other, use));
    }
  }

private:
  failing_plan* plan_;
};

/// A format that runs out of memory in its n-th encoding, whichever rank it is of.
struct exhausted_coo : oktopk::coo<> {
  static inline std::int64_t encodings = 0;
  static inline std::int64_t last = std::numeric_limits<std::int64_t>::max();

  static void take_memory() {
    encodings += 1;
    if (encodings == last) {
      throw std::bad_alloc();
    }
  }

  template <oktopk::execution_space E>
  static std::int64_t encode(E const& exec, oktopk::sparse_ref<std::int32_t, float, typename E::memory_space> entries,
                             oktopk::region where, std::byte* out) {
    take_memory();
    return oktopk::coo<>::encode(exec, entries, where, out);
  }
};

/// How one rank fared.
struct interrupted_rank {
  std::vector<double> results;
  std::string thrown; ///< empty where it came to the end
  outcome afterwards; ///< of an attempt to go on with the same communicator
};

using scenario_type = std::function<std::vector<double>(failing_communicator&)>;

/// Runs `scenario(comm)`, which makes what it needs and gives the numbers that it computes, once on each rank. A rank
/// where it throws, which destroys all that the scenario made, tries it again; then it stays until the others have done
/// what they can, for a world forgets the messages of a rank that has returned, and goes on with those that stayed.
inline std::vector<interrupted_rank> run_interrupted(int ranks, failing_plan& plan, scenario_type const& scenario) {
  plan.operations.assign(static_cast<std::size_t>(ranks), 0);
  std::vector<interrupted_rank> all(plan.operations.size());
  oktopk::in_process::run(ranks + 1, [&](oktopk::in_process_communicator inner) {
    if (inner.rank() == ranks) {
      return; // takes no part
    }
    interrupted_rank& mine = all[static_cast<std::size_t>(inner.rank())];
    failing_communicator comm(inner, plan);
    try {
      mine.results = scenario(comm);
    } catch (std::exception const& caught) {
      mine.thrown = caught.what();
    }
    if (!mine.thrown.empty()) {
      mine.afterwards = outcome_of([&] { scenario(comm); });
      oktopk::in_process_communicator left = inner.survivors();
      int ones = 1;
      left.allreduce(std::span(&ones, 1), oktopk::reduction::sum, oktopk::phase::control);
      CHECK(ones == left.size());
    }
  });
  return all;
}

/// What is wrong where one rank should have thrown `first`, and could not go on; others have the right result or hear
/// who has left. Empty where nothing is.
inline std::string interruption_fault(std::vector<interrupted_rank> const& all,
                                      std::vector<interrupted_rank> const& expected, std::string const& first) {
  int failed = 0;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    interrupted_rank const& one = all[rank];
    std::string const who = "rank " + std::to_string(rank);
    if (one.thrown.empty()) {
      if (one.results != expected[rank].results) {
        return who + " has a wrong result";
      }
    } else if (one.thrown == first) {
      failed += 1;
      if (one.afterwards.code != oktopk::fault::communication || !one.afterwards.says("cannot be used any more")) {
        return who + " went on: " + one.afterwards.text;
      }
    } else if (one.thrown.find("has given up") == std::string::npos) {
      return who + " says " + one.thrown;
    } else if (one.afterwards.code != oktopk::fault::abandoned) {
      return who + " went on after it was told: " + one.afterwards.text;
    }
  }
  return failed == 1 ? std::string() : std::to_string(failed) + " ranks say '" + first + "'";
}

/// Lets every operation of every rank fail, one a run; gives the first thing that is wrong.
inline std::string fault_of_failing_operations(int ranks, scenario_type const& scenario) {
  failing_plan plan;
  std::vector<interrupted_rank> const expected = run_interrupted(ranks, plan, scenario);
  std::vector<std::int64_t> const operations = plan.operations;
  for (plan.rank = 0; plan.rank < ranks; ++plan.rank) {
    std::int64_t const all = operations[static_cast<std::size_t>(plan.rank)];
    if (all == 0) {
      return "rank " + std::to_string(plan.rank) + " does nothing that could fail";
    }
    for (plan.operation = 1; plan.operation <= all; ++plan.operation) {
      std::string const fault =
          interruption_fault(run_interrupted(ranks, plan, scenario), expected, "oktopk: the network is down");
      if (!fault.empty()) {
        return "operation " + std::to_string(plan.operation) + " of rank " + std::to_string(plan.rank) + " of " +
               std::to_string(ranks) + " fails: " + fault;
      }
    }
  }
  return {};
}

/// The same for every encoding of a scenario with `exhausted_coo`.
inline std::string fault_of_failing_encodings(int ranks, scenario_type const& scenario) {
  failing_plan plan;
  exhausted_coo::encodings = 0;
  exhausted_coo::last = std::numeric_limits<std::int64_t>::max();
  std::vector<interrupted_rank> const expected = run_interrupted(ranks, plan, scenario);
  std::int64_t const all = exhausted_coo::encodings;
  std::string fault = all == 0 ? "nothing is encoded" : "";
  for (std::int64_t which = 1; which <= all && fault.empty(); ++which) {
    exhausted_coo::encodings = 0;
    exhausted_coo::last = which;
    fault = interruption_fault(run_interrupted(ranks, plan, scenario), expected, std::bad_alloc().what());
    fault = fault.empty() ? fault : "encoding " + std::to_string(which) + " fails: " + fault;
  }
  exhausted_coo::last = std::numeric_limits<std::int64_t>::max();
  return fault;
}

} // namespace oktopk_tests
