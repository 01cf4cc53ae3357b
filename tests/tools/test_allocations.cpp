// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A collective makes its room before its first message: an allocation that failed later would leave the other ranks
// without the rest.

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/generators.hpp"
#include "support/kokkos_events.hpp"

#include <oktopk/algorithm/gtopk.hpp>
#include <oktopk/comm/decorator.hpp>

using namespace oktopk_tests;

namespace {

/// Notes the arrays that this rank allocates after its first message. Ranks take turns only inside a communicator's
/// calls, so what happens between two calls of a rank is its own doing.
class watched : public oktopk::communicator_decorator<oktopk::in_process_communicator> {
public:
  watched(oktopk::in_process_communicator inner, kokkos_events& events, std::vector<std::string>& late)
      : communicator_decorator(inner), events_(&events), late_(&late) {}

  request isend(std::span<std::byte const> out, int peer, oktopk::phase use) {
    note();
    under_way_ = watching_;
    return inner().isend(out, peer, use);
  }
  request irecv(std::span<std::byte> in, int peer, oktopk::phase use) {
    note();
    under_way_ = watching_;
    return inner().irecv(in, peer, use);
  }
  template <oktopk::execution_space E>
  void start(E const&, std::span<oktopk::bulk_message const> messages, std::span<request> requests) {
    oktopk::start_one_by_one(*this, messages, requests);
  }
  void wait_all(std::span<request> requests) {
    note();
    inner().wait_all(requests);
    events_->take(); // of other ranks
  }

  /// From here on, until the next time.
  void watch() {
    events_->take();
    watching_ = true;
    under_way_ = false;
  }

private:
  void note() {
    for (kokkos_event const& event : events_->take()) {
      if (under_way_ && event.what == kokkos_event::allocation) {
        late_->push_back("rank " + std::to_string(rank()) + ": " + to_string(event));
      }
    }
  }

  kokkos_events* events_;
  std::vector<std::string>* late_;
  bool watching_ = false;
  bool under_way_ = false;
};

} // namespace

TEST_CASE("gtopk allocates nothing between its first message and its last, in its first call either") {
  using algorithm = oktopk::gtopk<execution, watched>;
  for (int const ranks : {2, 3, 4, 7, 8}) {
    for (std::int64_t const k : {0, 1, 40, 500}) {
      CAPTURE(ranks, k);
      kokkos_events events;
      std::vector<std::string> late;
      oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator inner) {
        watched const comm(inner, events, late);
        algorithm allreduce(execution(), comm, {.length = 900, .k = k});
        std::vector<float> values;
        for (std::size_t i = 0; i < 900; ++i) {
          values.push_back(static_cast<float>(heavy_tailed(noise(static_cast<std::uint64_t>(inner.rank()), i))));
        }
        auto const accumulator = to_view(values);
        allreduce.comm().watch();
        allreduce(accumulator);
      });
      for (std::string const& each : late) {
        FAIL_CHECK(each);
      }
    }
  }
}
