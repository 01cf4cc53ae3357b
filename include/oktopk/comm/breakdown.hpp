// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>

#include <exception>
#include <string>

namespace oktopk {

/// Why a communicator is of no more use to this rank; the first reason stays.
///
/// Part of a communicator, shared by its copies. Not for several threads at once.
class breakdown {
public:
  explicit operator bool() const { return code_ != fault::none; }
  fault code() const { return code_; }
  std::string const& reason() const { return reason_; }

  /// Keeps a reason unless there is one. Where memory for the sentence is missing the fault is kept alone.
  void note(fault code, std::string const& sentence) noexcept {
    if (code_ == fault::none) {
      code_ = code;
      try {
        reason_ = sentence;
      } catch (std::exception const&) {
        reason_.clear();
      }
    }
  }

  /// For each call that would start a message.
  void throw_if_happened() const {
    if (*this) {
      throw error(code_, "the communicator cannot be used any more: " + reason_);
    }
  }

private:
  fault code_ = fault::none;
  std::string reason_;
};

} // namespace oktopk
