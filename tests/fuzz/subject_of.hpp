// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/algorithm_participant.hpp"
#include "support/policies.hpp"

#include <oktopk/allreduce.hpp>
#include <oktopk/format/coo_or_dense.hpp>
#include <oktopk/format/packed.hpp>

#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace oktopk_fuzz {

template <class T>
constexpr choice choice_of() {
  if constexpr (std::is_same_v<T, oktopk::exact>) {
    return choice::exact;
  } else if constexpr (std::is_same_v<T, oktopk::reused_threshold>) {
    return choice::reused;
  } else if constexpr (std::is_same_v<T, oktopk::unguarded_threshold>) {
    return choice::unguarded;
  } else if constexpr (std::is_same_v<T, oktopk::gathered_threshold>) {
    return choice::gathered;
  } else {
    static_assert(std::is_same_v<T, oktopk::gaussian>);
    return choice::gaussian;
  }
}

template <class Algorithm, class Base = near_or_far>
std::unique_ptr<participant<typename Algorithm::value_type>>
make_participant(oktopk::in_process_communicator comm, bool far, options const& how, way calls, double rate) {
  return std::make_unique<algorithm_participant<Algorithm, Base>>(comm, far, how, calls, rate);
}

/// What all subjects of an algorithm have in common.
template <class Algorithm>
subject<typename Algorithm::value_type> subject_of(std::string name, family kind) {
  subject<typename Algorithm::value_type> made;
  made.about.name = std::move(name);
  made.about.kind = kind;
  made.about.value_bytes = sizeof(typename Algorithm::value_type);
  made.about.index_bytes = sizeof(typename Algorithm::index_type);
  made.about.state_type = typeid(typename Algorithm::state_type).name();
  made.about.has = names_of<typename Algorithm::options>();
  made.make = &make_participant<Algorithm, near_or_far>;
  return made;
}

template <class Format>
std::int64_t most_bytes_of(std::int64_t entries, std::int64_t length) {
  return Format{}.max_encoded_bytes(entries, {0, length});
}

template <class Format, class Local, class Global, class Partitioner, class Gather = oktopk::balanced_allgatherv>
subject<typename Format::value_type> ok_topk_subject(std::string name) {
  using algorithm =
      oktopk::ok_topk<execution, communicator,
                      oktopk_tests::policies_of<Format, Local, Global, Partitioner, oktopk::rotated, Gather>>;
  auto made = subject_of<algorithm>("ok_topk." + std::move(name), family::ok_topk);
  made.about.local = choice_of<Local>();
  made.about.global = choice_of<Global>();
  made.about.uniform_regions = std::is_same_v<Partitioner, oktopk::uniform>;
  made.about.paper_gather = std::is_same_v<Gather, oktopk::paper_policies::gather>;
  made.about.exact_size = Format::exact_size;
  made.about.most_bytes = &most_bytes_of<Format>;
  made.about.piece_bytes = oktopk::detail::encoded_pieces<execution, Format>::capacity_per_cut;
  return made;
}

template <template <class, class, class> class Algorithm, class Format, class Local>
subject<typename Format::value_type> selecting_subject(std::string name, family kind) {
  auto made =
      subject_of<Algorithm<execution, communicator, oktopk_tests::policies_of<Format, Local>>>(std::move(name), kind);
  made.about.local = choice_of<Local>();
  return made;
}

template <class Format>
subject<typename Format::value_type> gaussian_subject(std::string name) {
  auto made = subject_of<oktopk::gaussian_k<execution, communicator, Format>>(std::move(name), family::topk_a);
  made.about.local = choice::gaussian;
  return made;
}

template <class Algorithm>
subject<typename Algorithm::value_type> dense_subject(std::string name, rounding codec = rounding::none,
                                                      bool sums_round_once = true) {
  auto made = subject_of<Algorithm>(std::move(name), family::dense);
  made.about.codec = codec;
  made.about.sums_round_once = sums_round_once;
  return made;
}

} // namespace oktopk_fuzz
