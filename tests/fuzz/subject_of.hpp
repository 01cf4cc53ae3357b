// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/algorithm_participant.hpp"
#include "support/policies.hpp"

#include <oktopk/allreduce.hpp>
#include <oktopk/format/coo_or_dense.hpp>
#include <oktopk/format/packed.hpp>

#include <type_traits>
#include <typeinfo>

namespace oktopk_fuzz {

// The parts of the list.
std::vector<subject> ok_topk_of_floats();
std::vector<subject> ok_topk_of_doubles();
std::vector<subject> dense_allreduces();

template <class Selector>
inline constexpr choice choice_of = Selector::has_no_rule_in_the_checks;
template <>
inline constexpr choice choice_of<oktopk::exact> = choice::exact;
template <>
inline constexpr choice choice_of<oktopk::reused_threshold> = choice::reused;
template <>
inline constexpr choice choice_of<oktopk::unguarded_threshold> = choice::unguarded;
template <>
inline constexpr choice choice_of<oktopk::gathered_threshold> = choice::gathered;
template <>
inline constexpr choice choice_of<oktopk::gaussian> = choice::gaussian;

/// What all subjects of an algorithm have in common.
template <class Algorithm, class Base = near_or_far>
subject subject_of(std::string name, family kind) {
  subject made;
  made.about.name = std::move(name);
  made.about.kind = kind;
  made.about.values = type_of<typename Algorithm::value_type>();
  made.about.index_bytes = sizeof(typename Algorithm::index_type);
  made.about.state_type = typeid(typename Algorithm::state_type).name();
  made.about.options = taken_from<typename Algorithm::options>({}).second;
  made.make = &make_participant<Algorithm, Base>;
  made.file = [](bool of_sgd) {
    typename oktopk::sgd<Algorithm>::state_type const state{};
    return of_sgd ? saved(state) : saved(state.allreduce);
  };
  return made;
}

template <class Format, class Local, class Global, class Partitioner, class Gather = oktopk::balanced_allgatherv,
          class Base = near_or_far>
subject ok_topk_subject(std::string name) {
  using algorithm =
      oktopk::ok_topk<execution, oktopk::counted<Base>,
                      oktopk_tests::policies_of<Format, Local, Global, Partitioner, oktopk::rotated, Gather>>;
  subject made = subject_of<algorithm, Base>("ok_topk." + std::move(name), family::ok_topk);
  made.about.local = choice_of<Local>;
  made.about.global = choice_of<Global>;
  made.about.uniform_regions = std::is_same_v<Partitioner, oktopk::uniform>;
  made.about.paper_gather = std::is_same_v<Gather, oktopk::paper_policies::gather>;
  made.about.exact_size = Format::exact_size;
  made.about.most_bytes = [](std::int64_t count, std::int64_t length) {
    return static_cast<std::int64_t>(Format{}.max_encoded_bytes(count, {0, length}));
  };
  made.about.piece_bytes = oktopk::detail::encoded_pieces<execution, Format>::capacity_per_cut;
  return made;
}

template <template <class, class, class> class Algorithm, class Format, class Local, class Base = near_or_far>
subject selecting_subject(std::string name, family kind) {
  using algorithm = Algorithm<execution, oktopk::counted<Base>, oktopk_tests::policies_of<Format, Local>>;
  subject made = subject_of<algorithm, Base>(std::move(name), kind);
  made.about.local = choice_of<Local>;
  return made;
}

} // namespace oktopk_fuzz
