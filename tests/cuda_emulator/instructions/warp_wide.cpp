// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Instructions by which the lanes of a warp tell each other something. All lanes in `lanes` are there.

#include "lanewise.hpp"

namespace cuda_emulator {

namespace {

enum shuffle_kind : u8 { up, down, butterfly, index };
// sources: value, lane or distance, and a word with the bound (bits 0 to 4) and the mask of segments (8 to 12).
void shuffle(warp&, frame& f, instruction const& i, u32 lanes) {
  lane_values given;
  std::memcpy(given.data(), f.values(i.sources[0]), sizeof given);
  u64 const* const distances = f.values(i.sources[1]);
  u64 const* const bounds = f.values(i.sources[2]);
  u32 in_range = 0;
  for_each_lane(lanes, [&](int lane) {
    int const distance = static_cast<int>(distances[lane] & 31);
    int const segment = static_cast<int>(bounds[lane] >> 8 & 31);
    int const first = lane & segment;
    int const bound = first | (static_cast<int>(bounds[lane] & 31) & ~segment);
    int from = i.variant == up          ? lane - distance
               : i.variant == down      ? lane + distance
               : i.variant == butterfly ? lane ^ distance
                                        : first | (distance & ~segment);
    bool const inside = i.variant == up ? from >= bound : from <= bound;
    from = inside ? from : lane;
    in_range |= u32(inside) << lane;
    if (i.destinations[0] != no_register) { // of a lane that takes no part nothing is known
      bool const is_there = (lanes >> from & 1) != 0;
      f.registers[i.destinations[0]][lane] = is_there ? given[static_cast<std::size_t>(from)] & 0xFFFFFFFF : 0xDEADBEEF;
    }
  });
  f.set_predicate(i.predicate, in_range, lanes);
}

void ballot(warp&, frame& f, instruction const& i, u32 lanes) {
  u32 const where = f.lanes_where(i.sources[0]) & lanes;
  for_each_lane(lanes, [&](int lane) { f.registers[i.destinations[0]][lane] = where; });
}

void active_lanes(warp&, frame& f, instruction const& i, u32 lanes) {
  for_each_lane(lanes, [&](int lane) { f.registers[i.destinations[0]][lane] = lanes; });
}

} // namespace

bool decode_warp(statement const& s, decoder& d, instruction& i) {
  if (s.name == "activemask") {
    return d.usual(s, i, active_lanes, 0);
  }
  if (!s.has("sync") || s.operands.size() < 2) {
    return false;
  }
  i.step = step_kind::warp_sync;
  bool const has_members = d.source(s.operands.back(), i.members, ptx_type::u32);
  if (s.name == "shfl") {
    i.run = shuffle;
    i.variant = s.has("up") ? up : s.has("down") ? down : s.has("bfly") ? butterfly : index;
    return has_members && s.operands.size() == 5 && d.destination_with_predicate(s.operands[0], i) &&
           d.source(s.operands[1], i.sources[0], s.type) && d.source(s.operands[2], i.sources[1], ptx_type::u32) &&
           d.source(s.operands[3], i.sources[2], ptx_type::u32);
  }
  i.run = ballot;
  return s.name == "vote" && s.has("ballot") && has_members && s.operands.size() == 3 &&
         d.destination(s.operands[0], i.destinations[0]) && d.source(s.operands[1], i.sources[0], ptx_type::predicate);
}

} // namespace cuda_emulator
