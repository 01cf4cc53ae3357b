// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// oktopk/engine.h over the averager: plain memory and texts become its arguments, and errors become codes.

#include "engine/averager.hpp"
#include "engine/catalogue.hpp"
#include "engine/sparse_sum.hpp"
#include "engine/transport.hpp"
#include "engine/workers.hpp"

#include <oktopk/core/version.hpp>
#include <oktopk/engine.h>

#include <cmath>
#include <cstring>
#include <utility>

namespace oktopk::detail {

namespace {

constexpr char const* usual_caller = "oktopk_engine";
thread_local std::string last_error;

std::int32_t code_of(std::exception_ptr const& why) {
  try {
    std::rethrow_exception(why);
  } catch (error const& caught) {
    return static_cast<std::int32_t>(caught.code());
  } catch (...) {
    return OKTOPK_ENGINE_CALLER_FAILED;
  }
}

/// Calls a job; what it throws becomes a code and the last error.
template <class Job>
std::int32_t guarded(char const* caller, Job const& job) noexcept {
  try {
    job();
    return OKTOPK_ENGINE_OK;
  } catch (...) {
    try {
      last_error = text_of(std::current_exception(), caller);
    } catch (...) { // no memory for the sentence
      last_error.clear();
    }
    return code_of(std::current_exception());
  }
}

error wrong(std::string const& sentence) {
  return {fault::option_out_of_range, sentence};
}

void expect(bool holds, std::string const& sentence) {
  if (!holds) {
    throw wrong(sentence);
  }
}

/// The options of a caller whose header may be older; `defaults` are those of this one.
template <class Options>
Options read(Options const* given, Options const& defaults, std::string const& function) {
  expect(given != nullptr, function + ": the options are a null pointer");
  std::size_t const size = given->struct_size;
  expect(size >= sizeof(size) && size <= sizeof(Options),
         function + ": a structure of " + std::to_string(size) + " bytes is given, and this engine knows one of " +
             std::to_string(sizeof(Options)) + ": set struct_size, or take the engine of that header");
  Options made = defaults;
  std::memcpy(&made, given, size);
  return made;
}

std::string text(char const* given, char const* otherwise = "") {
  return given == nullptr ? otherwise : given;
}

/// `count` values from a pointer, which may be null for none.
template <class T>
std::span<T const> span_of(T const* given, std::int64_t count, std::string const& what) {
  expect(count >= 0 && (given != nullptr || count == 0), what + " are a null pointer, or their number is negative");
  return {given, static_cast<std::size_t>(count)};
}

std::vector<std::string> texts(char const* const* given, std::int64_t count, std::string const& what) {
  std::vector<std::string> all;
  for (char const* const each : span_of(given, count, what)) {
    expect(each != nullptr, "one of " + what + " is a null pointer");
    all.emplace_back(each);
  }
  return all;
}

oktopk_engine_group_options group_defaults() {
  oktopk_engine_group_options made{};
  made.struct_size = sizeof(made);
  made.size = 1;
  made.time_limit = std::chrono::duration<double>(usual_time_limit).count();
  return made;
}

oktopk_engine_averager_options averager_defaults() {
  oktopk_engine_averager_options made{};
  made.struct_size = sizeof(made);
  made.algorithm = "ok_topk";
  made.factor_masking = 1;
  made.residual_decay = 1;
  made.beta2 = direction_options().beta2;
  made.epsilon = direction_options().epsilon;
  return made;
}

oktopk_engine_arrival arrival_defaults() {
  oktopk_engine_arrival made{};
  made.struct_size = sizeof(made);
  made.is_first = 1;
  made.is_last = 1;
  made.loss_scale = 1;
  return made;
}

oktopk_engine_contribution contribution_defaults() {
  oktopk_engine_contribution made{};
  made.struct_size = sizeof(made);
  made.width = 1;
  return made;
}

oktopk_engine_loading loading_defaults() {
  oktopk_engine_loading made{};
  made.struct_size = sizeof(made);
  made.saved_by = -1;
  made.steps_of_borders = 1;
  return made;
}

std::chrono::nanoseconds limit_of(double seconds) {
  expect(seconds >= 0 && seconds <= 1e9,
         "a time limit of " + decimal_text(seconds) + " s is not in [0, 1e9]; 0 stands for none");
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
}

group_terms terms_of(oktopk_engine_group_options const& given) {
  expect(given.size >= 1 && given.rank >= 0 && given.rank < given.size,
         "there is no rank " + std::to_string(given.rank) + " among " + std::to_string(given.size));
  group_terms made{given.rank, given.size, text(given.name, "oktopk"), text(given.folder),
                   {},         {},         text(given.interface_name), limit_of(given.time_limit)};
  if (made.size > 1) {
    bool const has_store = given.set != nullptr && given.get != nullptr;
    expect(has_store != (given.folder != nullptr),
           "ranks meet in a folder, or by both functions of a store, set and get");
    if (has_store) {
      made.set = [set = given.set, store = given.store](std::string const& key, std::string const& bytes) {
        if (set(store, key.c_str(), bytes.data(), bytes.size()) != 0) {
          throw error(fault::communication, "the store has not taken the key " + key);
        }
      };
      made.get = [get = given.get, store = given.store](std::string const& key) {
        std::string bytes(std::size_t(1) << 20, '\0'); // 5,000 ranks with 4 links have half of that
        std::int64_t const count = get(store, key.c_str(), bytes.data(), bytes.size());
        if (count < 0 || count > std::ssize(bytes)) {
          throw error(fault::communication, "the store has not given the key " + key);
        }
        bytes.resize(static_cast<std::size_t>(count));
        return bytes;
      };
    }
  }
  return made;
}

/// What a group has on its thread.
struct ranks_of_group : transport {
  sparse_sums sums{};
};

struct group_state {
  group_state(oktopk_engine_group_options const& given, group_terms const& terms)
      : caller(text(given.caller, usual_caller)), rank(terms.rank), size(terms.size),
        on(running_workers::take(key, caller), caller,
           [&] { return std::make_shared<ranks_of_group>(ranks_of_group{meet(terms)}); }) {}
  group_state& operator=(group_state&&) = delete;

  // Another one than that of each earlier group, which may still be waiting for its last message.
  void const* key = reinterpret_cast<void const*>(++last_key);
  std::string caller;
  int rank;
  int size;
  posted<ranks_of_group> on;

private:
  inline static std::atomic<std::uintptr_t> last_key{0};
};

} // namespace

} // namespace oktopk::detail

using namespace oktopk::detail; // NOLINT(google-build-using-namespace)

struct oktopk_engine_group {
  std::shared_ptr<group_state> state;
};

struct oktopk_engine_blob {
  std::vector<char> bytes;
};

struct oktopk_engine_entries {
  summed_entries of;
};

// What an averager does for sums of any type.
struct oktopk_engine_averager {
  explicit oktopk_engine_averager(std::shared_ptr<group_state> group) : of(std::move(group)) {}
  oktopk_engine_averager& operator=(oktopk_engine_averager&&) = delete;
  virtual ~oktopk_engine_averager() = default;

  virtual void arrive(tensor_arrival what) = 0;
  virtual void wait() = 0;
  virtual void backward_ended() = 0;
  virtual void set_density(double density) = 0;
  virtual void undo() = 0;
  virtual std::vector<char> save() = 0;
  virtual std::vector<char> save_before_step() = 0;
  virtual void load(std::vector<std::span<char const>> const& states, tensor_loading const& how) = 0;
  virtual std::pair<std::vector<std::string>, std::vector<std::int64_t>> tensors() = 0;
  virtual std::vector<std::string> schemes() = 0;
  virtual double residual_norm() = 0;
  virtual double words_sent() = 0;
  virtual step_figures last_step() = 0;

  std::shared_ptr<group_state> of;   // outlives what is on its thread
  std::vector<std::int64_t> lengths; // of tensors that come in buckets
};

namespace oktopk::detail {

namespace {

template <gradient_value Value>
class averager_of final : public oktopk_engine_averager {
  using averager = tensor_averager<Value>;

public:
  template <class Make>
  averager_of(std::shared_ptr<group_state> group, Make const& make)
      : oktopk_engine_averager(std::move(group)), on_(running_workers::take(of->key, of->caller), of->caller, make) {}

  void arrive(tensor_arrival what) override {
    on_.post([given = std::move(what)](averager& to) { to.arrive(given); });
  }
  void wait() override { on_.wait(); }
  void backward_ended() override {
    on_.post([when = std::chrono::steady_clock::now()](averager& to) { to.backward_ended(when); });
  }
  void set_density(double density) override {
    on_.run([&] { on_.object().set_density(density); });
  }
  void undo() override {
    on_.run([&] { on_.object().undo(); });
  }
  std::vector<char> save() override {
    return on_.run([&] { return on_.object().save(); });
  }
  std::vector<char> save_before_step() override {
    return on_.run([&] { return on_.object().save_before_step(); });
  }
  void load(std::vector<std::span<char const>> const& states, tensor_loading const& how) override {
    on_.run([&] { on_.object().load(states, how); });
  }
  std::pair<std::vector<std::string>, std::vector<std::int64_t>> tensors() override {
    return on_.run([&] { return std::pair(on_.object().names(), on_.object().lengths()); });
  }
  std::vector<std::string> schemes() override {
    return on_.run([&] { return on_.object().schemes(); });
  }
  double residual_norm() override {
    return on_.run([&] { return on_.object().residual_norm(); });
  }
  double words_sent() override {
    return on_.run([&] { return on_.object().words_sent(); });
  }
  step_figures last_step() override {
    return on_.run([&] { return on_.object().last_step(); });
  }

private:
  posted<averager> on_;
};

/// The dimensions of a tensor; throws where they are not those of so many values.
std::vector<std::int64_t> shape_of(std::span<std::int64_t const> dimensions, std::int64_t length) {
  std::vector<std::int64_t> shape(dimensions.begin(), dimensions.end());
  std::string const sentence = problem_of({shape}, length);
  expect(sentence.empty(), "the dimensions of a tensor of " + std::to_string(length) + " values: " + sentence);
  return shape;
}

direction_options directions_of(oktopk_engine_averager_options const& given, std::vector<std::int64_t> const& lengths) {
  direction_options by{given.beta2, given.epsilon, {}};
  expect((given.dimensions == nullptr) == (given.dimension_counts == nullptr) || given.tensor_count == 0,
         "dimensions and dimension_counts are given together");
  if (given.dimension_counts != nullptr) {
    std::int64_t const* next = given.dimensions;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      auto const dimensions = span_of(next, given.dimension_counts[i], "the dimensions of a tensor");
      by.shapes.push_back(shape_of(dimensions, lengths[i]));
      next += dimensions.size();
    }
  }
  return by;
}

template <gradient_value Value>
std::unique_ptr<oktopk_engine_averager> made_averager(std::shared_ptr<group_state> const& group,
                                                      oktopk_engine_averager_options const& given) {
  error_feedback_options const how{given.momentum, given.nesterov != 0, given.factor_masking != 0, given.clip_norm,
                                   given.residual_decay};
  std::string fault = text(given.fault);
  std::vector<std::string> names;
  std::vector<std::int64_t> lengths;
  std::optional<direction_options> by;
  try {
    names = texts(given.names, given.tensor_count, "the names");
    for (std::int64_t const each : span_of(given.lengths, given.tensor_count, "the lengths")) {
      expect(each >= 0, "the length of a tensor, " + std::to_string(each) + ", is negative");
      lengths.push_back(each);
    }
    expect(given.algorithm != nullptr, "the text of the algorithm is a null pointer");
    if (given.directions != 0) {
      by = directions_of(given, lengths);
    }
    expect(given.on_non_finite >= OKTOPK_ENGINE_GIVES_ERROR && given.on_non_finite <= OKTOPK_ENGINE_GIVES_INFINITIES,
           "on_non_finite = " + std::to_string(given.on_non_finite) + " is none of 0, 1 and 2");
  } catch (error const& caught) { // the other ranks make an averager
    fault = fault.empty() ? caught.sentence() : fault;
    lengths.resize(names.size());
  }
  auto made = std::make_unique<averager_of<Value>>(group, [&] {
    return std::make_shared<tensor_averager<Value>>(group->on.object().comm, group->caller, text(given.algorithm), how,
                                                    by, names, lengths, static_cast<on_non_finite>(given.on_non_finite),
                                                    fault);
  });
  made->lengths = lengths;
  return made;
}

/// A sentence where the values of a call are not those of its tensors; else empty.
std::string fault_of(oktopk_engine_arrival const& given, tensor_arrival const& made,
                     std::vector<std::int64_t> const& lengths) {
  if (given.element < OKTOPK_ENGINE_FLOAT32 || given.element > OKTOPK_ENGINE_BFLOAT16) {
    return "there is no type of values " + std::to_string(given.element);
  }
  if (given.length < 0 || (given.values == nullptr && given.length > 0)) {
    return "the values are a null pointer, or their number is negative";
  }
  if (!is_finite(given.loss_scale) || given.loss_scale == 0) {
    return "loss_scale = " + decimal_text(given.loss_scale) + " is no factor of gradients";
  }
  if (lengths.empty()) {
    return given.key == nullptr ? "a call by key has no key" : "";
  }
  std::int64_t length = 0;
  for (int const each : made.tensors) {
    length += lengths[static_cast<std::size_t>(each)];
  }
  return length == given.length
             ? ""
             : "there are " + std::to_string(given.length) + " values for tensors of " + std::to_string(length);
}

/// The numbers of the tensors of a call; throws where there are no such tensors.
std::vector<int> tensors_of(oktopk_engine_arrival const& given, std::vector<std::int64_t> const& lengths) {
  std::vector<int> numbers;
  for (std::int32_t const each : span_of(given.tensors, given.tensor_count, "the tensors of a call")) {
    expect_number("tensor", each, lengths.size());
    expect(std::find(numbers.begin(), numbers.end(), each) == numbers.end(),
           "tensor " + std::to_string(each) + " is twice in a call");
    numbers.push_back(each);
  }
  expect(numbers.empty() == lengths.empty(), lengths.empty()
                                                 ? "tensors of this averager come with their keys, and not by number"
                                                 : "a call names no tensor, and those of this averager have numbers");
  return numbers;
}

std::vector<std::pair<int, std::vector<std::int64_t>>> reordered_of(oktopk_engine_arrival const& given,
                                                                    std::vector<std::int64_t> const& lengths) {
  std::vector<std::pair<int, std::vector<std::int64_t>>> all;
  for (auto const& each : span_of(given.reordered, given.reordered_count, "the reordered tensors")) {
    expect_number("tensor", each.tensor, lengths.size());
    std::int64_t const length = lengths[static_cast<std::size_t>(each.tensor)];
    auto const from = span_of(each.from, length, "the places of a reordered tensor");
    std::vector<bool> seen(from.size());
    for (std::int64_t const place : from) {
      expect(place >= 0 && place < length && !seen[static_cast<std::size_t>(place)],
             "the places of the reordered tensor " + std::to_string(each.tensor) + " are no permutation");
      seen[static_cast<std::size_t>(place)] = true;
    }
    all.push_back({each.tensor, {from.begin(), from.end()}});
  }
  return all;
}

/// The call without its `done`. Throws where no other rank can be told of what is wrong.
tensor_arrival arrival_of(oktopk_engine_arrival const& given, std::vector<std::int64_t> const& lengths) {
  tensor_arrival made;
  made.buffer = {given.values, std::max<std::int64_t>(given.length, 0), static_cast<element>(given.element)};
  made.key = text(given.key);
  made.tensors = tensors_of(given, lengths);
  made.is_first = given.is_first != 0;
  made.is_last = given.is_last != 0;
  made.continues = given.continues != 0;
  made.loss_scale = given.loss_scale;
  made.fault = text(given.fault);
  made.zero_on_error = given.zero_on_error != 0;
  // A call by key is told of on all ranks, or one rank would wait for the others' call of another key.
  made.subject = text(given.subject, lengths.empty() ? ("key '" + made.key + "'").c_str() : "");
  if (given.has_density != 0) {
    made.density = given.density;
  }
  std::string const strange =
      given.length > 0 && given.values != nullptr
          ? engine_device<engine_space>::fault_of_memory(given.values, running_workers::device())
          : "";
  try {
    made.fault = made.fault.empty() ? fault_of(given, made, lengths) : made.fault;
    made.fault = made.fault.empty() ? strange : made.fault;
    made.reordered = reordered_of(given, lengths);
    if (given.dimensions != nullptr) {
      made.shape =
          shape_of(span_of(given.dimensions, given.dimension_count, "the dimensions of a tensor"), given.length);
    }
  } catch (error const& caught) {
    made.fault = made.fault.empty() ? caught.sentence() : made.fault;
  }
  if (given.used != nullptr) {
    for (std::size_t i = 0; i < made.tensors.size(); ++i) {
      made.used.push_back(given.used[i] != 0 ? 1 : 0);
    }
  }
  bool const is_known = given.element >= OKTOPK_ENGINE_FLOAT32 && given.element <= OKTOPK_ENGINE_BFLOAT16;
  if (given.length <= 0 || !is_known || !strange.empty()) { // nothing may be written there
    made.buffer.data = nullptr;
  }
  return made;
}

/// Starts a call; `done` hears of its end.
template <class Done>
void start(oktopk_engine_averager& on, oktopk_engine_arrival const& given, Done const& done) {
  running_workers::expect(on.of->caller);
  tensor_arrival made = arrival_of(given, on.lengths);
  made.done = done;
  on.arrive(std::move(made));
}

template <class Handle>
Handle& at(Handle* given, char const* function) {
  expect(given != nullptr, std::string(function) + ": a handle is a null pointer");
  return *given;
}

template <class T>
T& place(T* given, char const* function) {
  expect(given != nullptr, std::string(function) + ": the place of the result is a null pointer");
  return *given;
}

char const* caller_of(oktopk_engine_group const* group) {
  return group == nullptr ? usual_caller : group->state->caller.c_str();
}

char const* caller_of(oktopk_engine_averager const* averager) {
  return averager == nullptr ? usual_caller : averager->of->caller.c_str();
}

/// `job(*handle)`, with what it throws as a code.
template <class Handle, class Job>
std::int32_t with(Handle* handle, char const* function, Job const& job) noexcept {
  return guarded(caller_of(handle), [&] { job(at(handle, function)); });
}

} // namespace

} // namespace oktopk::detail

extern "C" {

int32_t oktopk_engine_abi(void) {
  return OKTOPK_ENGINE_ABI;
}

char const* oktopk_engine_version(void) {
  return oktopk::version();
}

char const* oktopk_engine_last_error(void) {
  return last_error.c_str();
}

char const* oktopk_engine_fault_name(int32_t code) {
  return code < 0 || code > 255 ? "unknown" : oktopk::name(static_cast<oktopk::fault>(code)).data();
}

char const* oktopk_engine_backend(void) {
  return engine_device<engine_space>::name;
}

int32_t oktopk_engine_initialize(void) {
  return guarded(usual_caller, [] { running_workers::expect(usual_caller); });
}

int32_t oktopk_engine_initialize_on(int32_t device) {
  return guarded(usual_caller, [device] {
    engine_device<engine_space>::expect(device);
    running_workers::start_on(device, usual_caller);
  });
}

int32_t oktopk_engine_finalize(void) {
  return guarded(usual_caller, [] {
    running_workers::expect_no_job(usual_caller);
    running_workers::shut_down();
  });
}

int32_t oktopk_engine_algorithms(void (*each)(void* user, char const* name, char const* about), void* user) {
  return guarded(usual_caller, [&] {
    expect(each != nullptr, "oktopk_engine_algorithms: the function is a null pointer");
    for (auto const& one : oktopk::list_allreduces()) {
      each(user, one.name.c_str(), one.about.c_str());
    }
  });
}

void oktopk_engine_group_defaults(oktopk_engine_group_options* options) {
  if (options != nullptr) {
    *options = group_defaults();
  }
}

int32_t oktopk_engine_group_make(oktopk_engine_group_options const* options, oktopk_engine_group** made) {
  char const* const function = "oktopk_engine_group_make";
  return guarded(usual_caller, [&] {
    auto const given = read(options, group_defaults(), function);
    place(made, function) = nullptr;
    *made = new oktopk_engine_group{std::make_shared<group_state>(given, terms_of(given))};
  });
}

void oktopk_engine_group_free(oktopk_engine_group* group) {
  delete group;
}

int32_t oktopk_engine_group_abort(oktopk_engine_group* group, char const* why) {
  return with(group, __func__, [&](auto& of) {
    oktopk::error const reason(oktopk::fault::abandoned, text(why, "the program has given up"));
    running_workers::expect(of.state->caller);
    of.state->on.object().abort(reason);                                              // what is under way
    of.state->on.post([reason](ranks_of_group& ranks) { ranks.comm.abort(reason); }); // where nothing is
  });
}

int32_t oktopk_engine_group_rank(oktopk_engine_group const* group) {
  return group == nullptr ? -1 : group->state->rank;
}

int32_t oktopk_engine_group_size(oktopk_engine_group const* group) {
  return group == nullptr ? -1 : group->state->size;
}

int32_t oktopk_engine_group_set_time_limit(oktopk_engine_group* group, double seconds) {
  return with(group, __func__, [&](auto& of) {
    auto const limit = limit_of(seconds);
    of.state->on.run([&] {
      if (of.state->size > 1) {
        of.state->on.object().comm.set_time_limit(limit);
      }
    });
  });
}

void oktopk_engine_contribution_defaults(oktopk_engine_contribution* contribution) {
  if (contribution != nullptr) {
    *contribution = contribution_defaults();
  }
}

int32_t oktopk_engine_sparse_sum(oktopk_engine_group* group, oktopk_engine_contribution const* contribution,
                                 oktopk_engine_entries** made) {
  char const* const function = "oktopk_engine_sparse_sum";
  return with(group, function, [&](auto& of) {
    auto const given = read(contribution, contribution_defaults(), function);
    place(made, function) = nullptr;
    auto entries = std::make_unique<oktopk_engine_entries>();
    entries->of = of.state->on.run([&] {
      ranks_of_group& ranks = of.state->on.object();
      return ranks.sums.sum(ranks.comm, of.state->caller,
                            {given.indices, given.values, given.count, given.element, given.length, given.width,
                             text(given.subject), text(given.fault)});
    });
    *made = entries.release();
  });
}

int64_t oktopk_engine_entries_count(oktopk_engine_entries const* entries) {
  return entries == nullptr ? 0 : entries->of.count;
}

int64_t const* oktopk_engine_entries_indices(oktopk_engine_entries const* entries) {
  return entries == nullptr ? nullptr : entries->of.indices.get();
}

void const* oktopk_engine_entries_values(oktopk_engine_entries const* entries) {
  return entries == nullptr ? nullptr : entries->of.values.get();
}

void oktopk_engine_entries_free(oktopk_engine_entries* entries) {
  delete entries;
}

void oktopk_engine_averager_defaults(oktopk_engine_averager_options* options) {
  if (options != nullptr) {
    *options = averager_defaults();
  }
}

int32_t oktopk_engine_averager_make(oktopk_engine_group* group, oktopk_engine_averager_options const* options,
                                    oktopk_engine_averager** made) {
  char const* const function = "oktopk_engine_averager_make";
  return with(group, function, [&](auto& of) {
    auto const given = read(options, averager_defaults(), function);
    place(made, function) = nullptr;
    expect(given.sums == OKTOPK_ENGINE_FLOAT32 || given.sums == OKTOPK_ENGINE_FLOAT64,
           std::string(function) + ": sums are of float32 or float64");
#ifdef OKTOPK_ENGINE_ON_DEVICE
    expect(given.sums == OKTOPK_ENGINE_FLOAT32, std::string(function) + ": sums on a device are of float32");
    *made = made_averager<float>(of.state, given).release();
#else
    *made = (given.sums == OKTOPK_ENGINE_FLOAT32 ? made_averager<float>(of.state, given)
                                                 : made_averager<double>(of.state, given))
                .release();
#endif
  });
}

void oktopk_engine_averager_free(oktopk_engine_averager* averager) {
  delete averager;
}

void oktopk_engine_arrival_defaults(oktopk_engine_arrival* arrival) {
  if (arrival != nullptr) {
    *arrival = arrival_defaults();
  }
}

int32_t oktopk_engine_arrive(oktopk_engine_averager* averager, oktopk_engine_arrival const* arrival) {
  char const* const function = "oktopk_engine_arrive";
  return with(averager, function, [&](auto& on) {
    auto const given = read(arrival, arrival_defaults(), function);
    worker& by = on.of->on.on_thread(); // which lives longer than the averager
    start(on, given,
          [&by, done = given.done, user = given.user, caller = on.of->caller](std::exception_ptr const& why) {
            if (done != nullptr) {
              by.tell([done, user, caller, why] {
                done(user, why ? code_of(why) : OKTOPK_ENGINE_OK, why ? text_of(why, caller).c_str() : "");
              });
            }
          });
  });
}

int32_t oktopk_engine_average(oktopk_engine_averager* averager, oktopk_engine_arrival const* arrival) {
  char const* const function = "oktopk_engine_average";
  return with(averager, function, [&](auto& on) {
    auto const given = read(arrival, arrival_defaults(), function);
    expect(given.is_last != 0, std::string(function) + ": only the last call of a step can be waited for");
    running_workers::expect(on.of->caller, true);
    auto const end = std::make_shared<std::promise<void>>();
    start(on, given, [end](std::exception_ptr const& why) { why ? end->set_exception(why) : end->set_value(); });
    end->get_future().get();
  });
}

int32_t oktopk_engine_wait(oktopk_engine_averager* averager) {
  return with(averager, __func__, [](auto& on) { on.wait(); });
}

int32_t oktopk_engine_backward_ended(oktopk_engine_averager* averager) {
  return with(averager, __func__, [](auto& on) { on.backward_ended(); });
}

int32_t oktopk_engine_set_density(oktopk_engine_averager* averager, double density) {
  return with(averager, __func__, [&](auto& on) { on.set_density(density); });
}

int32_t oktopk_engine_undo(oktopk_engine_averager* averager) {
  return with(averager, __func__, [](auto& on) { on.undo(); });
}

int32_t oktopk_engine_save(oktopk_engine_averager* averager, oktopk_engine_blob** made) {
  char const* const function = "oktopk_engine_save";
  return with(averager, function, [&](auto& on) {
    place(made, function) = nullptr;
    *made = new oktopk_engine_blob{on.save()};
  });
}

int32_t oktopk_engine_save_before_step(oktopk_engine_averager* averager, oktopk_engine_blob** made) {
  char const* const function = "oktopk_engine_save_before_step";
  return with(averager, function, [&](auto& on) {
    place(made, function) = nullptr;
    *made = new oktopk_engine_blob{on.save_before_step()};
  });
}

void const* oktopk_engine_blob_data(oktopk_engine_blob const* blob) {
  return blob == nullptr ? nullptr : blob->bytes.data();
}

size_t oktopk_engine_blob_size(oktopk_engine_blob const* blob) {
  return blob == nullptr ? 0 : blob->bytes.size();
}

void oktopk_engine_blob_free(oktopk_engine_blob* blob) {
  delete blob;
}

void oktopk_engine_loading_defaults(oktopk_engine_loading* loading) {
  if (loading != nullptr) {
    *loading = loading_defaults();
  }
}

int32_t oktopk_engine_load(oktopk_engine_averager* averager, oktopk_engine_loading const* loading) {
  char const* const function = "oktopk_engine_load";
  return with(averager, function, [&](auto& on) {
    auto const given = read(loading, loading_defaults(), function);
    tensor_loading how;
    std::vector<std::span<char const>> states;
    how.fault = text(given.fault);
    how.called = text(given.called, how.called.c_str());
    try {
      how.keys = texts(given.keys, given.key_count, "the keys");
      for (auto const& each : span_of(given.states, given.state_count, "the states")) {
        expect(each.data != nullptr, "the bytes of a state are a null pointer");
        states.emplace_back(static_cast<char const*>(each.data), each.size);
      }
      expect(!states.empty(), "there is no state");
      expect(given.steps_of_borders >= 0, "steps_of_borders is negative");
      how.steps_of_borders = given.steps_of_borders;
    } catch (oktopk::error const& caught) { // the other ranks load theirs
      how.fault = how.fault.empty() ? caught.sentence() : how.fault;
    }
    how.share = given.has_share != 0 ? std::optional(given.share) : std::nullopt;
    how.in_part = given.in_part != 0;
    how.saved_by = given.saved_by;
    how.density = given.has_density != 0 ? std::optional(given.density) : std::nullopt;
    on.load(states, how);
  });
}

int32_t oktopk_engine_tensors(oktopk_engine_averager* averager,
                              void (*each)(void* user, char const* name, int64_t length), void* user) {
  return with(averager, __func__, [&](auto& on) {
    expect(each != nullptr, "oktopk_engine_tensors: the function is a null pointer");
    auto const [names, lengths] = on.tensors();
    for (std::size_t i = 0; i < names.size(); ++i) {
      each(user, names[i].c_str(), lengths[i]);
    }
  });
}

int32_t oktopk_engine_schemes(oktopk_engine_averager* averager, void (*each)(void* user, char const* text),
                              void* user) {
  return with(averager, __func__, [&](auto& on) {
    expect(each != nullptr, "oktopk_engine_schemes: the function is a null pointer");
    for (std::string const& one : on.schemes()) {
      each(user, one.c_str());
    }
  });
}

int32_t oktopk_engine_residual_norm(oktopk_engine_averager* averager, double* norm) {
  return with(averager, __func__, [&](auto& on) { place(norm, "oktopk_engine_residual_norm") = on.residual_norm(); });
}

int32_t oktopk_engine_words_sent(oktopk_engine_averager* averager, double* words) {
  return with(averager, __func__, [&](auto& on) { place(words, "oktopk_engine_words_sent") = on.words_sent(); });
}

int32_t oktopk_engine_last_step(oktopk_engine_averager* averager, oktopk_engine_figures* figures) {
  char const* const function = "oktopk_engine_last_step";
  return with(averager, function, [&](auto& on) {
    auto now = read<oktopk_engine_figures>(figures, {}, function);
    step_figures const last = on.last_step();
    now.steps = last.steps;
    now.skipped = last.skipped;
    now.was_skipped = last.was_skipped ? 1 : 0;
    now.ranks = last.ranks;
    now.buckets = last.buckets;
    now.values = last.values;
    now.selected = last.selected;
    now.words = last.words;
    now.step_values = last.step_values;
    now.seconds = last.times.communication();
    now.hidden_seconds = last.times.hidden();
    now.hideable_seconds = last.times.hideable();
    std::memcpy(figures, &now, now.struct_size);
  });
}

} // extern "C"
