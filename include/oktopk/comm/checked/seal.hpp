// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/operation.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

namespace oktopk::detail {

/// What follows each message of a `checked` communicator: of what it is, and the digest of its bytes (XXH3 of xxHash).
struct message_seal {
  static constexpr std::uint32_t version = 0x6f6b5401; // "okT", 1

  std::uint32_t mark = version;
  std::uint32_t number = 0; ///< of the message, from that rank in that phase
  std::uint64_t bytes = 0;
  std::uint64_t digest = 0; ///< of the bytes
  std::int64_t call = 0;
  std::array<char, 20> during{}; ///< the begin of the operation's name
  std::int32_t use = 0;
  std::uint64_t own_digest = 0; ///< of all above

  static std::uint64_t digest_of(std::span<std::byte const> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

  static message_seal of(std::span<std::byte const> bytes, std::uint32_t number, phase use, operation const& during) {
    message_seal seal;
    seal.number = number;
    seal.bytes = bytes.size();
    seal.digest = digest_of(bytes);
    seal.call = during.number;
    std::copy_n(during.name.begin(), std::min(during.name.size(), seal.during.size()), seal.during.begin());
    seal.use = static_cast<std::int32_t>(use);
    seal.own_digest = seal.expected_own_digest();
    return seal;
  }

  /// What is wrong with a message that has come with this seal, where another one is due; empty where nothing is.
  /// `expected` is the seal of what has arrived.
  std::string difference(message_seal const& expected) const {
    if (own_digest != expected_own_digest()) {
      return "what came in the place of its seal is none, or is damaged";
    }
    if (mark != expected.mark) {
      return "it is sealed by another version of oktopk";
    }
    if (during != expected.during || call != expected.call) {
      return "it was sent in " + where() + " and is received in " + expected.where() +
             ", so the ranks do not make the same calls in the same order";
    }
    if (use != expected.use || number != expected.number) {
      return "it has number " + std::to_string(number) + " where number " + std::to_string(expected.number) +
             " is due, so one was lost or came twice";
    }
    if (bytes != expected.bytes) {
      return std::to_string(expected.bytes) + " bytes arrived of " + std::to_string(bytes);
    }
    return digest == expected.digest ? std::string() : "its bytes are not those that were sent";
  }

private:
  std::uint64_t expected_own_digest() const { return XXH3_64bits(this, offsetof(message_seal, own_digest)); }

  std::string where() const {
    std::string const name(during.begin(), std::find(during.begin(), during.end(), '\0'));
    return name.empty() ? "no operation" : operation{name, call}.text();
  }
};

static_assert(std::has_unique_object_representations_v<message_seal>, "the padding of a seal would be sent");

} // namespace oktopk::detail
