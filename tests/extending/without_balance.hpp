// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/exchange/allgatherv.hpp>
#include <oktopk/exchange/concept.hpp>

/// The parts as they are, never balanced.
struct without_balance {
  struct options {};

  without_balance() : without_balance(options{}) {}
  explicit without_balance(options) {}

  static std::string describe() { return "without_balance"; }
  static std::string problem() { return {}; }

  template <oktopk::execution_space E, oktopk::communicator Comm, oktopk::sparse_format Format>
  class step {
  public:
    step(without_balance const&, Format const& format) : allgatherv_(format) {}

    oktopk::gathered<Format, E> run(oktopk::call_context<E, Comm>& call, oktopk::entries_of<Format, E> mine,
                                    std::span<std::int64_t const> sizes) {
      return {allgatherv_.run(call, mine, sizes), false};
    }

    // Uneven parts are forwarded as they are: in each of ceil(log2 P) steps everything at most.
    oktopk::word_bound bound_words(int ranks, std::int64_t length, std::int64_t entries) const {
      double const steps = oktopk::detail::ceil_log2(ranks);
      return allgatherv_.bound_words(ranks, length, steps * static_cast<double>(entries), ranks - 1);
    }

  private:
    oktopk::allgatherv<E, Comm, Format> allgatherv_;
  };
};
