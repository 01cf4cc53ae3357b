// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

#include "../counts.hpp"
#include "../ptx/types.hpp"

#include <algorithm>

namespace cuda_emulator {

inline oktopk_cuda_emulator_counts counters{};

// The pieces of 32 bytes that the lanes of a warp touch in one instruction, each counted once.
class sector_set {
public:
  void add(u64 address) {
    u64 const sector = address / 32;
    for (u32 k = size_; k-- > 0 && sector <= highest_;) { // above the highest where lanes touch one after another
      if (sectors_[k] == sector) {
        return;
      }
    }
    highest_ = std::max(highest_, sector);
    sectors_[size_++] = sector;
  }

  u32 size() const { return size_; }

private:
  u64 highest_ = 0;
  u32 size_ = 0;
  u64 sectors_[32]; // one for each lane: no access is longer
};

} // namespace cuda_emulator
