// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/exchange/deliver.hpp>
#include <oktopk/exchange/result_sums.hpp>
#include <oktopk/exchange/schedule.hpp>
#include <oktopk/format/coo.hpp>
#include <oktopk/partition/concept.hpp>
#include <oktopk/select/exact.hpp>
#include <oktopk/sparse/region_sum.hpp>

namespace oktopk {

struct sampled;

/// The policy of each step of `ok_topk`; other algorithms use the first two. For another one, derive and name it:
///
///     struct my_policies : oktopk::default_policies {
///       using partitioner = my_partitioner;
///     };
struct default_policies {
  using format = coo<>;                       ///< entries on the wire, and the types of values and indices
  using local_selector = exact;               ///< lines 2 to 4 of Algorithm 1: which entries of a rank
  using partitioner = sampled;                ///< lines 5 to 7: who owns which region
  using schedule = rotated;                   ///< line 8: how entries reach the owners of their regions
  using deliverer = search_and_gather<exact>; ///< lines 9 to 13: which of the sums reach which ranks
  using sums = selected_sums;                 ///< of what the ranks have selected, or of all that they have
  template <class Value>
  using combiner = sum_of<Value, non_finite_fault>; ///< what line 8 makes of the values of an index
};

/// The same policies with another format.
template <class Format, class Policies = default_policies>
struct with_format : Policies {
  using format = Format;
};

namespace detail {

template <class Selector, class Policies>
struct with_local_selector : Policies {
  using local_selector = Selector;
};

template <class P, class E>
concept has_format = requires { typename P::format; } && sparse_format<typename P::format> &&
                     gradient_value<typename P::format::value_type> && encodes_on<typename P::format, E> &&
                     requires { requires P::format::width() == 1; };

template <class P>
concept has_local_selector = requires { typename P::local_selector; } && selector<typename P::local_selector>;

template <class P, class E, class Comm>
concept has_partitioner = requires { typename P::partitioner; } && partitioner<typename P::partitioner, E, Comm>;

template <class P>
concept has_schedule = requires { typename P::schedule; } && schedule<typename P::schedule>;

template <class P, class E, class Comm>
concept has_deliverer =
    requires { typename P::deliverer; } && deliverer<typename P::deliverer, E, Comm, typename P::format>;

template <class P, class E, class Comm>
concept has_sums = requires { typename P::sums; } && result_sums<typename P::sums, E, Comm, typename P::format>;

template <class P, class Value = typename P::format::value_type>
concept has_combiner =
    requires { typename P::template combiner<Value>; } && combiner<typename P::template combiner<Value>, Value> &&
    !std::is_base_of_v<no_fault, typename P::template combiner<Value>>;

/// A combiner other than the sum goes with steps that add nothing up themselves.
template <class P, class Value = typename P::format::value_type, class Combiner = typename P::template combiner<Value>>
concept combiner_fits =
    std::is_same_v<Combiner, oktopk::sum_of<Value, non_finite_fault>> ||
    (P::format::lossless && !P::sums::may_fill && !(counts_contributors<Combiner, Value> && P::schedule::has_stages));

/// The template arguments of an algorithm. They are checked first, so that the first error of a compiler names the
/// argument that does not fit.
template <class E, class Comm>
struct checked_ranks {
  static_assert(execution_space<E>, "oktopk: the first argument is no execution space");
  static_assert(ranked<Comm>, "oktopk: no communicator: it needs `int rank() const` and `int size() const`");
  static_assert(sends_and_receives<Comm>, "oktopk: no communicator: it needs `request`, `isend` and `irecv`");
  static_assert(waits<Comm>, "oktopk: no communicator: it needs `void wait_all(span of request)`");
  static_assert(cancels<Comm>, "oktopk: no communicator: it needs `void cancel(span of request) noexcept`");
  static_assert(communicator<Comm>, "oktopk: no communicator: its bulk messages do not fit");
};

template <class E, class Comm, class Policies>
struct checked_selection : checked_ranks<E, Comm> {
  static_assert(
      has_format<Policies, E>,
      "oktopk: P::format is no sparse_format of one float or double an entry that encodes on this execution space");
  static_assert(has_local_selector<Policies>, "oktopk: P::local_selector is no selector");
};

template <class E, class Comm, class Policies>
struct checked_policies : checked_selection<E, Comm, Policies> {
  static_assert(has_partitioner<Policies, E, Comm>,
                "oktopk: the partitioner does not serve this communicator: P::partitioner is no partitioner");
  static_assert(has_schedule<Policies>, "oktopk: P::schedule is no schedule");
  static_assert(has_deliverer<Policies, E, Comm>,
                "oktopk: the deliverer does not serve this communicator: P::deliverer is no deliverer");
  static_assert(has_sums<Policies, E, Comm>, "oktopk: P::sums is no result_sums");
  static_assert(has_combiner<Policies>,
                "oktopk: P::combiner is no combiner of gradients, such as mean_of<Value, non_finite_fault>");
  static_assert(
      combiner_fits<Policies>,
      "oktopk: P::combiner is no sum, so P takes a lossless format, selected_sums and, for a mean, one stage");
};

} // namespace detail
} // namespace oktopk
