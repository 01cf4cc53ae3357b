// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <span>
#include <string>
#include <vector>

// What a packed format with a code that rounds makes of values, written down a second time: nothing here uses the
// library.
namespace oktopk_bench {

/// A value after a code that rounds.
struct coded_value {
  double value = 0;
  double doubt = 0; ///< distance to what the code's own arithmetic may have given instead; mostly 0
};

/// The values of a message that a code rounds, as its receivers have them. The codes are bfloat16, fixed8, fixed4,
/// fixed2 and sign; all but the first have a scale for every 256 values of a message.
class value_code {
public:
  explicit value_code(std::string const& name);

  /// Whether the name is one of these.
  bool known() const { return kind_ != kind::unknown; }
  /// Whether a value does not depend on the others of its message.
  bool each_alone() const { return kind_ == kind::bfloat16; }

  /// Appends what becomes of a message's values.
  void code(std::span<float const> message, std::vector<coded_value>& coded) const;
  /// Whether these can be a message's values after the code.
  bool may_give(std::span<float const> message) const;

private:
  enum class kind { unknown, bfloat16, fixed, two_magnitudes, sign };

  void code_block(std::span<float const> block, double error, std::span<double> coded) const;
  bool block_may_be(std::span<float const> block) const;

  kind kind_ = kind::unknown;
  float outermost_ = 0; ///< level of fixed8 and fixed4
};

} // namespace oktopk_bench
