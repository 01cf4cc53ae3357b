// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>

namespace oktopk::detail {

/// A function object of somebody else, without its type and without memory of its own, as `std::function` would take
/// for a lambda with three references. The object outlives it.
template <class Result>
class call_ref {
public:
  call_ref() = default;

  template <class Call>
  explicit call_ref(Call const& call)
      : object_(std::addressof(call)),
        call_([](void const* object) -> Result { return (*static_cast<Call const*>(object))(); }) {}

  Result operator()() const { return call_(object_); }

private:
  void const* object_ = nullptr;
  Result (*call_)(void const*) = nullptr;
};

} // namespace oktopk::detail
