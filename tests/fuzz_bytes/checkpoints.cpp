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
std::string sealed(std::string const& parts) {
  oktopk::detail::checkpoint_header header;
  oktopk::detail::fnv1a digest;
  digest.add(parts.data(), parts.size());
  header.bytes = parts.size();
  header.digest = digest.value();
  return std::string(reinterpret_cast<char const*>(&header), sizeof header) + parts;
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

// Each subject has a state and makes steps.
template <class Optimizer, class Allreduce>
struct trained {
  using state_type = typename Optimizer::state_type;

  state_type state() const { return optimizer.state(); }
  void restore(state_type const& from) { optimizer.restore(from); }
  void step() { optimizer.step(weights, gradient); }

  Allreduce allreduce;
  Optimizer optimizer;
  vector weights{"weights", length};
  vector gradient = ramp(length);
};

struct sgd_of_reused : trained<oktopk::sgd<reused>, reused> {
  sgd_of_reused()
      : trained{reused(execution(), comm(), {.length = length, .k = 7}),
                oktopk::sgd<reused>(allreduce, {.learning_rate = 0.1, .feedback = {.momentum = 0.9}})} {}
};

struct adam_of_plain : trained<oktopk::adam<plain>, plain> {
  adam_of_plain()
      : trained{plain(execution(), comm(), {.length = length, .k = 7}), oktopk::adam<plain>(allreduce, {})} {}
};

template <class Allreduce>
struct called : Allreduce {
  called() : Allreduce(execution(), comm(), {.length = length, .k = 7}) {}
  void step() { (*this)(ramp(length)); }
};

struct in_buckets : oktopk::bucketed<plain> {
  in_buckets()
      : bucketed(
            execution(), comm(), lengths,
            [](oktopk::bucket const& of) { return plain(execution(), comm(), {.length = of.length, .density = 0.1}); },
            {.plan = {.bucket_bytes = 4 * 50}, .feedback = {.momentum = 0.5}}) {}
  void step() {
    for (std::size_t i = lengths.size(); i-- > 0;) {
      ready(static_cast<int>(i), ramp(lengths[i]));
    }
    wait();
  }
};

struct by_name {
  using state_type = any::state_type;

  state_type const& state() const { return inside.state(); }
  void restore(state_type const& saved) { inside.restore(saved); }
  void step() { inside(ramp(length)); }

  any inside{std::in_place_type<reused>, execution(), comm(), reused::options{.length = length, .k = 7}};
};

// The state of one inside a state: this has its checkpoint damaged, `by_name` what is around it.
struct inside_by_name : by_name {};

template <class Subject>
std::string file_of(Subject& subject) {
  subject.step();
  if constexpr (std::is_same_v<Subject, inside_by_name>) {
    auto const state = subject.state();
    return {state.checkpoint.begin(), state.checkpoint.end()};
  } else {
    return saved(subject.state());
  }
}

template <class Subject>
void go_on(Subject& subject, std::string const& from) {
  if constexpr (std::is_same_v<Subject, inside_by_name>) {
    auto state = subject.state();
    state.checkpoint.assign(from.begin(), from.end());
    subject.restore(state);
  } else {
    subject.restore(loaded<typename Subject::state_type>(from));
  }
  subject.step();
}

using all_subjects = std::tuple<sgd_of_reused, adam_of_plain, called<oktopk::gaussian_k<execution, comm>>,
                                called<oktopk::topk_dsa<execution, comm>>, in_buckets, by_name, inside_by_name>;

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
  std::string const file = whole ? from.text() : sealed(from.text());
  with_subject(which, [&](auto& subject) {
    try {
      go_on(subject, file);
    } catch (oktopk::error const&) {
    }
  });
}

std::vector<bytes> seeds() {
  std::vector<bytes> made;
  for (std::uint8_t which = 0; which < subjects; ++which) {
    with_subject(which, [&](auto& subject) {
      std::string const file = file_of(subject);
      go_on(subject, file); // a seed that is refused would test nothing
      made.push_back(written().number(which).number(std::uint8_t(0)).text(file));
      made.push_back(
          written().number(which).number(std::uint8_t(1)).text(file.substr(sizeof(oktopk::detail::checkpoint_header))));
    });
  }
  return made;
}

} // namespace oktopk_fuzz
