// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/in_process/group.hpp>
#include <oktopk/comm/in_process/message.hpp>
#include <oktopk/comm/in_process/schedule.hpp>

#include <cstddef>
#include <exception>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

namespace oktopk::detail {

/// Some ranks of this process, from the first to the last of their messages.
class in_process_world {
public:
  in_process_world(int ranks, std::optional<in_process::simulation> const& simulated)
      : schedule_(ranks, simulated), all_(schedule_, messages_, first_numbers(ranks)) {}

  in_process_group& all() { return all_; }

  /// Runs one body per rank to its end and gives what each of them threw.
  std::vector<std::exception_ptr> run(std::function<void(int)> const& body, std::size_t stack_bytes) {
    return schedule_.run(body, stack_bytes, [this](int rank) {
      all_.forget(rank);
      if (schedule_.events() != nullptr) {
        schedule_.events()->recall_all_of(rank);
      }
    });
  }

private:
  static std::vector<int> first_numbers(int count) {
    std::vector<int> numbers(static_cast<std::size_t>(count));
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }

  in_process_schedule schedule_;
  in_process_messages messages_;
  in_process_group all_;
};

} // namespace oktopk::detail
