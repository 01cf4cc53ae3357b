// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/options.hpp>
#include <oktopk/select/concept.hpp>
#include <oktopk/select/exact.hpp>
#include <oktopk/select/kernel/chunks.hpp>
#include <oktopk/select/kernel/source.hpp>

#include <algorithm>

namespace oktopk {

/// The largest magnitudes of every chunk of so many values (DeMo and DisTrO, Peng et al. 2024; Templar and Psyche send
/// such selections): no threshold of the whole vector, so each part of it is heard.
///
/// 1. With `per_chunk`: that many of every chunk, whatever k is, unless k is 0. A shorter chunk at the end gives as
///    many, or all it has.
/// 2. Without: exactly k in all. The shorter chunk at the end, of r values, gives floor(k r / n); each whole chunk
///    gives the same number, or one more, and those with one more lie evenly among the others. With fewer entries than
///    chunks, some chunks give nothing.
///
/// In a chunk, ties go to the lower index, and values that are not finite come first. Where a chunk gives nothing and
/// has a value that is not finite, the k largest of the whole vector are selected, so that the fault is found.
///
/// Reads the values once, and again those of chunks that give nothing, to find what is not finite. Carries nothing from
/// call to call. For local selections.
struct chunked {
  struct options {
    std::int64_t chunk = 4096;  ///< values in a chunk, 64 to 1,048,576
    std::int64_t per_chunk = 0; ///< entries of each chunk, up to `chunk`; 0 for what k asks for

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("chunk", how.chunk, "values in a chunk", between(64, 1 << 20));
      visit("per_chunk", how.per_chunk, "entries of each chunk; 0 for what k asks for");
    }
  };

  template <gradient_value Value>
  using state = detail::no_state;

  chunked() : chunked(options{}) {}
  explicit chunked(options how) : options_(how) {}

  static std::string name() { return "chunked"; }

  std::string describe() const { return detail::describe_options(name(), options_); }

  std::string problem() const {
    if (options_.chunk < 64 || options_.chunk > (1 << 20)) {
      return "chunk must be 64 to 1048576, not " + std::to_string(options_.chunk);
    }
    if (options_.per_chunk < 0 || options_.per_chunk > options_.chunk) {
      return "per_chunk must be 0 to chunk, which is " + std::to_string(options_.chunk) + ", not " +
             std::to_string(options_.per_chunk);
    }
    return {};
  }

  bool bounded() const { return options_.per_chunk == 0; }

  std::int64_t capacity(std::int64_t k, std::int64_t length) const {
    return k > 0 ? shares(std::min(k, length), length).total() : 0;
  }

  template <execution_space E, gradient_index Index, gradient_value Value, selection_group Group,
            selection_source Source>
  selection<Index, Value, typename E::memory_space> select(selection_context<E, Index, Value, Group> const& context,
                                                           Source const& source, state<Value>&) const {
    auto const& [exec, k, iteration, group, workspace] = context;
    std::int64_t const size = source.size();
    if (k <= 0 || size == 0) {
      source.materialize(exec);
      return {workspace.entries(0), group.gather_counts(0), true};
    }
    auto const each = shares(std::min(k, size), size);
    std::int64_t count = each.total();
    workspace.reserve(exec, std::max<std::int64_t>(count, 1));
    detail::select_chunks(exec, source, each, workspace.indices.data(), workspace.values.data());
    auto const loaded = source.materialized();
    std::int64_t const overlooked = size - each.first_without_share(); // values that no chunk looked for
    array_ref<Value const, typename E::memory_space> const rest(loaded.values.data() + size - overlooked,
                                                                static_cast<std::size_t>(overlooked));
    if (overlooked > 0 && detail::first_non_finite<E, Value>(exec, rest) < overlooked) {
      count = detail::largest_entries<E, Index, Value>(exec, loaded, k, workspace).size();
    }
    detail::fence(exec, "oktopk::select::chunks");
    return {workspace.entries(count), group.gather_counts(count), true};
  }

private:
  detail::chunk_shares shares(std::int64_t k, std::int64_t length) const {
    return options_.per_chunk > 0 ? detail::same_shares(length, options_.chunk, options_.per_chunk)
                                  : detail::proportional_shares(length, options_.chunk, k);
  }

  options options_;
};

} // namespace oktopk
