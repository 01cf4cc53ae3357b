// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "training.hpp"

#include "network.hpp"
#include "textbook_sum.hpp"
#include "trainer.hpp"

#include <memory>
#include <utility>

namespace fashion {

namespace {

template <bool Exact>
void train_with(training const& run, std::shared_ptr<any_sum> sum) {
  typename textbook_dense<Exact>::options how;
  how.length = network::length();
  how.reduce.sum = std::move(sum);
  textbook_dense<Exact> allreduce(run.exec, run.comm, how);
  trainer(run.exec, run.world, run.how, run.data, allreduce).run();
}

} // namespace

void train_textbook(training const& run) {
  std::shared_ptr<any_sum> const sum = make_textbook_sum(run.how);
  sum->lossless() ? train_with<true>(run, sum) : train_with<false>(run, sum);
}

} // namespace fashion
