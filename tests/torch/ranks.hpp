// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "torch/torch_first.hpp"

#include "support/numbered_ranks.hpp"
#include "support/same_everywhere.hpp"

#include <cstdlib>

// Ranks that meet in the file STORE.
namespace oktopk_tests {

inline c10::intrusive_ptr<c10d::Store> const& store() {
  static c10::intrusive_ptr<c10d::Store> const one =
      c10::make_intrusive<c10d::FileStore>(std::getenv("STORE"), world_size());
  return one;
}

/// By way of the store, whatever has become of the groups.
inline std::vector<std::string> texts_of_all(std::string const& mine) {
  static int calls = 0;
  std::string const key = "text " + std::to_string(calls++) + " of ";
  store()->set(key + std::to_string(world_rank()), std::vector<std::uint8_t>(mine.begin(), mine.end()));
  std::vector<std::string> texts;
  for (int rank = 0; rank < world_size(); ++rank) {
    std::vector<std::uint8_t> const text = store()->get(key + std::to_string(rank));
    texts.emplace_back(text.begin(), text.end());
  }
  return texts;
}

/// The groups of a test: one that goes closes its connections, while other ranks may still be at work.
inline std::vector<c10::intrusive_ptr<c10d::ProcessGroup>>& groups_of_test() {
  static std::vector<c10::intrusive_ptr<c10d::ProcessGroup>> all;
  return all;
}

/// Gloo as a process group, which it was before torch 2; since then it is the backend of one.
template <class Gloo, class Group = c10d::ProcessGroup>
c10::intrusive_ptr<Group> group_over(c10::intrusive_ptr<Gloo> const& gloo) {
  if constexpr (std::is_convertible_v<Gloo*, Group*>) {
    return gloo;
  } else {
    auto const group = c10::make_intrusive<Group>(store(), gloo->getRank(), gloo->getSize());
    group->setBackend(c10::DeviceType::CPU, Group::BackendType::GLOO, gloo);
    group->setDefaultBackend(Group::BackendType::GLOO);
    return group;
  }
}

/// A group of Gloo with connections of its own, which lives until all ranks are through with the test. Collective.
inline c10::intrusive_ptr<c10d::ProcessGroup> new_group() {
  static int made = 0;
  auto options = c10d::ProcessGroupGloo::Options::create(std::chrono::seconds(60));
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  auto const prefix = c10::make_intrusive<c10d::PrefixStore>("group " + std::to_string(made++), store());
  auto const group =
      group_over(c10::make_intrusive<c10d::ProcessGroupGloo>(prefix, world_rank(), world_size(), options));
  texts_of_all("connected"); // a rank that closes its connections at once would disturb those that still connect
  groups_of_test().push_back(group);
  return group;
}

inline oktopk::process_group_communicator connected() {
  return oktopk::process_group_communicator(new_group());
}

/// Runs a test on all ranks; what one of them throws fails it on every rank. Collective.
template <class Body>
void on_all_ranks(Body const& body) {
  detail::on_all_ranks(body);
  groups_of_test().clear();
}

/// The same where there are several ranks: one alone has nobody to disagree with, or to wait for.
template <class Body>
void on_several_ranks(Body const& body) {
  if (world_size() > 1) {
    on_all_ranks(body);
  }
}

} // namespace oktopk_tests
