// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/base.hpp>
#include <oktopk/algorithm/policies.hpp>
#include <oktopk/core/cost.hpp>
#include <oktopk/exchange/reduction_tree.hpp>
#include <oktopk/exchange/residual.hpp>

#include <utility>

namespace oktopk {

/// gTopk (Shi et al., ICDCS'19): a reduction tree whose nodes keep the k largest of their sums, then a broadcast tree.
///
/// The update has k entries: an approximation of the top k of the sum of the selections, for a node drops what is small
/// in its own part of the tree. As published these partial sums are lost where the entry still makes it into the result
/// through another branch; here each node gives what it drops to its own residual (`update.returned()`), so that
/// nothing is lost, and every selected entry counts as contributed. `return_dropped = false` is the published form. A
/// rank sends at most 2k ceil(log2 P) words in ceil(log2 P) messages and receives as many: together the 4k log2 P and 2
/// log2 P of Table 1; beside these 4 words of header a message. Any P. Holds two values and two bits per element.
template <class E, class Comm, class Policies = default_policies>
class gtopk : detail::checked_selection<E, Comm, Policies>, public selecting_base<E, Comm, Policies> {
  using base = selecting_base<E, Comm, Policies>;
  using typename base::format_type;

public:
  using typename base::entries_type;
  using typename base::index_type;
  using typename base::update_type;
  using typename base::value_type;

  struct options {
    std::int64_t length = 0;         ///< of the accumulators
    std::optional<std::int64_t> k{}; ///< entries to select, in [0, length]; this or density
    std::optional<double> density{}; ///< k / length, in (0, 1]; k is rounded, and at least 1
    typename Policies::local_selector::options local_select{};
    bool return_dropped = true; ///< give dropped partial sums to the residual of the node that drops them
    format_type format{};       ///< of the entries on the wire

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("return_dropped", how.return_dropped, "return dropped partial sums to the residual");
      visit("format", how.format, "entries on the wire");
      visit("local", how.local_select, "selection of a rank's own entries");
    }
  };

  /// Collective.
  gtopk(E exec, Comm comm, options const& how)
      : base(std::move(exec), std::move(comm), how, "gtopk",
             [&](agreement& terms) { terms.fact("return_dropped", how.return_dropped); }),
        return_dropped_(how.return_dropped), reduction_tree_(how.format) {
    base::name_ = return_dropped_ ? "gtopk" : "gtopk_published";
  }

  /// 2k ceil(log2 P) for entries of two words, half of Table 1's 4k log2 P, which counts both directions; and 4 words
  /// of header a message.
  double bound_words() const {
    return reduction_tree_.bound_words(base::comm_.size(), base::length_, base::k_).total();
  }

  /// The work of a steady call.
  static call_cost expected_cost(options const& how, int ranks) {
    call_cost const selecting{.selected = static_cast<double>(how.length), .passes = 1};
    return selecting + decltype(reduction_tree_)::expected_cost(how.format, ranks, static_cast<double>(how.length),
                                                                detail::expected_k(how));
  }

  /// One iteration. Collective. The accumulator is only read.
  template <accumulator_input<index_type, value_type, E> Input>
  update_type const& operator()(Input const& accumulator) {
    return base::make_call("oktopk::gtopk", [&](call_context<E, Comm>& call, typename base::state_type& next) {
      entries_type const selection = base::local_selection_.run(call, accumulator, next.local);
      auto const own = detail::as_source<index_type, value_type, E>(accumulator).materialized().values;
      auto const overflow = [&](entries_type const& dropped) {
        return detail::overflow_of_residual<E, index_type, value_type>(call.exec, own, selection.indices, dropped);
      };
      auto const tree = reduction_tree_.run(call, selection, return_dropped_, overflow);
      // As published, what is dropped is lost; what messages rounded off the result is not.
      auto const contributed =
          return_dropped_ ? selection.indices : contributed_indices_.run(call, selection.indices, tree.sums.indices);
      return update_type(tree.sums, contributed, tree.dropped);
    });
  }

private:
  bool return_dropped_;
  detail::reduction_tree<E, Comm, format_type> reduction_tree_;
  detail::contributed_indices<E, index_type> contributed_indices_;
};

/// Deduces from options in braces, as `ok_topk` does.
template <class E, class Comm, class Options = typename gtopk<E, Comm>::options>
gtopk(E, Comm, Options const&) -> gtopk<E, Comm>;

} // namespace oktopk
