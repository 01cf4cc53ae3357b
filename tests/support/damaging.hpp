// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/decorator.hpp>
#include <oktopk/comm/in_process.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace oktopk_tests {

/// One message of all that the ranks of a run send, in the order in which they do, and what becomes of it.
struct damage_plan {
  enum class kind : std::uint8_t { none, flip, lose, twice };

  kind what = kind::none;
  std::int64_t message = 0;                  ///< which one, from 0 on
  std::size_t bit = 0;                       ///< the one to flip, modulo the bits of the message
  std::int64_t sent = 0;                     ///< messages so far
  bool done = false;                         ///< whether it has come to that
  std::deque<std::vector<std::byte>> kept{}; // what was sent instead
};

/// A transport over `in_process` that damages one message. All ranks have the same plan.
class damaging_communicator : public oktopk::communicator_decorator<oktopk::in_process_communicator> {
  using inner_type = oktopk::in_process_communicator;

public:
  damaging_communicator(inner_type inner, damage_plan& plan) : communicator_decorator(inner), plan_(&plan) {}

  request isend(std::span<std::byte const> out, int peer, oktopk::phase use) {
    if (plan_->sent++ != plan_->message || plan_->what == damage_plan::kind::none) {
      return inner().isend(out, peer, use);
    }
    plan_->done = true;
    auto& bytes = plan_->kept.emplace_back(out.begin(), out.end());
    switch (plan_->what) {
    case damage_plan::kind::flip:
      if (!bytes.empty()) {
        std::size_t const bit = plan_->bit % (8 * bytes.size());
        bytes[bit / 8] ^= std::byte(1U << (bit % 8));
      } else {
        plan_->done = false;
      }
      return inner().isend(bytes, peer, use);
    case damage_plan::kind::lose: return request(); // taken, and gone
    default: lost_.push_back(inner().isend(bytes, peer, use)); return inner().isend(out, peer, use);
    }
  }

  template <class E>
  void start(E const&, std::span<oktopk::bulk_message const> messages, std::span<request> requests) {
    oktopk::start_one_by_one(*this, messages, requests);
  }

private:
  damage_plan* plan_;
  std::vector<request> lost_;
};

} // namespace oktopk_tests
