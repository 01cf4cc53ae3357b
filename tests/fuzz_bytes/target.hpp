// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace oktopk_fuzz {

using bytes = std::vector<std::byte>;

/// Hands any bytes to the decoders under test, which may refuse them with an `oktopk::error` and nothing else. Each
/// target defines this and `seeds`; whatever reads or writes out of bounds is for the sanitizers to find.
void run(std::span<std::byte const> input);

/// Inputs that decoders accept, to begin with: made here, so that they follow when a format changes.
std::vector<bytes> seeds();

/// Aborts where something does not hold, which a fuzzer reports as a finding.
void require(bool holds, char const* what);

/// Takes numbers from the front of an input, zeros where it has ended.
class drawn {
public:
  explicit drawn(std::span<std::byte const> input) : left_(input) {}

  template <class T>
    requires std::is_arithmetic_v<T>
  T number() {
    T taken{};
    std::size_t const size = sizeof(T) < left_.size() ? sizeof(T) : left_.size();
    if (size > 0) {
      std::memcpy(&taken, left_.data(), size);
      left_ = left_.subspan(size);
    }
    return taken;
  }

  /// 0 to `most`.
  std::int64_t up_to(std::int64_t most) {
    return static_cast<std::int64_t>(number<std::uint64_t>() % (static_cast<std::uint64_t>(most) + 1));
  }

  bool empty() const { return left_.empty(); }

  /// What is left, in memory of its own and of its size, so that a byte read behind it is noticed.
  bytes rest() const { return {left_.begin(), left_.end()}; }
  std::string text() const { return {reinterpret_cast<char const*>(left_.data()), left_.size()}; }

private:
  std::span<std::byte const> left_;
};

/// Puts an input together that `drawn` takes apart.
class written {
public:
  template <class T>
    requires std::is_arithmetic_v<T>
  written& number(T value) {
    auto const* const from = reinterpret_cast<std::byte const*>(&value);
    made_.insert(made_.end(), from, from + sizeof value);
    return *this;
  }

  written& rest(std::span<std::byte const> more) {
    made_.insert(made_.end(), more.begin(), more.end());
    return *this;
  }

  written& text(std::string const& more) { return rest(std::as_bytes(std::span(more))); }

  operator bytes() const { return made_; }

private:
  bytes made_;
};

} // namespace oktopk_fuzz
