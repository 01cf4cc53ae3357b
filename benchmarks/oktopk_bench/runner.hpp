// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "result.hpp"

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <vector>

namespace oktopk_bench {

using space = Kokkos::DefaultExecutionSpace;
using accumulator_view = Kokkos::View<float*, space::memory_space>;

/// One algorithm of whatever type, ready to be called.
class runner {
public:
  runner() = default;
  runner(runner const&) = delete;
  runner& operator=(runner const&) = delete;
  virtual ~runner() = default;

  /// One step; collective.
  virtual void call(accumulator_view const& accumulator) = 0;
  /// The last call's result; valid until the next call.
  virtual host_result result() const = 0;
  virtual call_figures figures() const = 0;
  virtual promises const& promised() const = 0;
  virtual std::int64_t k() const = 0;
  virtual double bound_words() const = 0;
};

/// A view's elements in host memory, as `To`.
template <class To, class View>
std::vector<To> on_host(View const& view) {
  auto const host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
  std::vector<To> values(host.extent(0));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<To>(host(i));
  }
  return values;
}

/// A runner for any gradient allreduce of the library.
template <class Allreduce>
class runner_of : public runner {
public:
  template <class Communicator, class Options>
  runner_of(space const& exec, Communicator comm, Options const& options, promises promised)
      : exec_(exec), allreduce_(exec, comm, options), promised_(promised) {}

  void call(accumulator_view const& accumulator) override {
    update_ = allreduce_(accumulator);
    exec_.fence();
  }

  host_result result() const override {
    return {on_host<std::int64_t>(update_.indices()), on_host<float>(update_.values()),
            on_host<std::int64_t>(update_.contributed()), on_host<std::int64_t>(update_.returned().indices),
            on_host<float>(update_.returned().values)};
  }

  call_figures figures() const override {
    auto const& last = allreduce_.last_call();
    bool const selects_together = requires { allreduce_.state().global; };
    return {last.local_selected, last.global_selected, last.select_seconds, selects_together};
  }

  promises const& promised() const override { return promised_; }
  std::int64_t k() const override { return allreduce_.k(); }
  double bound_words() const override { return allreduce_.bound_words(); }

private:
  space exec_;
  Allreduce allreduce_;
  promises promised_;
  typename Allreduce::update_type update_;
};

} // namespace oktopk_bench
