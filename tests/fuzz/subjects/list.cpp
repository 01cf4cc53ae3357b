// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/subjects.hpp"

#include <utility>

namespace oktopk_fuzz {

namespace {

template <class Value>
std::vector<subject<Value>> joined(std::initializer_list<std::vector<subject<Value>>> parts) {
  std::vector<subject<Value>> all;
  for (auto const& part : parts) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

} // namespace

template <>
std::vector<subject<float>> const& subjects<float>() {
  static auto const all =
      joined<float>({ok_topk_of_floats(), ok_topk_of_floats_other_formats(), baselines_of_floats(), dense_of_floats()});
  return all;
}

template <>
std::vector<subject<double>> const& subjects<double>() {
  static auto const all = joined<double>(
      {ok_topk_of_doubles(), ok_topk_of_doubles_other_formats(), baselines_of_doubles(), dense_of_doubles()});
  return all;
}

std::vector<facts> const& all_facts() {
  static auto const all = [] {
    std::vector<facts> facts_of_all;
    for (auto const& each : subjects<float>()) {
      facts_of_all.push_back(each.about);
    }
    for (auto const& each : subjects<double>()) {
      facts_of_all.push_back(each.about);
    }
    return facts_of_all;
  }();
  return all;
}

} // namespace oktopk_fuzz
