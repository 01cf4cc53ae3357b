// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Data-parallel training of modules of torch: weights stay equal on all ranks, a dense scheme is training on all data,
// hooks reduce while the backward pass runs, and what is saved goes on to the bit.

#include "torch/ranks.hpp"

#include "support/catch.hpp"
#include "support/caught.hpp"

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/algorithm/ok_topk.hpp>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <cstring>

using namespace oktopk_tests;
using oktopk::bucket;
using oktopk::data_parallel;
using oktopk::fault;

namespace {

using execution = Kokkos::DefaultHostExecutionSpace;
using comm_type = oktopk::process_group_communicator;
using sparse = oktopk::ok_topk<execution, comm_type>;
using everything = oktopk::dense<execution, comm_type>;

struct network : torch::nn::Module {
  explicit network(int outputs = 3) : head(8, outputs) {
    register_module("body", body);
    register_module("head", head);
    register_module("unused", unused);
    counter = register_buffer("counter", torch::full({1}, world_rank() + 5, at::kLong));
  }

  torch::Tensor forward(torch::Tensor const& x) { return head(torch::tanh(body(x))); }

  torch::nn::Linear body{10, 8};
  torch::nn::Linear head;
  torch::nn::Linear unused{2, 2};
  torch::Tensor counter;
};

/// The examples of a rank; the same in every run.
torch::Tensor inputs_of(int rank) {
  torch::manual_seed(static_cast<std::uint64_t>(100 + rank));
  return torch::randn({6, 10});
}

torch::Tensor targets_of(torch::Tensor const& inputs) {
  return torch::stack({inputs.select(1, 0), inputs.select(1, 3) * 2, inputs.sum(1)}, 1);
}

torch::Tensor loss_of(network& model, int rank) {
  auto const inputs = inputs_of(rank);
  return torch::mse_loss(model.forward(inputs), targets_of(inputs));
}

std::string weights_of(torch::nn::Module const& model) {
  std::string bytes;
  for (torch::Tensor const& each : model.parameters()) {
    bytes.append(static_cast<char const*>(each.data_ptr()), each.nbytes());
  }
  return bytes;
}

auto make_sparse(comm_type const& comm) {
  return [comm](bucket const& of) { return sparse(execution(), comm, {.length = of.length, .density = of.density}); };
}

auto make_dense(comm_type const& comm) {
  return [comm](bucket const& of) { return everything(execution(), comm, {.length = of.length}); };
}

std::vector<int> order_of(oktopk::detail::bucket_plan const& plan) {
  std::vector<int> order;
  for (bucket const& each : plan.buckets) {
    order.insert(order.end(), each.tensors.begin(), each.tensors.end());
  }
  return order;
}

// Each value of the weight has the gradient 2 then, on this rank.
template <class Parallel>
void touch_without_reducing(Parallel& parallel, torch::Tensor const& weight) {
  parallel.set_reducing(false);
  (2 * weight.sum()).backward();
  parallel.set_reducing(true);
}

oktopk::detail::data_parallel_options in_buckets(std::int64_t bytes) {
  oktopk::detail::data_parallel_options how;
  how.density = 0.2;
  how.buckets.plan.bucket_bytes = bytes;
  return how;
}

} // namespace

TEST_CASE(
    "parameters and buffers begin as those of rank 0: those without gradients too, whatever their type, and stay so") {
  on_all_ranks([] {
    auto const comm = connected();
    torch::manual_seed(static_cast<std::uint64_t>(world_rank()));
    network model;
    model.body->to(torch::kDouble);
    model.body->weight.set_requires_grad(false);
    model.body->bias.set_requires_grad(false);
    data_parallel parallel(model, comm, make_sparse(comm));
    CHECK(same_everywhere(weights_of(model)));
    CHECK(!model.body->weight.grad().defined());
    CHECK(model.counter.item<std::int64_t>() == 5);
  });
  on_several_ranks([] {
    auto comm = connected();
    network model;
    model.body->weight.set_requires_grad(world_rank() != 1);
    auto const heard = outcome_of([&] { data_parallel parallel(model, comm, make_sparse(comm)); });
    CHECK(heard.code == fault::ranks_disagree);
    CHECK(heard.says("body.weight"));
  });
}

TEST_CASE("a gradient that cannot be taken on one rank fails the step on all, by its name on that one, and all go on") {
  on_several_ranks([] {
    auto const comm = connected();
    int const last = world_size() - 1;
    torch::nn::Embedding table(torch::nn::EmbeddingOptions(40, 10).sparse(world_rank() == last));
    data_parallel parallel(*table, comm, make_sparse(comm));
    auto const step = [&] {
      table->weight.mutable_grad() = at::Tensor();
      return outcome_of([&] {
        table->forward(torch::arange(8)).sum().backward();
        parallel.wait();
      });
    };
    auto const heard = step();
    CHECK(heard.code == fault::caller_failed);
    CHECK(heard.says(world_rank() == last ? "tensor 0: " : "rank " + std::to_string(last) + ": it has no accumulator"));
    CHECK((world_rank() != last || heard.says("parse"))); // Sparse
    table->options.sparse(false);
    CHECK(step().code == fault::none);
    at::Tensor const average = table->weight.grad();
    CHECK(same_everywhere(std::string(static_cast<char const*>(average.data_ptr()), average.nbytes())));
  });
}

TEST_CASE("with directions, second moments are of the rows and columns of the parameters, the same on all ranks") {
  on_several_ranks([] {
    torch::manual_seed(1);
    network model;
    auto const comm = connected();
    auto how = in_buckets(64);
    how.buckets.directions.emplace();
    data_parallel parallel(model, comm, make_sparse(comm), how);
    torch::optim::SGD optimizer(model.parameters(), 0.01);
    double first = 0;
    double last = 0;
    for (int step = 0; step < 60; ++step) {
      optimizer.zero_grad();
      auto const loss = loss_of(model, world_rank());
      last = loss.item<double>();
      first = step == 0 ? last : first;
      loss.backward();
      parallel.wait();
      optimizer.step();
    }
    auto const moments = parallel.state().moments;
    CHECK(moments.rows == std::vector<std::int64_t>{8, 1, 3, 1, 2, 1});
    CHECK(moments.squares.size() == 8 + 10 + 8 + 3 + 8 + 3 + 2 + 2 + 2);
    CHECK(same_everywhere(
        std::string(reinterpret_cast<char const*>(moments.squares.data()), moments.squares.size() * sizeof(float))));
    CHECK(same_everywhere(weights_of(model)));
    CHECK(last < first);
  });
}

TEST_CASE("with a dense scheme, training is that of one process on the data of all") {
  on_all_ranks([] {
    torch::manual_seed(1);
    network alone;
    torch::manual_seed(1);
    network model;
    auto const comm = connected();
    data_parallel parallel(model, comm, make_dense(comm), in_buckets(64));
    CHECK(parallel.buckets().overlaps());
    CHECK(parallel.buckets().plan().buckets.size() > 2);
    torch::optim::SGD optimizer(model.parameters(), 0.1);
    torch::optim::SGD of_alone(alone.parameters(), 0.1);
    for (int step = 0; step < 5; ++step) {
      optimizer.zero_grad();
      loss_of(model, world_rank()).backward();
      parallel.wait();
      optimizer.step();
      of_alone.zero_grad();
      for (int rank = 0; rank < world_size(); ++rank) {
        (loss_of(alone, rank) / world_size()).backward();
      }
      of_alone.step();
    }
    CHECK(same_everywhere(weights_of(model)));
    auto const expected = alone.parameters();
    auto const found = model.parameters();
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(torch::allclose(found[i], expected[i], 1e-4, 1e-6));
    }
  });
}

TEST_CASE("a sparse scheme trains, weights stay equal, and a restart gives the same bits") {
  on_all_ranks([] {
    auto const comm = connected();
    torch::manual_seed(2);
    network model;
    data_parallel parallel(model, comm, make_sparse(comm), in_buckets(200));
    torch::optim::SGD optimizer(model.parameters(), 0.05);
    double const before = loss_of(model, world_rank()).item<double>();
    auto const train = [](network& of, auto& through, torch::optim::SGD& with, int steps) {
      for (int step = 0; step < steps; ++step) {
        with.zero_grad();
        loss_of(of, world_rank()).backward();
        through.wait();
        with.step();
      }
    };
    train(model, parallel, optimizer, 40);
    CHECK(loss_of(model, world_rank()).item<double>() < 0.7 * before);
    CHECK(same_everywhere(weights_of(model)));
    CHECK(parallel.last_step().communication() > 0);

    network again;
    data_parallel resumed(again, comm, make_sparse(comm), in_buckets(200));
    torch::NoGradGuard const not_recorded;
    for (std::size_t i = 0; i < again.parameters().size(); ++i) {
      again.parameters()[i].copy_(model.parameters()[i]);
    }
    CHECK(order_of(resumed.buckets().plan()) != order_of(parallel.buckets().plan()));
    resumed.restore(parallel.state());
    CHECK(order_of(resumed.buckets().plan()) == order_of(parallel.buckets().plan()));
    torch::AutoGradMode const recorded(true);
    torch::optim::SGD of_again(again.parameters(), 0.05);
    train(model, parallel, optimizer, 5);
    train(again, resumed, of_again, 5);
    CHECK(weights_of(model) == weights_of(again));
  });
}

namespace {

/// Its first layer in the order of parameters is used last, and a branch of it is not used.
struct disordered : torch::nn::Module {
  disordered() {
    register_module("head", head);
    register_module("unused", unused);
    register_module("left", left);
    register_module("right", right);
  }

  // The gradients of what is used last come first.
  torch::Tensor forward(torch::Tensor const& x, bool left_first) {
    torch::Tensor const one = left_first ? left(x) : right(x);
    torch::Tensor const other = left_first ? right(x) : left(x);
    return head(torch::tanh(one + other));
  }

  torch::nn::Linear head{8, 3};
  torch::nn::Linear unused{2, 2};
  torch::nn::Linear left{10, 8};
  torch::nn::Linear right{10, 8};
};

std::string trained(oktopk::detail::data_parallel_options const& how, bool left_first, std::vector<int>& order) {
  auto const comm = connected();
  torch::manual_seed(6);
  disordered model;
  // Regions of each call's own: a bucket that is made anew begins with others than one that goes on.
  auto const make = [comm](bucket const& of) {
    return sparse(execution(), comm, {.length = of.length, .density = of.density, .partition = {.tau = 1}});
  };
  data_parallel parallel(model, comm, make, how);
  torch::optim::SGD optimizer(model.parameters(), 0.05);
  for (int step = 0; step < 6; ++step) {
    optimizer.zero_grad(); // keeps the memory of gradients, which is that of the buckets
    auto const inputs = inputs_of(world_rank());
    torch::mse_loss(model.forward(inputs, left_first), targets_of(inputs)).backward();
    parallel.wait();
    optimizer.step();
    CHECK(parallel.last_step().buckets.size() == parallel.buckets().plan().buckets.size());
    CHECK(parallel.last_step().communication() > 0);
  }
  order = order_of(parallel.buckets().plan());
  return weights_of(model);
}

} // namespace

TEST_CASE("after the first step buckets have the order in which gradients come, and nothing is lost") {
  on_all_ranks([] {
    auto how = in_buckets(1); // one tensor each: then the order changes no selection
    how.buckets.feedback.momentum = 0.9;
    std::vector<int> learnt;
    std::string const weights = trained(how, true, learnt);
    std::vector<int> const heads(learnt.begin(), learnt.begin() + 2);
    CHECK((heads == std::vector<int>{0, 1} || heads == std::vector<int>{1, 0}));
    std::vector<int> const unused(learnt.end() - 2, learnt.end());
    CHECK(unused == std::vector<int>{3, 2}); // as before, since no gradient has come
    how.order_from_first_step = false;
    std::vector<int> order;
    CHECK(weights == trained(how, true, order));
    CHECK(order == std::vector<int>{7, 6, 5, 4, 3, 2, 1, 0});
    how.order_from_first_step = true;
    how.buckets.plan.order = {7, 0, 6, 1, 5, 2, 4, 3};
    CHECK(weights == trained(how, true, order));
    CHECK(order == how.buckets.plan.order);
  });
}

TEST_CASE("where gradients come in another order on each rank, all take that of rank 0") {
  on_all_ranks([] {
    auto const how = in_buckets(1);
    std::vector<int> of_root;
    std::vector<int> order;
    std::string const weights = trained(how, true, of_root);
    CHECK(same_everywhere(trained(how, world_rank() % 2 == 0, order)));
    CHECK(order == of_root);
    CHECK(same_everywhere(weights));
  });
}

TEST_CASE("a frozen parameter is left alone, and what its residual holds comes when it is used again") {
  on_all_ranks([] {
    network model;
    auto how = in_buckets(200);
    how.density = 0.03; // an entry a step, so that some wait
    data_parallel parallel(model, connected(), make_sparse(connected()), how);
    torch::Tensor const weight = model.unused->weight; // its gradients are what this test says, and the largest
    torch::Tensor moved = torch::zeros_like(weight);
    auto const step = [&](double scale) {
      for (torch::Tensor const& each : model.parameters()) {
        each.mutable_grad() = torch::Tensor();
      }
      auto loss = 1e-3 * loss_of(model, world_rank());
      if (weight.requires_grad()) {
        loss = loss + scale * (weight * torch::tensor({{1.0F, 2.0F}, {3.0F, 4.0F}})).sum();
      }
      loss.backward();
      parallel.wait();
      if (weight.grad().defined()) {
        moved += weight.grad();
      }
    };
    step(1);
    torch::Tensor const before = moved.clone();
    weight.set_requires_grad(false);
    for (int i = 0; i < 10; ++i) {
      step(0);
      CHECK(!weight.grad().defined());
    }
    CHECK(torch::equal(moved, before));
    weight.set_requires_grad(true);
    for (int i = 0; i < 60; ++i) {
      step(0);
    }
    CHECK(torch::allclose(moved, torch::tensor({{1.0F, 2.0F}, {3.0F, 4.0F}})));
    CHECK(!torch::equal(moved, before));
  });
}

TEST_CASE("backward passes without reducing add up, and the next one reduces the sum") {
  on_all_ranks([] {
    auto const comm = connected();
    torch::manual_seed(3);
    network model;
    data_parallel parallel(model, comm, make_dense(comm));
    loss_of(model, world_rank()).backward();
    parallel.wait();
    auto const once = model.body->weight.grad().clone();
    model.zero_grad();
    parallel.set_reducing(false);
    loss_of(model, world_rank()).backward();
    parallel.set_reducing(true);
    loss_of(model, world_rank()).backward();
    parallel.wait();
    CHECK(torch::allclose(model.body->weight.grad(), 2 * once, 1e-4, 1e-6));
  });
}

TEST_CASE("what a backward pass without reducing has left is reduced with the next one, whatever that one touches") {
  on_all_ranks([] {
    auto const comm = connected();
    network model;
    data_parallel parallel(model, comm, make_dense(comm));
    touch_without_reducing(parallel, model.unused->weight);
    loss_of(model, world_rank()).backward();
    parallel.wait();
    CHECK(torch::allclose(model.unused->weight.grad(), torch::full({2, 2}, 2.0)));
    CHECK(model.body->weight.grad().abs().sum().item<double>() > 0);
  });
}

TEST_CASE("a gradient of a backward pass without reducing that was dropped since counts as none") {
  on_all_ranks([] {
    auto const comm = connected();
    network model;
    data_parallel parallel(model, comm, make_dense(comm));
    touch_without_reducing(parallel, model.unused->weight);
    model.zero_grad(true);
    auto loss = loss_of(model, world_rank());
    if (world_rank() != 0) {
      loss = loss + 3 * model.unused->weight.sum();
    }
    loss.backward();
    parallel.wait();
    double const expected = 3.0 * (world_size() - 1) / world_size();
    CHECK(torch::allclose(model.unused->weight.grad(), torch::full({2, 2}, expected)));
  });
}

static_assert(!std::is_move_constructible_v<data_parallel<sparse>>, "hooks refer to it");

TEST_CASE("modules that differ, or have parameters of another type, are an error on every rank that says which") {
  on_several_ranks([] {
    auto comm = connected();
    network different(world_rank() == 1 ? 4 : 3);
    auto heard = outcome_of([&] { data_parallel parallel(different, comm, make_sparse(comm)); });
    CHECK(heard.code == fault::ranks_disagree);
    CHECK(heard.says("head.weight"));
    network twice;
    if (world_rank() == 1) {
      twice.head->to(torch::kDouble);
    }
    heard = outcome_of([&] { data_parallel parallel(twice, comm, make_sparse(comm)); });
    CHECK(heard.code == fault::option_out_of_range);
    CHECK(heard.says("head.weight"));
  });
}

TEST_CASE("after its end nothing of a data_parallel is called any more") {
  on_all_ranks([] {
    auto const comm = connected();
    network model;
    {
      data_parallel parallel(model, comm, make_dense(comm));
      loss_of(model, world_rank()).backward();
      parallel.wait();
    }
    auto const before = model.body->weight.grad().clone(); // no longer in the memory of a bucket
    loss_of(model, world_rank()).backward();
    CHECK(!torch::equal(model.body->weight.grad(), before));
  });
}

TEST_CASE("the loop of docs/training.md trains") {
  on_all_ranks([] {
    auto const comm = connected();
    torch::manual_seed(4);
    network model;
    torch::optim::SGD optimizer(model.parameters(), 0.05);
    float const before = loss_of(model, comm.rank()).item<float>();

    oktopk::data_parallel parallel(model, comm, "ok_topk(format=packed)", {.density = 0.1});
    for (int step = 0; step < 20; ++step) {
      optimizer.zero_grad();
      loss_of(model, comm.rank()).backward();
      parallel.wait(); // gradients are averages over all ranks now
      optimizer.step();
    }

    CHECK(loss_of(model, comm.rank()).item<float>() < before);
    CHECK(same_everywhere(weights_of(model)));
  });
}
