// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/subjects.hpp"
#include "simulate/scenario.hpp"

#ifdef OKTOPK_TESTS_WITH_XXHASH
#include "fuzz/subject_of.hpp"
#include "support/policies.hpp"

#include <oktopk/algorithm/dense_family.hpp>
#include <oktopk/allreduce.hpp>
#include <oktopk/comm/checked.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/format/coo_or_dense.hpp>
#endif

namespace oktopk_simulate {

#ifdef OKTOPK_TESTS_WITH_XXHASH

namespace {

using oktopk_fuzz::execution;
using oktopk_fuzz::subject;
using sealed = oktopk::checked<oktopk::in_process_communicator>;
using communicator = oktopk::counted<sealed>;

// The same facts as over a communicator that is not checked.
template <class Algorithm>
subject<float> checked_one(std::string const& name) {
  subject<float> made = oktopk_fuzz::named(oktopk_fuzz::subjects<float>(), name);
  made.make = &oktopk_fuzz::make_participant<Algorithm, sealed>;
  return made;
}

} // namespace

std::vector<subject<float>> const& checked_subjects() {
  using namespace oktopk;
  using C = communicator;
  using E = execution;
  using entry = coo<float, std::int32_t>;
  using mixed = coo_or_dense<float, std::int32_t>;
  static std::vector<subject<float>> const all = {
      checked_one<ok_topk<E, C, oktopk_tests::policies_of<entry, exact, exact, evened>>>(
          "ok_topk.f32_i32.exact.exact.evened"),
      checked_one<ok_topk<E, C, oktopk_tests::policies_of<entry, reused_threshold, reused_threshold, evened>>>(
          "ok_topk.f32_i32.reused.reused.evened"),
      checked_one<ok_topk<E, C, oktopk_tests::policies_of<entry, exact, exact, oktopk::balanced>>>(
          "ok_topk.f32_i32.exact.exact.balanced"),
      checked_one<topk_a<E, C, oktopk_tests::policies_of<entry, exact>>>("topk_a.f32_i32.exact"),
      checked_one<topk_dsa<E, C, oktopk_tests::policies_of<mixed, exact>>>("topk_dsa.f32_i32_or_dense.exact"),
      checked_one<gtopk<E, C, oktopk_tests::policies_of<entry, exact>>>("gtopk.f32_i32.exact"),
      checked_one<dense_ring<E, C, float, std::int32_t>>("dense.ring.f32"),
  };
  return all;
}

#else

std::vector<oktopk_fuzz::subject<float>> const& checked_subjects() {
  static std::vector<oktopk_fuzz::subject<float>> const none;
  return none;
}

#endif

} // namespace oktopk_simulate
