// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "workload.hpp"

#include "networks.hpp"
#include "text.hpp"

#include "../../train_fashion_mnist/idx_file.hpp"

#include "programs/numbers.hpp"

#include <oktopk/catalogue/option_reader.hpp>

#include <torch/nn/functional.h>
#include <torch/utils.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace torch_training {
namespace {

namespace functional = torch::nn::functional;

evaluation evaluation_of(torch::Tensor const& scores, torch::Tensor const& targets) {
  auto const loss =
      functional::cross_entropy(scores, targets, functional::CrossEntropyFuncOptions().reduction(torch::kSum));
  return {loss.item<double>(), scores.argmax(1).eq(targets).sum().item<double>(), static_cast<double>(targets.numel())};
}

void add(evaluation& sum, evaluation const& more) {
  sum.loss += more.loss;
  sum.right += more.right;
  sum.examples += more.examples;
}

/// The share of a rank: equal parts, one after the other, the rest left out.
torch::Tensor share(torch::Tensor const& all, int rank, int ranks) {
  std::int64_t const size = all.size(0) / ranks;
  return all.slice(0, rank * size, (rank + 1) * size);
}

class images_workload final : public workload {
public:
  images_workload(options const& how, int rank, int ranks)
      : batch_(how.batch), seed_(how.seed), rank_(rank), ranks_(ranks), network_(how.size) {
    std::tie(images_, labels_) = load(how.images, "train");
    std::tie(test_images_, test_labels_) = load(how.images, "t10k");
    test_images_ = share(test_images_, rank, ranks);
    test_labels_ = share(test_labels_, rank, ranks);
    if (iterations_of_an_epoch() < 1) {
      throw std::runtime_error("a batch of all ranks has more images than there are");
    }
  }

  torch::nn::Module& module() override { return network_; }

  torch::Tensor loss(std::int64_t iteration) override {
    network_.train();
    std::int64_t const epoch = iteration / iterations_of_an_epoch();
    if (epoch != epoch_) {
      epoch_ = epoch;
      torch::Generator generator =
          torch::make_generator<torch::CPUGeneratorImpl>(static_cast<std::uint64_t>(seed_ + epoch));
      order_ = torch::randperm(images_.size(0), generator, torch::kLong);
    }
    std::int64_t const begin = (iteration % iterations_of_an_epoch() * ranks_ + rank_) * batch_;
    auto const chosen = order_.slice(0, begin, begin + batch_);
    return functional::cross_entropy(network_.forward(prepared(images_.index_select(0, chosen))),
                                     labels_.index_select(0, chosen));
  }

  evaluation evaluate(std::int64_t parts, std::function<void()> const& tell) override {
    torch::NoGradGuard const not_recorded;
    network_.eval();
    evaluation sum;
    std::int64_t const size = std::min(parts * test_part, test_images_.size(0));
    for (std::int64_t begin = 0; begin < size; begin += 100) {
      std::int64_t const end = std::min(begin + 100, size);
      auto const images = prepared(test_images_.slice(0, begin, end));
      add(sum, evaluation_of(network_.forward(images), test_labels_.slice(0, begin, end)));
      tell();
    }
    return sum;
  }

  std::int64_t test_parts() const override { return (test_images_.size(0) + test_part - 1) / test_part; }

  std::int64_t iterations_of_an_epoch() const override { return images_.size(0) / (batch_ * ranks_); }

private:
  static constexpr std::int64_t test_part = 20;

  static std::pair<torch::Tensor, torch::Tensor> load(std::filesystem::path const& folder, std::string const& part) {
    auto const images = fashion::read_idx(folder / (part + "-images-idx3-ubyte.gz"), 3);
    auto const labels = fashion::read_idx(folder / (part + "-labels-idx1-ubyte.gz"), 1);
    if (images.dimensions[0] != labels.dimensions[0] || images.dimensions[1] != 28 || images.dimensions[2] != 28) {
      throw std::runtime_error("the images in " + folder.string() + " are not those of Fashion-MNIST");
    }
    auto const bytes =
        torch::from_blob(const_cast<std::uint8_t*>(images.bytes.data()), images.dimensions, torch::kByte);
    auto const numbers =
        torch::from_blob(const_cast<std::uint8_t*>(labels.bytes.data()), labels.dimensions, torch::kByte);
    return {bytes.clone(), numbers.to(torch::kLong)};
  }

  // 32 x 32, with the mean and the deviation of the training images.
  static torch::Tensor prepared(torch::Tensor const& images) {
    auto const normal = (images.to(torch::kFloat) / 255 - 0.2860) / 0.3530;
    return functional::pad(normal.unsqueeze(1), functional::PadFuncOptions({2, 2, 2, 2}).value(-0.2860 / 0.3530));
  }

  std::int64_t batch_;
  std::int64_t seed_;
  std::int64_t rank_;
  std::int64_t ranks_;
  vgg16 network_;
  torch::Tensor images_;
  torch::Tensor labels_;
  torch::Tensor test_images_;
  torch::Tensor test_labels_;
  torch::Tensor order_;
  std::int64_t epoch_ = -1;
};

/// Words in as many columns as a batch has, each a passage of the text that goes on from iteration to iteration.
torch::Tensor columns(torch::Tensor const& words, std::int64_t batch, std::int64_t length) {
  std::int64_t const rows = words.size(0) / batch;
  if (rows <= length) {
    throw std::runtime_error("the text is too short for that many ranks and so large a batch");
  }
  return words.slice(0, 0, rows * batch).view({batch, rows}).t().contiguous();
}

class lstm_workload final : public workload {
public:
  lstm_workload(options const& how, int rank, int ranks)
      : text_(read_text(how.text, how.words)), network_(text_.words, how.size),
        training_(columns(share(text_.training, rank, ranks), how.batch, length)),
        test_(columns(share(text_.test, rank, ranks), test_batch, length)), state_(network_.begin(how.batch)) {}

  torch::nn::Module& module() override { return network_; }

  torch::Tensor loss(std::int64_t iteration) override {
    network_.train();
    std::int64_t const at = iteration % iterations_of_an_epoch() * length;
    if (at == 0) {
      state_ = network_.begin(training_.size(1));
    }
    return functional::cross_entropy(network_.forward(training_.slice(0, at, at + length), state_),
                                     training_.slice(0, at + 1, at + length + 1).flatten());
  }

  evaluation evaluate(std::int64_t parts, std::function<void()> const& tell) override {
    torch::NoGradGuard const not_recorded;
    network_.eval();
    evaluation sum;
    auto carried = network_.begin(test_batch);
    for (std::int64_t at = 0; at < std::min(parts, test_parts()) * length; at += length) {
      auto const scores = network_.forward(test_.slice(0, at, at + length), carried);
      add(sum, evaluation_of(scores, test_.slice(0, at + 1, at + length + 1).flatten()));
      tell();
    }
    return sum;
  }

  std::int64_t test_parts() const override { return (test_.size(0) - 1) / length; }

  std::int64_t iterations_of_an_epoch() const override { return (training_.size(0) - 1) / length; }

private:
  static constexpr std::int64_t length = 20;
  static constexpr std::int64_t test_batch = 20;

  text text_;
  lstm network_;
  torch::Tensor training_;
  torch::Tensor test_;
  lstm::state state_;
};

class bert_workload final : public workload {
public:
  bert_workload(options const& how, int rank, int ranks)
      : text_(read_text(how.text, how.words)), network_(text_.words, length, how.size), batch_(how.batch),
        seed_(static_cast<std::uint64_t>(how.seed) * 1'000'003 + static_cast<std::uint64_t>(rank)),
        training_(share(text_.training, rank, ranks)), test_(share(text_.test, rank, ranks)) {
    if (training_.size(0) <= length || test_.size(0) < length * test_batch) {
      throw std::runtime_error("the text is too short for that many ranks");
    }
  }

  torch::nn::Module& module() override { return network_; }

  torch::Tensor loss(std::int64_t iteration) override {
    network_.train();
    torch::Generator generator =
        torch::make_generator<torch::CPUGeneratorImpl>(seed_ * 10'000'019 + static_cast<std::uint64_t>(iteration));
    auto const begins = torch::randint(0, training_.size(0) - length, {batch_}, generator, torch::kLong);
    auto const places = torch::arange(length).unsqueeze(1) + begins.unsqueeze(0);
    auto const [given, chosen, targets] =
        masked(training_.index_select(0, places.flatten()).view({length, batch_}), generator);
    return functional::cross_entropy(network_.forward(given).index_select(0, chosen), targets);
  }

  evaluation evaluate(std::int64_t parts, std::function<void()> const& tell) override {
    torch::NoGradGuard const not_recorded;
    network_.eval();
    torch::Generator generator =
        torch::make_generator<torch::CPUGeneratorImpl>(7); // the same words are masked each time
    evaluation sum;
    constexpr std::int64_t batch = test_batch;
    for (std::int64_t each = 0; each < std::min(parts, test_parts()); ++each) {
      auto const words = test_.slice(0, each * length * batch, (each + 1) * length * batch).view({batch, length}).t();
      auto const [given, chosen, targets] = masked(words.contiguous(), generator);
      add(sum, evaluation_of(network_.forward(given).index_select(0, chosen), targets));
      tell();
    }
    return sum;
  }

  std::int64_t test_parts() const override { return std::min<std::int64_t>(test_.size(0) / (length * test_batch), 8); }

  std::int64_t iterations_of_an_epoch() const override {
    return std::max<std::int64_t>(1, training_.size(0) / (length * batch_));
  }

private:
  static constexpr std::int64_t length = 64;
  static constexpr std::int64_t test_batch = 16;

  // 15 % of the words are to be foretold: of these 80 % are masked, 10 % another word, 10 % as they are (Devlin et
  // al.).
  std::tuple<torch::Tensor, torch::Tensor, torch::Tensor> masked(torch::Tensor const& words,
                                                                 torch::Generator& generator) const {
    auto const draw = torch::rand(words.sizes(), generator);
    auto const others = torch::randint(2, text_.words, words.sizes(), generator, torch::kLong);
    auto given = torch::where(draw < 0.12, torch::full_like(words, text::mask), words);
    given = torch::where((draw >= 0.12) & (draw < 0.135), others, given);
    auto const chosen = (draw < 0.15).flatten().nonzero().flatten();
    return {given, chosen, words.flatten().index_select(0, chosen)};
  }

  text text_;
  bert network_;
  std::int64_t batch_;
  std::uint64_t seed_;
  torch::Tensor training_;
  torch::Tensor test_;
};

template <class T>
void choose(T& option, T unset, T own) {
  option = option == unset ? own : option;
}

} // namespace

options completed(options how) {
  bool const images = how.workload == "vgg16";
  bool const recurrent = how.workload == "lstm";
  choose<std::int64_t>(how.batch, 0, images ? 16 : (recurrent ? 8 : 4));
  auto const request = oktopk::detail::allreduce_request::parse(how.scheme());
  if (auto const* const own = request.find("density")) { // it wins over --density, as in the other programs
    how.density = oktopk_programs::number_in<double>(*own).value_or(0);
  }
  if (request.find("k") != nullptr && how.warm_up > 0) {
    throw std::runtime_error("--warm-up ends at a density, and " + how.scheme() + " has a k of its own");
  }
  choose<double>(how.density, 0, images || recurrent ? 0.02 : 0.01); // the paper's
  choose<double>(how.learning_rate, 0, images ? 0.05 : (recurrent ? 1.0 : 2e-4));
  choose<double>(how.momentum, -1, images ? 0.9 : 0.0);
  choose<double>(how.clip_norm, -1, recurrent ? 0.5 : 0.0);
  choose<double>(how.bucket_mib, 0, images ? 8 : 16);
  if (how.iterations == 0 && how.minutes == 0) {
    how.iterations = 200;
  }
  if (how.iterations > 0) {
    choose<std::int64_t>(how.every, 0, std::max<std::int64_t>(1, how.iterations / 20));
  }
  return how;
}

std::unique_ptr<workload> make_workload(options const& how, int rank, int ranks) {
  torch::manual_seed(static_cast<std::uint64_t>(how.seed));
  if (how.workload == "vgg16") {
    return std::make_unique<images_workload>(how, rank, ranks);
  }
  if (how.workload == "lstm") {
    return std::make_unique<lstm_workload>(how, rank, ranks);
  }
  return std::make_unique<bert_workload>(how, rank, ranks);
}

} // namespace torch_training
