// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

#include "../execution/warp.hpp"
#include "../ptx/decoder.hpp"

#include <utility>

namespace cuda_emulator {

// Applies Operation(Operands...) lane by lane. The common case, all lanes, is a loop that the compiler can turn into
// vector instructions: a lane reads and writes nothing of another one.
template <auto Operation, typename... Operands>
void lanewise(warp&, frame& f, instruction const& i, u32 lanes) {
  [&]<std::size_t... N>(std::index_sequence<N...>) {
    u64* const to = f.registers[i.destinations[0]];
    u64 const* const from[] = {f.values(i.sources[N])...};
    auto const apply = [&](int lane) { to[lane] = to_register(Operation(from_register<Operands>(from[N][lane])...)); };
    if (lanes == all_lanes) {
#pragma GCC ivdep
      for (int lane = 0; lane < warp_size; ++lane) {
        apply(lane);
      }
    } else {
      for_each_lane(lanes, apply);
    }
  }(std::index_sequence_for<Operands...>());
}

// make.operator()<T>() for that of Types that `type` names, and no handler where none is it.
template <typename... Types, typename Make>
handler for_type(ptx_type type, Make make) {
  handler result = nullptr;
  ((type == type_of<Types> ? void(result = make.template operator()<Types>()) : void()), ...);
  return result;
}

// lanewise<Operation> with `Count` operands of one of Types.
template <auto Operation, int Count, typename... Types>
handler alike(ptx_type type) {
  return for_type<Types...>(type, []<typename T>() -> handler {
    if constexpr (Count == 1) {
      return lanewise<Operation, T>;
    } else if constexpr (Count == 2) {
      return lanewise<Operation, T, T>;
    } else {
      return lanewise<Operation, T, T, T>;
    }
  });
}

template <auto Operation, int Count>
handler integers(ptx_type type) {
  return alike<Operation, Count, u16, i16, u32, i32, u64, i64>(type);
}

template <auto Operation, int Count>
handler floats(ptx_type type) {
  return alike<Operation, Count, f32, f64>(type);
}

struct named_operation {
  std::string_view name;
  handler (*of)(ptx_type);
  std::size_t sources;
};

template <std::size_t Size>
bool decode_from(named_operation const (&table)[Size], statement const& s, decoder& d, instruction& i) {
  for (named_operation const& each : table) {
    if (each.name == s.name) {
      return d.usual(s, i, each.of(s.type), each.sources);
    }
  }
  return false;
}

} // namespace cuda_emulator
