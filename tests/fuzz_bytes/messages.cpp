// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Whole calls of which some messages arrive other than they were sent: headers, sizes, counts and entries.

#include "support/policies.hpp"
#include "target.hpp"

#include <oktopk/algorithm/gtopk.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/algorithm/topk_dsa.hpp>
#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/decorator.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/format/packed.hpp>
#include <oktopk/format/values/fixed.hpp>
#include <oktopk/select/reused_threshold.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

namespace oktopk_fuzz {
namespace {

using execution = Kokkos::DefaultHostExecutionSpace;
using vector = Kokkos::View<float*, execution::memory_space>;

constexpr std::int64_t length = 160;
constexpr int ranks = 3;

/// What happens to one message of the world: the n-th that is sent.
struct change {
  std::uint8_t kind = 0; ///< a number of 8 bytes overwritten, a byte overwritten, or another length
  std::uint16_t at = 0;
  std::uint64_t value = 0;
};

struct plan {
  std::map<std::uint8_t, change> changes;
  std::uint8_t sent = 0;
  bool damages = false;   // from the start: also what ranks agree on when an object is made
  std::deque<bytes> held; // what is sent in place of other bytes
};

/// In-process ranks whose messages are damaged on the way.
class damaging : public oktopk::communicator_decorator<oktopk::in_process_communicator> {
public:
  damaging(oktopk::in_process_communicator inner, plan& how) : communicator_decorator(std::move(inner)), plan_(&how) {}

  request isend(std::span<std::byte const> out, int peer, oktopk::phase use) {
    auto const found = plan_->changes.find(plan_->sent++);
    if (!plan_->damages || found == plan_->changes.end() || plan_->held.size() > 64) {
      return inner().isend(out, peer, use);
    }
    change const& how = found->second;
    bytes& other = plan_->held.emplace_back(out.begin(), out.end());
    if (how.kind % 4 == 0 && use != oktopk::phase::control) { // of control messages both sides know the size
      other.resize(how.value % (other.size() + 1));
    } else if (how.kind % 4 == 1 && !other.empty()) {
      other[how.at % other.size()] = static_cast<std::byte>(how.value);
    } else if (other.size() >= sizeof how.value) {
      std::memcpy(other.data() + how.at % (other.size() / sizeof how.value) * sizeof how.value, &how.value,
                  sizeof how.value);
    }
    return inner().isend(other, peer, use);
  }
  template <oktopk::execution_space E>
  void start(E const&, std::span<oktopk::bulk_message const> messages, std::span<request> requests) {
    oktopk::start_one_by_one(*this, messages, requests);
  }

private:
  plan* plan_;
};

vector accumulator_of(int rank) {
  vector made("accumulator", length);
  for (std::size_t i = 0; i < made.extent(0); ++i) {
    auto const x = static_cast<unsigned>(i) * 2654435761U + static_cast<unsigned>(rank) * 40503U;
    made(i) = static_cast<float>(static_cast<int>(x >> 16 & 0x3ffU) - 512) * 0.01F;
  }
  return made;
}

// The library's own counts and indices of an update that a call returned: what a caller would write by.
template <class Allreduce>
void call(damaging comm, std::int64_t k, plan& changes) {
  Allreduce allreduce(execution(), comm, {.length = length, .k = k});
  if (comm.rank() == 0 && !std::exchange(changes.damages, true)) {
    changes.sent = 0;
  }
  vector const accumulator = accumulator_of(comm.rank());
  for (int iteration = 0; iteration < 2; ++iteration) {
    auto const& update = allreduce(accumulator);
    for (auto const& indices : {update.indices(), update.contributed(), update.returned().indices}) {
      for (std::size_t i = 0; i < indices.extent(0); ++i) {
        require(indices(i) >= 0 && indices(i) < length, "an update with an index outside the vector");
      }
    }
  }
}

void call_one(std::uint8_t which, damaging const& comm, plan& changes) {
  using C = damaging;
  using E = execution;
  using packed = oktopk::packed<float, std::int32_t, oktopk::fixed_values<4>>;
  using reused = oktopk::reused_threshold;
  switch (which % 7) {
  case 0: return call<oktopk::ok_topk<E, C>>(comm, 20, changes);
  case 1: return call<oktopk::ok_topk<E, C, oktopk::with_format<packed>>>(comm, 20, changes);
  case 2:
    return call<oktopk::ok_topk<E, C, oktopk_tests::policies_of<oktopk::coo<>, reused, reused>>>(comm, 20, changes);
  case 3: return call<oktopk::topk_a<E, C>>(comm, 20, changes);
  case 4: return call<oktopk::topk_dsa<E, C>>(comm, 60, changes);
  case 5: return call<oktopk::gtopk<E, C>>(comm, 20, changes);
  default: return call<oktopk::gtopk<E, C, oktopk::with_format<packed>>>(comm, 20, changes);
  }
}

} // namespace

void run(std::span<std::byte const> input) {
  drawn from(input);
  auto const which = from.number<std::uint8_t>();
  plan changes;
  changes.damages = which >= 128;
  for (int i = 0; i < 6 && !from.empty(); ++i) {
    auto const message = from.number<std::uint8_t>();
    change one;
    one.kind = from.number<std::uint8_t>();
    one.at = from.number<std::uint16_t>();
    one.value = from.number<std::uint64_t>();
    changes.changes[message] = one;
    auto const report = oktopk::detail::fault_report::unpacked(one.value);
    require(report.as_error("messages", 0, length).what() != nullptr, "a fault without words");
  }
  try {
    oktopk::in_process::run(
        ranks, [&](oktopk::in_process_communicator comm) { call_one(which, damaging(comm, changes), changes); });
  } catch (oktopk::error const&) {
  }
}

namespace {

written of(std::uint8_t which, std::uint8_t message, change const& how) {
  return written().number(which).number(message).number(how.kind).number(how.at).number(how.value);
}

} // namespace

std::vector<bytes> seeds() {
  // What was found before: a row of candidates that tells of more than it lists, and sums of counts that overflow.
  std::vector<bytes> made{of(2, 0x24, {.kind = 1, .at = 0x600c, .value = 0x40e94400c0}),
                          of(1, 0x06, {.kind = 2, .at = 0xafa0, .value = 0xff000000007fb79f})};
  std::uint64_t const values[] = {
      0, 1, 161, ~std::uint64_t(0), std::uint64_t(1) << 40, std::uint64_t(7) << 56, 0x7fc000007fc00000U};
  for (std::uint8_t which = 0; which < 7; ++which) {
    for (std::uint8_t message = 0; message < 24; message = static_cast<std::uint8_t>(message + 3)) {
      for (std::uint8_t kind = 0; kind < 3; ++kind) {
        made.push_back(
            of(which, message,
               {.kind = kind, .at = static_cast<std::uint16_t>(message % 2), .value = values[(message + kind) % 7]}));
      }
    }
  }
  return made;
}

} // namespace oktopk_fuzz
