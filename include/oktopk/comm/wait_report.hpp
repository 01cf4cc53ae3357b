// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/operation.hpp>
#include <oktopk/comm/time_limit.hpp>
#include <oktopk/core/error.hpp>

#include <chrono>
#include <string>

namespace oktopk {

/// What a rank has waited for and what has come, put together when the wait is over in vain.
class wait_report {
public:
  /// One message of the wait.
  void add(bool complete, bool receives, int peer, phase use) {
    std::string& text = complete ? complete_ : open_;
    text += text.empty() ? "" : complete ? ", " : " and ";
    text += complete ? (receives ? "from rank " : "to rank ") : receives ? "to receive from rank " : "to send to rank ";
    text += std::to_string(peer) + " (" + std::string(name(use)) + ")";
  }

  /// A wait for something else: "for everybody in an allreduce".
  void add(std::string const& what) { open_ += (open_.empty() ? "" : " and ") + what; }

  /// "to receive from rank 1 (gather) and to send to rank 2 (gather)"
  std::string const& open() const { return open_; }

  /// The error of a rank that has waited longer than the limit; all may be complete by now.
  error timed_out(int rank, operation const& during, std::chrono::nanoseconds limit) const {
    std::string const what = open_.empty() ? "" : " " + open_;
    std::string const where = during.name.empty() ? "" : " in " + during.text();
    return {fault::timed_out, "rank " + std::to_string(rank) + " has waited" + what + where + " for more than " +
                                  detail::duration_text(limit) +
                                  ", the time limit; complete: " + (complete_.empty() ? "nothing" : complete_)};
  }

private:
  std::string open_;
  std::string complete_;
};

/// The error of a rank whom another one has told that it has given up.
inline error abandoned_by(int teller, operation const& during, std::string const& reason) {
  return {fault::abandoned, "rank " + std::to_string(teller) + " has given up" +
                                (during.name.empty() ? "" : " (this rank was in " + during.text() + ")") + ": " +
                                reason};
}

} // namespace oktopk
