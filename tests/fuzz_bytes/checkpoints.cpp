// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Checkpoints: read, put into the object that they are of, and gone on from.

#include "support/policies.hpp"
#include "target.hpp"

#include <oktopk/adam.hpp>
#include <oktopk/algorithm/gtopk.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/algorithm/topk_dsa.hpp>
#include <oktopk/bucketed.hpp>
#include <oktopk/catalogue/any_allreduce.hpp>
#include <oktopk/comm/self.hpp>
#include <oktopk/core/checkpoint.hpp>
#include <oktopk/select/reused_threshold.hpp>
#include <oktopk/sgd.hpp>

#include <sstream>
#include <tuple>

namespace oktopk_fuzz {
namespace {

using execution = Kokkos::DefaultHostExecutionSpace;
using comm = oktopk::self_communicator;
using vector = Kokkos::View<float*, execution::memory_space>;

constexpr std::int64_t length = 96;
std::vector<std::int64_t> const lengths{40, 0, 56};

using reused = oktopk::ok_topk<execution, comm, oktopk_tests::reused_policies>;
using plain = oktopk::ok_topk<execution, comm>;
using any = oktopk::any_allreduce<execution, comm>;

// A file whose parts are these bytes, as far as their number and their checksum tell.
std::string sealed(std::span<std::byte const> parts) {
  oktopk::detail::checkpoint_header header;
  oktopk::detail::fnv1a digest;
  digest.add(parts.data(), parts.size());
  header.bytes = parts.size();
  header.digest = digest.value();
  std::string file(reinterpret_cast<char const*>(&header), sizeof header);
  return file.append(reinterpret_cast<char const*>(parts.data()), parts.size());
}

template <class State>
std::string saved(State const& state) {
  std::ostringstream out;
  oktopk::save(out, state);
  return out.str();
}

template <class State>
State loaded(std::string const& file) {
  std::istringstream in(file);
  State state = oktopk::load<State>(in);
  require(saved(state) == file, "a checkpoint that was accepted is not written the same");
  return state;
}

vector ramp(std::int64_t size) {
  vector made("ramp", static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < made.extent(0); ++i) {
    made(i) = 0.01F * static_cast<float>(i * i % 37) - 0.1F;
  }
  return made;
}

// Each subject: `file()`, a checkpoint of it after a step, and `go_on(file)`, which restores and makes a step.
template <class Optimizer, class Allreduce>
struct trained {
  template <class AllreduceOptions, class OptimizerOptions>
  trained(AllreduceOptions const& size, OptimizerOptions const& how)
      : allreduce(execution(), comm(), size), optimizer(allreduce, how), weights("weights", length),
        gradient(ramp(length)) {}

  std::string file() {
    optimizer.step(weights, gradient);
    return saved(optimizer.state());
  }
  void go_on(std::string const& from) {
    optimizer.restore(loaded<typename Optimizer::state_type>(from));
    optimizer.step(weights, gradient);
  }

  Allreduce allreduce;
  Optimizer optimizer;
  vector weights;
  vector gradient;
};

template <class Allreduce>
struct called {
  called() : allreduce(execution(), comm(), {.length = length, .k = 7}), accumulator(ramp(length)) {}

  std::string file() {
    allreduce(accumulator);
    return saved(allreduce.state());
  }
  void go_on(std::string const& from) {
    allreduce.restore(loaded<typename Allreduce::state_type>(from));
    allreduce(accumulator);
  }

  Allreduce allreduce;
  vector accumulator;
};

struct in_buckets {
  in_buckets()
      : buckets(
            execution(), comm(), lengths,
            [](oktopk::bucket const& of) { return plain(execution(), comm(), {.length = of.length, .density = 0.1}); },
            {.plan = {.bucket_bytes = 4 * 50}, .feedback = {.momentum = 0.5}}) {}

  std::string file() {
    step();
    return saved(buckets.state());
  }
  void go_on(std::string const& from) {
    buckets.restore(loaded<oktopk::bucketed<plain>::state_type>(from));
    step();
  }
  void step() {
    for (std::size_t i = lengths.size(); i-- > 0;) {
      buckets.ready(static_cast<int>(i), ramp(lengths[i]));
    }
    buckets.wait();
  }

  oktopk::bucketed<plain> buckets;
};

// The state of one inside a state: `inner` has its checkpoint damaged, the other what is around it.
template <bool Inner>
struct by_name {
  by_name() : allreduce(std::in_place_type<reused>, execution(), comm(), {.length = length, .k = 7}) {}

  std::string file() {
    allreduce(ramp(length));
    oktopk::any_state const state = allreduce.state();
    return Inner ? std::string(state.checkpoint.begin(), state.checkpoint.end()) : saved(state);
  }
  void go_on(std::string const& from) {
    if constexpr (Inner) {
      oktopk::any_state state = allreduce.state();
      state.checkpoint.assign(from.begin(), from.end());
      allreduce.restore(state);
    } else {
      allreduce.restore(loaded<oktopk::any_state>(from));
    }
    allreduce(ramp(length));
  }

  any allreduce;
};

struct sgd_of_reused : trained<oktopk::sgd<reused>, reused> {
  sgd_of_reused()
      : trained(reused::options{.length = length, .k = 7},
                oktopk::sgd<reused>::options{.learning_rate = 0.1, .feedback = {.momentum = 0.9}}) {}
};

struct adam_of_plain : trained<oktopk::adam<plain>, plain> {
  adam_of_plain() : trained(plain::options{.length = length, .k = 7}, oktopk::adam<plain>::options{}) {}
};

using all_subjects = std::tuple<sgd_of_reused, adam_of_plain, called<oktopk::gaussian_k<execution, comm>>,
                                called<oktopk::topk_dsa<execution, comm>>, in_buckets, by_name<false>, by_name<true>>;

template <std::size_t Which = 0, class Visit>
void with_subject(std::uint8_t which, Visit const& visit) {
  if constexpr (Which < std::tuple_size_v<all_subjects>) {
    if (which == Which) {
      std::tuple_element_t<Which, all_subjects> subject;
      return visit(subject);
    }
    with_subject<Which + 1>(which, visit);
  }
}

constexpr std::uint8_t subjects = std::tuple_size_v<all_subjects>;

} // namespace

// Half of the inputs are whole files; the others are their parts, which get a header that fits, or no more than the
// checksum would ever be tested.
void run(std::span<std::byte const> input) {
  drawn from(input);
  auto const which = static_cast<std::uint8_t>(from.number<std::uint8_t>() % subjects);
  bool const whole = from.number<std::uint8_t>() % 2 == 0;
  bytes const rest = from.rest();
  std::string const file = whole ? std::string(reinterpret_cast<char const*>(rest.data()), rest.size()) : sealed(rest);
  with_subject(which, [&](auto& subject) {
    try {
      subject.go_on(file);
    } catch (oktopk::error const&) {
    }
  });
}

std::vector<bytes> seeds() {
  std::vector<bytes> made;
  for (std::uint8_t which = 0; which < subjects; ++which) {
    with_subject(which, [&](auto& subject) {
      std::string const file = subject.file();
      subject.go_on(file); // a seed that is refused would test nothing
      made.push_back(written().number(which).number(std::uint8_t(0)).text(file));
      made.push_back(
          written().number(which).number(std::uint8_t(1)).text(file.substr(sizeof(oktopk::detail::checkpoint_header))));
    });
  }
  return made;
}

} // namespace oktopk_fuzz
