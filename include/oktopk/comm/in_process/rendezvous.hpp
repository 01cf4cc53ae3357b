// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace oktopk::detail {

/// The place where ranks of one process hand their numbers over for an allreduce: the last one reduces for all.
class in_process_rendezvous {
public:
  /// Whether everybody has left the one before.
  bool is_free() const { return left_ == 0; }
  /// Whether everybody has joined.
  bool is_over() const { return left_ > 0; }

  template <class T>
  void join(int rank, int ranks, std::span<T> data, reduction op) {
    if (arrived_ == 0) {
      data_.assign(static_cast<std::size_t>(ranks), nullptr);
      sizes_.assign(static_cast<std::size_t>(ranks), 0);
    }
    data_[static_cast<std::size_t>(rank)] = data.data();
    sizes_[static_cast<std::size_t>(rank)] = data.size();
    if (++arrived_ == ranks) {
      mismatch_ = std::any_of(sizes_.begin(), sizes_.end(), [&](std::size_t size) { return size != data.size(); });
      if (!mismatch_) {
        reduce<T>(data.size(), op);
      }
      arrived_ = 0;
      left_ = ranks;
    }
  }

  void leave() {
    left_ -= 1;
    if (mismatch_) {
      throw error(fault::communication, "an allreduce was joined with different lengths");
    }
  }

private:
  // In the order of ranks.
  template <class T>
  void reduce(std::size_t count, reduction op) {
    for (std::size_t i = 0; i < count; ++i) {
      T result = static_cast<T*>(data_[0])[i];
      for (std::size_t rank = 1; rank < data_.size(); ++rank) {
        T const other = static_cast<T*>(data_[rank])[i];
        switch (op) {
        case reduction::sum: result += other; break;
        case reduction::min: result = other < result ? other : result; break;
        case reduction::max: result = result < other ? other : result; break;
        }
      }
      for (void* const target : data_) {
        static_cast<T*>(target)[i] = result;
      }
    }
  }

  int arrived_ = 0;
  int left_ = 0;
  std::vector<void*> data_;
  std::vector<std::size_t> sizes_;
  bool mismatch_ = false;
};

} // namespace oktopk::detail
