// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/participant.hpp"

#include <string>
#include <vector>

namespace oktopk_fuzz {

/// A defect that is put in on purpose, to see that the checks find it.
enum class sabotage {
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
  twin_differs,    ///< what goes on from a checkpoint goes another way
  takes_any_state, ///< an impossible state is taken
  crashes,         ///< the process ends
  hangs,           ///< and here it does not
};

struct named_sabotage {
  char const* name;
  sabotage what;
};

inline constexpr named_sabotage all_sabotage[] = {
    {"drops_entry", sabotage::drops_entry},
    {"flips_bit", sabotage::flips_bit},
    {"differs", sabotage::differs},
    {"forgets", sabotage::forgets},
    {"sends_more", sabotage::sends_more},
    {"is_silent", sabotage::is_silent},
    {"says_other", sabotage::says_other},
    {"blames_other", sabotage::blames_other},
    {"moves", sabotage::moves},
    {"twin_differs", sabotage::twin_differs},
    {"takes_any_state", sabotage::takes_any_state},
};

/// Puts it into what a rank has seen of a call. Says whether there was anything to put it into.
template <class Value>
bool put_in(sabotage what, int rank, int ranks, bool of_twin, call_record<Value>& record);

} // namespace oktopk_fuzz
