// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/base.hpp>
#include <oktopk/algorithm/options.hpp>
#include <oktopk/format/concept.hpp>

#include <cstdint>
#include <optional>
#include <utility>

namespace oktopk {

/// Common part of the algorithms that select k entries: `algorithm_base` for the values and indices of a sparse format,
/// and another k from call to call.
template <class E, class Comm, class Policies>
class selecting_base
    : public algorithm_base<E, Comm, typename Policies::format::index_type, typename Policies::format::value_type> {
  using base = algorithm_base<E, Comm, typename Policies::format::index_type, typename Policies::format::value_type>;

public:
  /// Selects another number of entries from the next call on, in [0, length]. Collective; an `error` on every rank
  /// where it is out of range or differs between ranks, and k is then as before. States and residuals go on. A reused
  /// threshold is kept until it is due or leaves its band around k.
  void set_k(std::int64_t k) {
    agreement terms("set_k");
    std::int64_t const resolved = detail::resolve_k(base::length_, k, std::nullopt, terms);
    terms.fact("k", resolved).check_on(base::comm_);
    base::k_ = resolved;
  }

protected:
  selecting_base(E exec, Comm comm, std::int64_t length) : base(std::move(exec), std::move(comm), length) {}
  ~selecting_base() = default;
};

} // namespace oktopk
