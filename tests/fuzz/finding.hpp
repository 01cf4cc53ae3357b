// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <optional>
#include <string>

namespace oktopk_fuzz {

/// A promise that was not kept.
struct finding {
  std::string check; ///< a short name of the promise
  std::string text;
};

using verdict = std::optional<finding>;

} // namespace oktopk_fuzz
