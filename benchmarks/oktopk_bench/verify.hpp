// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "own_part.hpp"

#include <oktopk/comm/agreement.hpp>
#include <oktopk/comm/message_group.hpp>
#include <oktopk/comm/revocation.hpp>
#include <oktopk/core/integers.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace oktopk_bench {

/// Entries that are compared at a time: bounds the memory of the comparison whatever the length.
inline constexpr std::int64_t verify_block = std::int64_t(1) << 20;

template <class T>
std::uint64_t digest_of(std::vector<T> const& values) {
  oktopk::detail::fnv1a digest;
  digest.add(values.data(), values.size() * sizeof(T));
  return digest.value();
}

/// Adds every rank's contributions to the entries [begin, end) on rank 0.
template <oktopk::communicator Comm>
void gather_block(Comm& comm, own_part const& part, std::int64_t begin, std::int64_t end, block_sums& sums) {
  std::vector<contribution> parts;
  part.append_contributions(begin, end, parts);
  auto const use = oktopk::phase::control;
  space const exec;
  oktopk::detail::message_group<Comm> messages; // a size travels ahead where its receiver is not told it
  oktopk::detail::cancel_on_unwind const guard(comm, messages.requests());
  if (comm.rank() != 0) {
    messages.reset(1);
    messages.send(std::as_writable_bytes(std::span(parts)), 0, use);
    messages.start(exec, comm);
    messages.wait_all(comm);
    return;
  }
  sums.clear();
  sums.add(parts);
  // A rank says at most once of an entry what it gave and took back and, of rounded ones, two numbers more.
  parts.resize(static_cast<std::size_t>((sums.rounded() ? 4 : 2) * (end - begin)));
  for (int rank = 1; rank < comm.size(); ++rank) {
    messages.reset(1);
    messages.receive(std::as_writable_bytes(std::span(parts)), rank, use);
    messages.start(exec, comm);
    messages.wait_all(comm);
    auto const arrived = static_cast<std::size_t>(messages.bytes(0)) / sizeof(contribution);
    sums.add(std::span<contribution const>(parts).first(arrived));
  }
}

/// Compares one call's results on all ranks with a reference computed independently of the library.
///
/// Collective; `call` names the call in the sentence that every rank throws where something is wrong. `boundaries`: of
/// the regions of the ranks, the same on all of them.
template <oktopk::communicator Comm>
void verify(Comm& comm, std::string const& call, std::span<float const> accumulator, host_result const& result,
            oktopk::call_statistics const& figures, allreduce_promises const& promised, std::int64_t k,
            std::span<std::int64_t const> boundaries) {
  own_part const part(accumulator, result, figures, promised, k, comm.rank(), boundaries);
  auto const settle = [&](std::string const& fault, oktopk::agreement agreed) {
    if (!fault.empty()) {
      agreed.note(oktopk::fault::bad_state, fault);
    }
    agreed.check_on(comm);
  };
  settle(part.problem(), oktopk::agreement("wrong result of " + call)
                             .fact("size of the result", result.indices.size())
                             .fact("digest of its indices", digest_of(result.indices))
                             .fact("digest of its values", digest_of(result.values)));
  if (!promised.conserves) {
    return;
  }

  auto const length = static_cast<std::int64_t>(accumulator.size());
  block_sums sums(comm.rank() == 0 ? std::min(length, verify_block) : 0, rounds_entries(promised));
  result_check check(result.indices, result.values);
  for (std::int64_t begin = 0; begin < length; begin += verify_block) {
    std::int64_t const end = std::min(begin + verify_block, length);
    gather_block(comm, part, begin, end, sums);
    if (comm.rank() == 0) {
      check.take(begin, end, sums);
    }
  }
  std::string fault;
  if (comm.rank() == 0) {
    fault = check.wrong_value();
    // Selected entries that did not make it into the result are there only where the ranks choose among sums.
    bool const has_candidates = promised.global && part.knows_candidates();
    if (fault.empty() && !(promised.global && part.knows_selection())) {
      fault = check.stray();
    }
    if (fault.empty() && has_candidates && promised.global->largest && !codes_other_sums(promised)) {
      fault = check.wrong_choice();
    }
    auto const expected = std::min(k, check.candidates());
    if (fault.empty() && has_candidates && promised.global->is_exact() && figures.global_selected != expected) {
      fault = "the result has " + std::to_string(figures.global_selected) + " entries instead of " +
              std::to_string(expected);
    }
  }
  settle(fault, oktopk::agreement("wrong result of " + call));
}

} // namespace oktopk_bench
