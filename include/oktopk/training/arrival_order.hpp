// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

namespace oktopk::detail {

/// The order in which tensors come in a step, each noted once.
class arrival_order {
public:
  void note(int tensor) {
    if (std::find(came_.begin(), came_.end(), tensor) == came_.end()) {
      came_.push_back(tensor);
    }
  }

  /// Ends the step: the tensors that have come, the first one first, and behind them the others of `all`, in its order.
  std::vector<int> take(std::vector<int> const& all) {
    for (int const tensor : all) {
      note(tensor);
    }
    return std::exchange(came_, {});
  }

private:
  std::vector<int> came_;
};

} // namespace oktopk::detail
