// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <torch/nn.h>

#include <cstdint>

// The networks of the paper's section 5, for data of this size.
namespace torch_training {

/// VGG-16 for images of 32 x 32 in one channel (Simonyan and Zisserman 2015, configuration D), with batch normalisation
/// and one linear layer: 14.7 million parameters at size 1.
class vgg16 : public torch::nn::Module {
public:
  explicit vgg16(double size);
  torch::Tensor forward(torch::Tensor const& images);

private:
  torch::nn::Sequential features_;
  torch::nn::Linear head_{nullptr};
};

/// A language model: embedding, two layers of LSTM and a linear layer; 30 million parameters at size 1 with 10,000
/// words.
class lstm : public torch::nn::Module {
public:
  using state = std::tuple<torch::Tensor, torch::Tensor>;

  lstm(std::int64_t words, double size);
  /// Words of (length, batch) to scores of the next ones, (length * batch, words); the state goes on.
  torch::Tensor forward(torch::Tensor const& words, state& carried);
  state begin(std::int64_t batch) const;

private:
  std::int64_t width_;
  torch::nn::Embedding embedding_{nullptr};
  torch::nn::LSTM layers_{nullptr};
  torch::nn::Linear head_{nullptr};
};

/// A masked language model: embeddings of words and places, four layers of a transformer's encoder, a linear layer
/// (Devlin et al. 2019); 23 million parameters at size 1 with 10,000 words.
class bert : public torch::nn::Module {
public:
  bert(std::int64_t words, std::int64_t length, double size);
  /// Words of (length, batch) to scores, (length * batch, words).
  torch::Tensor forward(torch::Tensor const& words);

private:
  torch::nn::Embedding words_{nullptr};
  torch::nn::Embedding places_{nullptr};
  torch::nn::TransformerEncoder layers_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
  torch::nn::Linear head_{nullptr};
};

} // namespace torch_training
