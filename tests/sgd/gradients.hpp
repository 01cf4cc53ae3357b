// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "algorithm/record.hpp"

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/catalogue/policies.hpp>

#include <sstream>

namespace oktopk_tests {

/// What trainings are tested over: any algorithm, by its text. That it gives what the typed one does is tested elsewhere.
using any = oktopk::any_allreduce<execution>;

inline any over(oktopk::in_process_communicator const& comm, std::string const& text,
                oktopk::gradient_size const& size) {
  return oktopk::make_allreduce(execution(), comm, text, size);
}

/// The gradient of a rank in an iteration, correlated between ranks and iterations; the same in every run.
template <std::int64_t Length, int Ranks>
std::vector<float> correlated_gradient(int rank, int iteration) {
  std::vector<float> gradient(static_cast<std::size_t>(Length));
  correlated{5, 3}({rank, Ranks, iteration}, gradient);
  return gradient;
}

/// The bytes of a checkpoint: all of a state, to the bit.
template <class State>
std::string saved_bytes(State const& state) {
  std::ostringstream file;
  oktopk::save(file, state);
  return file.str();
}

struct chosen_selectors : oktopk::default_policies {
  using local_selector = oktopk::catalogue::any_local_selector;
  using deliverer = oktopk::catalogue::any_deliverer;
};

/// What the catalogue's `ok_topk` saves.
using state_of_ok_topk = oktopk::ok_topk<execution, oktopk::any_communicator, chosen_selectors>::state_type;

/// Changes what an `any` has saved of an algorithm with that state.
template <class State, class Change>
void change_inside(any::state_type& saved, Change const& change) {
  std::istringstream file(std::string(saved.checkpoint.begin(), saved.checkpoint.end()));
  auto inside = oktopk::load<State>(file);
  change(inside);
  saved.checkpoint = oktopk::detail::checkpoint_of(inside);
}

} // namespace oktopk_tests
