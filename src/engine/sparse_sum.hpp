// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/any_communicator.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace oktopk::detail {

/// What `oktopk_engine_contribution` says; see there.
struct sparse_contribution {
  std::int64_t const* indices = nullptr;
  void const* values = nullptr;
  std::int64_t count = 0;
  std::int32_t element = 0;
  std::int64_t length = 0;
  std::int64_t width = 1;
  std::string subject;
  std::string fault; ///< in words; empty where all is well
};

/// A sum, in memory of its own.
struct summed_entries {
  std::int64_t count = 0;
  std::unique_ptr<std::int64_t[]> indices;
  std::unique_ptr<std::byte[]> values;
};

/// A `sparse_sum` of values of one type.
struct any_sparse_adder {
  any_sparse_adder() = default;
  any_sparse_adder& operator=(any_sparse_adder&&) = delete;
  virtual ~any_sparse_adder() = default;
  virtual summed_entries sum(sparse_contribution const& given) = 0;
};

/// The sums of sparse vectors of a group, with an object for each type, width and length that was called, whose buffers stay: those of
/// the last 64.
class sparse_sums {
public:
  /// Collective. The sum of what all ranks give. An `error` on every rank, and no entry has been sent then.
  summed_entries sum(any_communicator comm, std::string const& caller, sparse_contribution const& given);

private:
  struct kept {
    std::int32_t element;
    std::int64_t length;
    std::int64_t width;
    std::unique_ptr<any_sparse_adder> of;
  };

  static constexpr std::size_t most = 64; // the same on all ranks, since a new object is made by all of them

  std::vector<kept> all_; // the one that was called last is the last one
};

} // namespace oktopk::detail
