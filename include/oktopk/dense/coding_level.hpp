// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

// Coding at the level of messages, the naive form to compare with, and what only it and codecs that are not stable
// need: values that are coded again after they were decoded, whose results may differ between ranks.
namespace oktopk {

/// The level at which a collective codes what it sends.
enum class codec_level : std::uint8_t {
  collective, ///< a piece is coded once, and goes on as it was coded when it is finished
  message,    ///< each message is coded by itself, as by a communication layer that knows nothing of collectives
};

namespace detail {

inline std::string name_of(codec_level level) {
  return level == codec_level::collective ? "collective" : "message";
}

/// A codec that loses more each time that a block is coded again: its constant `stable` is false.
template <class Codec>
inline constexpr bool loses_again = requires { requires !Codec::stable; };

/// A wire whose codec loses more each time, and whose options let ranks end with different results (`anew`: the
/// algorithm codes finished values again; else it does so at the level of messages only).
template <class Wire>
bool ranks_may_differ(Wire const& wire, bool anew = false) {
  if constexpr (requires { wire.loses_again(); }) {
    return wire.loses_again() && (anew || (wire.level() == codec_level::message && wire.lets_ranks_differ()));
  } else {
    return false;
  }
}

/// A sentence where coding again what was decoded would let ranks end with different results, and may not.
template <class Wire>
std::string fault_of_coding_anew(Wire const& wire) {
  if constexpr (requires { wire.loses_again(); }) {
    if (wire.loses_again() && !wire.lets_ranks_differ()) {
      return std::string(wire.codec().name()) + " cannot code each message by itself: it loses more each time that a "
                                                "block is coded again, and ranks would end with different results";
    }
  }
  return {};
}

/// A bound wire at the level of messages: a receive waits until the next message is encoded, and what has arrived is
/// decoded, and encoded again where it is sent on.
template <class BoundWire>
bool codes_each_message(BoundWire const& wire) {
  if constexpr (requires { wire.codes_each_message(); }) {
    return wire.codes_each_message();
  } else {
    return false;
  }
}

/// A dense allreduce whose results may differ between ranks: it tells so by `ranks_may_differ()`.
template <class Reduce>
bool results_may_differ(Reduce const& reduce) {
  if constexpr (requires { reduce.ranks_may_differ(); }) {
    return reduce.ranks_may_differ();
  } else {
    return false;
  }
}

} // namespace detail

} // namespace oktopk
