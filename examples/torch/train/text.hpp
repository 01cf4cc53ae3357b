// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>

namespace torch_training {

/// A text as numbers of words: the more frequent a word, the smaller its number.
struct text {
  static constexpr std::int64_t unknown = 0; ///< a word that is too rare to have a number
  static constexpr std::int64_t mask = 1;    ///< stands in no text: for words to be foretold

  torch::Tensor training; ///< the first 95 % of the words, 64-bit integers
  torch::Tensor test;     ///< the rest
  std::int64_t words = 0; ///< numbers are below this
};

/// Cuts a file into words of letters and signs, in lower case, and numbers the `most` - 2 most frequent ones of them.
/// Throws std::runtime_error where there is no such file or it has fewer than 10,000 words.
text read_text(std::filesystem::path const& file, std::int64_t most);

} // namespace torch_training
