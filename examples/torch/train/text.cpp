// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "text.hpp"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace torch_training {
namespace {

std::vector<std::string> words_of(std::istream& in) {
  std::vector<std::string> words;
  std::string word;
  auto const end_word = [&] {
    if (!word.empty()) {
      words.push_back(std::exchange(word, std::string()));
    }
  };
  for (char each = 0; in.get(each);) {
    auto const letter = static_cast<unsigned char>(each);
    if (std::isalpha(letter) != 0 || letter >= 0x80 || (each == '\'' && !word.empty())) {
      word += static_cast<char>(std::tolower(letter));
      continue;
    }
    end_word();
    if (std::ispunct(letter) != 0) {
      words.emplace_back(1, each);
    }
  }
  end_word();
  return words;
}

} // namespace

text read_text(std::filesystem::path const& file, std::int64_t most) {
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    throw std::runtime_error("cannot read the text " + file.string() + ": give one with --text");
  }
  std::vector<std::string> const words = words_of(in);
  if (in.bad()) { // a folder, for one
    throw std::runtime_error("cannot read the text " + file.string());
  }
  if (words.size() < 10'000) {
    throw std::runtime_error("the text " + file.string() + " has " + std::to_string(words.size()) +
                             " words; training needs 10,000 or more");
  }
  std::unordered_map<std::string, std::int64_t> counts;
  for (std::string const& word : words) {
    ++counts[word];
  }
  std::vector<std::pair<std::int64_t, std::string>> frequent;
  for (auto const& [word, count] : counts) {
    frequent.emplace_back(-count, word); // of words that are as frequent, the alphabet decides
  }
  std::sort(frequent.begin(), frequent.end());
  std::unordered_map<std::string, std::int64_t> numbers;
  for (auto const& [count, word] : frequent) {
    auto const number = static_cast<std::int64_t>(numbers.size()) + 2;
    if (number >= most) {
      break;
    }
    numbers[word] = number;
  }
  torch::Tensor const all = torch::empty({static_cast<std::int64_t>(words.size())}, torch::kLong);
  auto* const to = all.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < words.size(); ++i) {
    auto const known = numbers.find(words[i]);
    to[i] = known == numbers.end() ? text::unknown : known->second;
  }
  std::int64_t const cut = all.numel() / 20 * 19;
  return {all.slice(0, 0, cut), all.slice(0, cut), static_cast<std::int64_t>(numbers.size()) + 2};
}

} // namespace torch_training
