// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/run_case.hpp"

#include "fuzz/board.hpp"
#include "fuzz/rank_run.hpp"
#include "fuzz/subjects.hpp"

#include <exception>
#include <stdexcept>

namespace oktopk_fuzz {

namespace {

template <class Value>
subject<Value> const& named(std::string const& name) {
  for (auto const& each : subjects<Value>()) {
    if (each.about.name == name) {
      return each;
    }
  }
  throw std::invalid_argument("there is no subject " + name);
}

template <class Value>
case_result run_of(facts const& about, fuzz_case const& what, sabotage on_purpose) {
  subject<Value> const& of = named<Value>(about.name);
  board<Value> all(about, what);
  auto const thrown = oktopk::in_process::run_and_collect(
      what.ranks, [&](oktopk::in_process_communicator comm) { rank_run<Value>(of, what, on_purpose, comm, all)(); });
  for (std::size_t rank = 0; rank < thrown.size(); ++rank) {
    try {
      if (thrown[rank]) {
        std::rethrow_exception(thrown[rank]);
      }
    } catch (std::exception const& e) {
      all.found({"threw", "rank " + std::to_string(rank) + ": " + e.what()}, -1);
    }
  }
  all.result().done.cases = 1;
  return all.result();
}

} // namespace

case_result run_case(facts const& about, fuzz_case const& what, sabotage on_purpose) {
  return about.value_bytes == 4 ? run_of<float>(about, what, on_purpose) : run_of<double>(about, what, on_purpose);
}

} // namespace oktopk_fuzz
