// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "training.hpp"

#include "network.hpp"
#include "trainer.hpp"

namespace fashion {
namespace {

template <std::size_t Which>
void train_if_asked(training const& run) {
  constexpr auto candidate = std::get<Which>(algorithms);
  if (candidate.name == run.how.algorithm) {
    using allreduce_type = typename decltype(candidate)::type;
    allreduce_type allreduce(run.exec, run.comm, allreduce_options<allreduce_type>(network::length(), run.how.density));
    trainer(run.exec, run.world, run.how, run.data, allreduce).run();
  }
}

} // namespace

// Every FASHION_TRAINING_PARTS-th algorithm of the list.
template <std::size_t Part>
void train_part(training const& run) {
  constexpr std::size_t all = std::tuple_size_v<decltype(algorithms)>;
  [&run]<std::size_t... Step>(std::index_sequence<Step...>) {
    (train_if_asked<Part + Step * FASHION_TRAINING_PARTS>(run), ...);
  }(std::make_index_sequence<(all + FASHION_TRAINING_PARTS - 1 - Part) / FASHION_TRAINING_PARTS>());
}

template void train_part<FASHION_TRAINING_PART>(training const& run);

} // namespace fashion
