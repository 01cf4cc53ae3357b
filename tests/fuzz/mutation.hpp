// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/record.hpp"

#include <cstdlib>

namespace oktopk_fuzz {

/// What a rank has seen of a call.
struct mutable_call {
  int rank;
  int ranks;
  bool of_replica;
  value_type values;
  call_record& seen;

  bool is_last() const { return ranks > 1 && rank == ranks - 1; }
  // Makes a sum its neighbour. Says whether there was one.
  bool change_sum(std::size_t at) const {
    bool const there = at < seen.update.values.size();
    if (there) {
      seen.update.values[at] = values.next(seen.update.values[at]);
    }
    return there;
  }
};

/// Takes the last element away. Says whether there was one.
template <class List>
bool take_last(List& list) {
  bool const there = !list.empty();
  list.resize(list.size() - (there ? 1 : 0));
  return there;
}

/// Defects that are put in on purpose, to see that the checks find them. Each says whether there was anything to put it
/// into.
inline std::map<std::string, bool (*)(mutable_call)> const mutations = {
    {"drops_entry", // the update lacks its last entry, on all ranks
     [](mutable_call of) {
       bool const there = !of.of_replica && take_last(of.seen.update.values);
       of.seen.statistics.global_selected -= there ? 1 : 0;
       return there && take_last(of.seen.update.indices);
     }},
    {"flips_bit", // a sum is its neighbour, on all ranks
     [](mutable_call of) { return !of.of_replica && of.change_sum(0); }},
    {"differs", // the same on one rank
     [](mutable_call of) { return !of.of_replica && of.is_last() && of.change_sum(0); }},
    {"forgets", // something that contributed is not told of
     [](mutable_call of) { return !of.of_replica && take_last(of.seen.contributed); }},
    {"sends_more", // a rank sends a million words more
     [](mutable_call of) {
       of.seen.traffic[0].bytes_sent += of.of_replica ? 0 : 4'000'000;
       return !of.of_replica && !of.seen.threw();
     }},
    {"is_silent", // an error does not come
     [](mutable_call of) { return std::exchange(of.seen.said, {}).code != oktopk::fault::none; }},
    {"says_other", // one rank words an error otherwise
     [](mutable_call of) {
       of.seen.said.text += of.seen.threw() && of.is_last() ? " " : "";
       return of.seen.threw() && of.ranks > 1;
     }},
    {"blames_other", // all ranks blame the rank behind the last
     [](mutable_call of) {
       auto& text = of.seen.said.text;
       auto const at = text.find("rank ");
       bool const blames = of.seen.threw() && at != std::string::npos;
       if (blames) {
         text.replace(at, text.find(':', at) - at, "rank " + std::to_string(of.ranks));
       }
       return blames;
     }},
    {"moves", // a call that throws counts as an iteration
     [](mutable_call of) {
       of.seen.after.iteration += of.seen.threw() ? 1 : 0;
       return of.seen.threw();
     }},
    {"replica_differs", // what goes on from a checkpoint goes another way
     [](mutable_call of) { return of.of_replica && of.change_sum(of.seen.update.values.size() - 1); }},
    {"takes_any_state", [](mutable_call) { return false; }}, // an impossible one: put in where states are restored
    {"crashes", [](mutable_call) -> bool { std::abort(); }},
    {"hangs",
     [](mutable_call) {
       for (bool volatile forever = true; forever;) {
       }
       return true;
     }},
};

} // namespace oktopk_fuzz
