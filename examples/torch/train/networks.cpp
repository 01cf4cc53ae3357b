// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "networks.hpp"

#include <ATen/Context.h>
#include <torch/nn/functional.h>
#include <torch/utils.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>

namespace torch_training {
namespace {

std::int64_t scaled(std::int64_t width, double size, std::int64_t multiple) {
  auto const rounded = std::llround(static_cast<double>(width) * size / static_cast<double>(multiple));
  return std::max<std::int64_t>(rounded, 1) * multiple;
}

} // namespace

vgg16::vgg16(double size) {
  constexpr std::int64_t pool = 0;
  std::int64_t channels = 1;
  for (std::int64_t const width : {64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0}) {
    if (width == pool) {
      features_->push_back(torch::nn::MaxPool2d(2));
      continue;
    }
    std::int64_t const next = scaled(width, size, 1);
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR == 6
    if (next % 16 != 0) { // gradients can be NaN with oneDNN: findings/torch_conv_channels.sh
      at::globalContext().setUserEnabledMkldnn(false);
    }
#endif
    features_->push_back(torch::nn::Conv2d(torch::nn::Conv2dOptions(channels, next, 3).padding(1).bias(false)));
    features_->push_back(torch::nn::BatchNorm2d(next));
    features_->push_back(torch::nn::ReLU(torch::nn::ReLUOptions(true)));
    channels = next;
  }
  register_module("features", features_);
  head_ = register_module("head", torch::nn::Linear(channels, 10));
}

torch::Tensor vgg16::forward(torch::Tensor const& images) {
  return head_(features_->forward(images).flatten(1));
}

lstm::lstm(std::int64_t words, double size) : width_(scaled(1024, size, 8)) {
  std::int64_t const inner = scaled(512, size, 8);
  embedding_ = register_module("embedding", torch::nn::Embedding(words, inner));
  layers_ = register_module("layers", torch::nn::LSTM(torch::nn::LSTMOptions(inner, width_).num_layers(2)));
  head_ = register_module("head", torch::nn::Linear(width_, words));
  torch::NoGradGuard const not_recorded;
  embedding_->weight.uniform_(-0.1, 0.1);
  head_->weight.uniform_(-0.1, 0.1);
  head_->bias.zero_();
}

lstm::state lstm::begin(std::int64_t batch) const {
  return {torch::zeros({2, batch, width_}), torch::zeros({2, batch, width_})};
}

torch::Tensor lstm::forward(torch::Tensor const& words, state& carried) {
  auto [output, next] = layers_(embedding_(words), carried);
  carried = {std::get<0>(next).detach(), std::get<1>(next).detach()};
  return head_(output.flatten(0, 1));
}

bert::bert(std::int64_t words, std::int64_t length, double size) {
  constexpr std::int64_t heads = 8;
  std::int64_t const width = scaled(512, size, heads);
  words_ = register_module("words", torch::nn::Embedding(words, width));
  places_ = register_module("places", torch::nn::Embedding(length, width));
  norm_ = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
  auto const layer = torch::nn::TransformerEncoderLayerOptions(width, heads)
                         .dim_feedforward(4 * width)
                         .dropout(0.1)
                         .activation(torch::kGELU);
  layers_ = register_module("layers", torch::nn::TransformerEncoder(torch::nn::TransformerEncoderLayer(layer), 4));
  head_ = register_module("head", torch::nn::Linear(width, words));
  torch::NoGradGuard const not_recorded;
  for (auto& each : named_parameters()) {
    if (each.value().dim() > 1) {
      each.value().normal_(0, 0.02);
    }
  }
}

torch::Tensor bert::forward(torch::Tensor const& words) {
  auto const places = torch::arange(words.size(0)).unsqueeze(1);
  return head_(layers_(norm_(words_(words) + places_(places))).flatten(0, 1));
}

} // namespace torch_training
