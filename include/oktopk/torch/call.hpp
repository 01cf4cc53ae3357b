// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>

#include <c10/util/Exception.h>

#include <exception>
#include <string>
#include <utility>

namespace oktopk::detail {

/// What an exception of torch or Gloo says, without the call stack that torch adds.
inline std::string torch_text(std::exception const& caught) {
  auto const* const own = dynamic_cast<c10::Error const*>(&caught);
  std::string const text = own != nullptr ? own->what_without_backtrace() : caught.what();
  return text.substr(0, text.find('\n'));
}

/// Whether it says that something took too long: neither torch nor Gloo has a type for that.
inline bool says_timed_out(std::string const& text) {
  return text.find("imed out") != std::string::npos;
}

/// Calls torch; what it throws becomes an `error` (communication) with the name of the call.
template <class Call>
decltype(auto) torch_call(char const* name, Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (std::exception const& caught) {
    throw error(fault::communication, std::string(name) + ": " + torch_text(caught));
  }
}

} // namespace oktopk::detail
