// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/sparse_sum.hpp>
#include <oktopk/exchange/deliver_part.hpp>
#include <oktopk/partition/given_regions.hpp>

#include <utility>
#include <vector>

// Sums of sparse vectors that not all ranks get.
namespace oktopk {

/// Those of `sparse_reduce_scatter`.
template <detail::summed_value Value = float, gradient_index Index = std::int32_t>
struct scatter_policies : sum_policies<Value, Index> {
  using deliverer = own_region;
};

/// Those of `sparse_reduce`.
template <detail::summed_value Value = float, gradient_index Index = std::int32_t>
struct owner_policies : scatter_policies<Value, Index> {
  using partitioner = given_regions;
};

/// Those of a `sparse_sum` for one rank: `oktopk::sparse_sum<E, Comm, oktopk::root_policies<>>`, with the option
/// `.deliver = {.root = 3}`.
template <detail::summed_value Value = float, gradient_index Index = std::int32_t>
struct root_policies : sum_policies<Value, Index> {
  using deliverer = to_root;
};

/// `sparse_sum` of which each rank keeps the sums of its own region, `own_region()` of the result: regions are contiguous
/// and even in what is there in the call. Costs what `sparse_sum` does up to the sums, and nothing after.
template <class E, class Comm, class Policies = scatter_policies<>>
class sparse_reduce_scatter : public sparse_sum<E, Comm, Policies> {
  using base = sparse_sum<E, Comm, Policies>;

public:
  using typename base::options;

  /// Collective; as that of `sparse_sum`.
  sparse_reduce_scatter(E exec, Comm comm, options const& how)
      : base(std::move(exec), std::move(comm), how, "sparse_reduce_scatter") {}
};

/// The sum of sparse vectors whose indices have owners, each of which gets the sums of what it owns: contributions to
/// rows of a matrix or of a right-hand side that is distributed over the ranks.
///
/// No plan is made beforehand, and entries may lie elsewhere in each call. A rank sends a message to each owner that it
/// has entries for, and none to others. Costs 2(P-1)(1 + P/64) words in ceil(log2 P) messages, by which all ranks hear who
/// has entries for whom, and the entries with 2 words of header a message. Memory: a dense array of the indices that this
/// rank owns. Sums, order and errors are those of `sparse_sum`.
template <class E, class Comm, class Policies = owner_policies<>>
class sparse_reduce : public sparse_sum<E, Comm, Policies> {
  using base = sparse_sum<E, Comm, Policies>;

public:
  /// As those of `sparse_sum`; `boundaries` are the same on all ranks.
  struct options {
    detail::element_count length = 0;                ///< of the vectors: indices lie in [0, length)
    std::vector<std::int64_t> boundaries{};          ///< P+1 of them: rank r owns [boundaries[r], boundaries[r + 1])
    detail::element_count width = 1;                 ///< values of each index, a row; at least 1
    bool unique = false;                             ///< a promise that no index is given twice in a call
    bool ascending = false;                          ///< a promise that each index is above the one before
    bool finite = false;                             ///< a value that is NaN or infinite is an error on all ranks
    typename Policies::schedule::options schedule{}; ///< how entries reach the owners
    typename Policies::format format{};              ///< of the entries on the wire
  };

  /// Collective; also an `error` (`option_out_of_range`) of boundaries that do not ascend from 0 to the length.
  sparse_reduce(E exec, Comm comm, options const& how)
      : base(std::move(exec), comm, for_base(how, comm.size()), "sparse_reduce") {}

private:
  static typename base::options for_base(options const& how, int ranks) {
    return {.length = how.length,
            .width = how.width,
            .unique = how.unique,
            .ascending = how.ascending,
            .finite = how.finite,
            .partition = {how.boundaries, how.length, ranks},
            .schedule = how.schedule,
            .format = how.format};
  }
};

/// They deduce from options in braces, as `ok_topk` does.
template <class E, class Comm, class Options = typename sparse_reduce_scatter<E, Comm>::options>
sparse_reduce_scatter(E, Comm, Options const&) -> sparse_reduce_scatter<E, Comm>;
template <class E, class Comm, class Options = typename sparse_reduce<E, Comm>::options>
sparse_reduce(E, Comm, Options const&) -> sparse_reduce<E, Comm>;

} // namespace oktopk
