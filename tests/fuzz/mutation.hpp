// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/record.hpp"

#include <bit>
#include <cstdlib>
#include <map>
#include <string>

namespace oktopk_fuzz {

/// A defect that is put in on purpose, to see that the checks find it.
enum class mutation {
  none,
  drops_entry,     ///< the update lacks its last entry, on all ranks
  flips_bit,       ///< the last bit of a sum is another, on all ranks
  differs,         ///< the last bit of a sum is another on one rank
  forgets,         ///< something that contributed is not told of
  sends_more,      ///< a rank sends a million words more
  is_silent,       ///< an error does not come
  says_other,      ///< one rank words an error otherwise
  blames_other,    ///< all ranks blame the rank behind the last
  moves,           ///< a call that throws counts as an iteration
  replica_differs, ///< what goes on from a checkpoint goes another way
  takes_any_state, ///< an impossible state is taken
  crashes,         ///< the process ends
  hangs,           ///< and here it does not
};

inline std::map<std::string, mutation> const mutations = {{"drops_entry", mutation::drops_entry},
                                                          {"flips_bit", mutation::flips_bit},
                                                          {"differs", mutation::differs},
                                                          {"forgets", mutation::forgets},
                                                          {"sends_more", mutation::sends_more},
                                                          {"is_silent", mutation::is_silent},
                                                          {"says_other", mutation::says_other},
                                                          {"blames_other", mutation::blames_other},
                                                          {"moves", mutation::moves},
                                                          {"replica_differs", mutation::replica_differs},
                                                          {"takes_any_state", mutation::takes_any_state},
                                                          {"crashes", mutation::crashes},
                                                          {"hangs", mutation::hangs}};

/// Puts it into what a rank has seen of a call. Says whether there was anything to put it into.
template <class Value>
bool put_in(mutation what, int rank, int ranks, bool of_replica, call_record<Value>& record) {
  bool const threw = record.said.code != oktopk::fault::none;
  auto& values = record.update.values;
  auto const last = [](auto& list) { // takes the last element away
    bool const there = !list.empty();
    list.resize(list.size() - (there ? 1 : 0));
    return there;
  };
  auto const flip = [&](bool there, std::size_t at) { // the last bit of a value
    there = there && !values.empty();
    if (there) {
      Value& x = values[at];
      x = std::bit_cast<Value>(static_cast<pattern_of<Value>>(std::bit_cast<pattern_of<Value>>(x) ^ 1));
    }
    return there;
  };
  switch (what) {
  case mutation::drops_entry:
    if (of_replica || !last(values)) {
      return false;
    }
    record.statistics.global_selected -= 1;
    return last(record.update.indices);
  case mutation::flips_bit: return flip(!of_replica, 0);
  case mutation::differs: return flip(!of_replica && rank == ranks - 1 && ranks > 1, 0);
  case mutation::forgets: return !of_replica && last(record.contributed);
  case mutation::sends_more: record.traffic[0].bytes_sent += of_replica ? 0 : 4'000'000; return !of_replica && !threw;
  case mutation::is_silent: record.said = {}; return threw;
  case mutation::says_other:
    record.said.text += threw && rank == ranks - 1 && ranks > 1 ? " " : "";
    return threw && ranks > 1;
  case mutation::blames_other:
    if (auto const at = record.said.text.find("rank "); threw && at != std::string::npos) {
      record.said.text.replace(at, record.said.text.find(':', at) - at, "rank " + std::to_string(ranks));
      return true;
    }
    return false;
  case mutation::moves: record.after.iteration += threw ? 1 : 0; return threw;
  case mutation::replica_differs: return flip(of_replica, values.size() - 1);
  case mutation::crashes: std::abort();
  case mutation::hangs:
    for (bool volatile forever = true; forever;) {
    }
    return true;
  case mutation::none:
  case mutation::takes_any_state: break;
  }
  return false;
}

} // namespace oktopk_fuzz
