// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/core/integers.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace oktopk {

/// What a message is of, in the 18 bits that its first number has for that (`fault_report::packed`): the version of the
/// messages, the phase, a mark of the algorithm, the number of the call. Adds nothing to a message.
///
/// For the ranks to notice that they are not doing the same. The mark is 7 bits of a hash, the number is modulo 64, so
/// two calls may have the same stamp by chance.
class message_stamp {
public:
  /// Of the messages of all algorithms; another one where their form has changed.
  static constexpr unsigned version = 1;

  message_stamp(std::string_view algorithm, std::int64_t length, std::int64_t k, std::int64_t call, phase use) {
    detail::fnv1a hash;
    hash.add(algorithm.data(), algorithm.size());
    hash.add(&length, sizeof(length));
    hash.add(&k, sizeof(k));
    std::uint64_t const folded = hash.value() ^ (hash.value() >> 32U);
    bits_ = (version << 16U) | (static_cast<std::uint32_t>(use) << 13U) |
            (static_cast<std::uint32_t>(folded % 128) << 6U) | static_cast<std::uint32_t>(call % 64);
  }

  explicit message_stamp(std::uint32_t bits) : bits_(bits) {}

  std::uint32_t bits() const { return bits_; }

  friend bool operator==(message_stamp, message_stamp) = default;

  /// What is wrong with this one where another one is expected: "version 2 where 1 is expected".
  std::string difference(message_stamp expected) const {
    auto const differ = [](std::string const& what, unsigned is, unsigned should) {
      return what + " " + std::to_string(is) + " where " + std::to_string(should) + " is expected";
    };
    if (version_of() != expected.version_of()) {
      return differ("version", version_of(), expected.version_of());
    }
    if (algorithm() != expected.algorithm()) {
      return "another algorithm, or one of another length or k";
    }
    if (call() != expected.call()) {
      return differ("call (modulo 64)", call(), expected.call());
    }
    return "phase " + phase_name() + " where " + expected.phase_name() + " is expected";
  }

private:
  unsigned version_of() const { return bits_ >> 16U; }
  unsigned algorithm() const { return (bits_ >> 6U) % 128U; }
  unsigned call() const { return bits_ % 64U; }
  std::string phase_name() const {
    unsigned const use = (bits_ >> 13U) % 8U;
    return use < phase_count ? std::string(name(static_cast<phase>(use))) : std::to_string(use);
  }

  std::uint32_t bits_;
};

} // namespace oktopk
