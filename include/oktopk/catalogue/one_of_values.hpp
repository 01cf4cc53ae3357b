// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/format/values/concept.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace oktopk {

/// A value codec that is one of several, chosen at run time: on the wire the same as the chosen one.
template <value_codec First, value_codec... Others>
struct one_of_values {
  std::int32_t chosen = 0; ///< its position in the list

  static constexpr bool lossless = First::lossless && (Others::lossless && ...);

  std::string name() const {
    return with([](auto const& codec) { return std::string(codec.name()); });
  }

  /// Whether the chosen one rounds.
  bool loses() const {
    return with([](auto const& codec) { return !std::decay_t<decltype(codec)>::lossless; });
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION int most_bytes(int count) const {
    return at<0, First, Others...>::template most_bytes<Value>(chosen, count);
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION std::byte* encode(Value const* values, int count, std::byte* out) const {
    return at<0, First, Others...>::encode(chosen, values, count, out);
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION std::byte const* decode(std::byte const* in, std::byte const* end, int count,
                                                      Value* values) const {
    return at<0, First, Others...>::decode(chosen, in, end, count, values);
  }

private:
  // The codec at a position of the list; the last one for what lies behind.
  template <std::int32_t Position, class Codec, class... Rest>
  struct at {
    template <gradient_value Value>
    KOKKOS_FORCEINLINE_FUNCTION static int most_bytes(std::int32_t chosen, int count) {
      if constexpr (sizeof...(Rest) > 0) {
        if (chosen != Position) {
          return at<Position + 1, Rest...>::template most_bytes<Value>(chosen, count);
        }
      }
      return Codec().template most_bytes<Value>(count);
    }

    template <gradient_value Value>
    KOKKOS_FORCEINLINE_FUNCTION static std::byte* encode(std::int32_t chosen, Value const* values, int count,
                                                         std::byte* out) {
      if constexpr (sizeof...(Rest) > 0) {
        if (chosen != Position) {
          return at<Position + 1, Rest...>::encode(chosen, values, count, out);
        }
      }
      return Codec().encode(values, count, out);
    }

    template <gradient_value Value>
    KOKKOS_FORCEINLINE_FUNCTION static std::byte const* decode(std::int32_t chosen, std::byte const* in,
                                                               std::byte const* end, int count, Value* values) {
      if constexpr (sizeof...(Rest) > 0) {
        if (chosen != Position) {
          return at<Position + 1, Rest...>::decode(chosen, in, end, count, values);
        }
      }
      return Codec().decode(in, end, count, values);
    }

    template <class Action>
    static auto visit(std::int32_t chosen, Action const& action) {
      if constexpr (sizeof...(Rest) > 0) {
        if (chosen != Position) {
          return at<Position + 1, Rest...>::visit(chosen, action);
        }
      }
      return action(Codec());
    }
  };

  template <class Action>
  auto with(Action const& action) const {
    return at<0, First, Others...>::visit(chosen, action);
  }
};

} // namespace oktopk
