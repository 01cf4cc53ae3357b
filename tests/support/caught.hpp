// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>

#include <exception>
#include <functional>
#include <ostream>

namespace oktopk_tests {

/// What came out of a call: an error of the library, or `fault::none` and no text where it returned.
struct outcome {
  oktopk::fault code = oktopk::fault::none;
  std::string text;

  bool says(std::string_view part) const { return text.find(part) != std::string::npos; }
  bool operator==(outcome const&) const = default;

  friend std::ostream& operator<<(std::ostream& out, outcome const& what) {
    return out << oktopk::name(what.code) << ": " << what.text;
  }
};

/// Calls and catches the library's error; anything else passes.
inline outcome outcome_of(std::function<void()> const& call) {
  try {
    call();
  } catch (oktopk::error const& caught) {
    return {caught.code(), caught.what()};
  }
  return {};
}

/// The same for what a rank of an in-process world threw.
inline outcome outcome_of(std::exception_ptr const& thrown) {
  return outcome_of([&] {
    if (thrown) {
      std::rethrow_exception(thrown);
    }
  });
}

/// The fault in an outcome that should have this code and these words in it; empty where it has.
inline std::string unlike(outcome const& heard, oktopk::fault code, std::string_view words) {
  return heard.code == code && heard.says(words)
             ? std::string()
             : std::string(oktopk::name(heard.code)) + " (" + heard.text + ") is not " +
                   std::string(oktopk::name(code)) + " with \"" + std::string(words) + "\"";
}

} // namespace oktopk_tests
