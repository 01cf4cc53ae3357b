// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The subjects that have a text: compiled once.

#include "fuzz/subject_of.hpp"
#include "support/pairwise.hpp"

#include <oktopk/catalogue/algorithms.hpp>

namespace oktopk_fuzz {

template class any_participant<float, std::int32_t>;

namespace {

/// Sink of a visit of the catalogue: what is promised of the algorithm that a text names.
struct promising {
  facts& about;
  state_access& states;

  template <class Allreduce>
  void operator()(std::type_identity<Allreduce>, typename Allreduce::options const& how) {
    about = facts_of<Allreduce>(about.name, how);
    states = access_to<typename Allreduce::state_type>;
  }
};

} // namespace

subject subject_of(std::string const& text) {
  facts about;
  about.name = text;
  state_access states;
  oktopk::catalogue::visit_request<execution, float, std::int32_t>(oktopk::detail::allreduce_request::parse(text), {},
                                                                   promising{about, states});
  about.has_text = true;
  return subject_from<float, std::int32_t>(about, states, [text](oktopk::any_communicator comm, options const& how) {
    return oktopk::make_allreduce(execution(), std::move(comm), how.text.empty() ? text : how.text,
                                  {.length = how.length, .k = how.k, .density = how.density});
  });
}

std::vector<std::string> texts(bool pairs) {
  std::vector<std::string> all;
  for (auto const& algorithm : oktopk::list_allreduces()) {
    for (std::string const& text : oktopk_tests::covering_texts(algorithm, pairs)) {
      // No scheme has the bits of ok_topk and an update of every value, so automatic refuses the two together.
      if (text.find("sums=exact, dense_update=true") == text.npos) {
        all.push_back(text);
      }
    }
  }
  return all;
}

std::vector<subject const*> chosen_of(std::vector<subject> const& all, std::string const& name) {
  std::vector<subject const*> chosen;
  for (subject const& each : all) {
    if (name.starts_with('=') ? name.substr(1) == each.about.name : each.about.name.find(name) != name.npos) {
      chosen.push_back(&each);
    }
  }
  return chosen;
}

std::vector<subject> const& subjects() {
  static std::vector<subject> const all = [] {
    std::vector<subject> joined = typed_subjects();
    for (std::string const& text : texts(true)) {
      joined.push_back(subject_of(text));
    }
    return joined;
  }();
  return all;
}

} // namespace oktopk_fuzz
