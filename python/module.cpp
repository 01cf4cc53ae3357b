// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What Python sees of buckets.hpp: the module oktopk_torch._native, which oktopk_torch/__init__.py uses.

#include "buckets.hpp"

#include <oktopk/core/error.hpp>
#include <oktopk/training/communication_thread.hpp>

#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/pybind.h>

#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace oktopk_torch {

namespace {

/// The one thread that does all work of the module, in the order in which it came, and the `buckets` that it makes.
///
/// Everything of Kokkos happens on it, from initialize to finalize: some backends of old releases launch kernels from
/// no other thread. Where somebody else has initialised Kokkos, it is left alone.
class worker {
public:
  worker() {
    post([this] {
      if (!Kokkos::is_initialized()) {
        Kokkos::initialize();
        is_ours_ = true;
      }
    });
  }

  worker(worker const&) = delete;
  worker& operator=(worker const&) = delete;

  /// After the jobs that have come.
  ~worker() {
    post([this] {
      all.clear();
      if (is_ours_) {
        Kokkos::finalize();
      }
    });
  }

  /// A job throws nothing.
  void post(std::function<void()> job) { thread_.submit(std::move(job)); }

  std::map<int, std::unique_ptr<buckets>> all; ///< of each state by its number; for jobs alone

private:
  bool is_ours_ = false;
  oktopk::detail::communication_thread thread_; // the last: its work uses the others
};

// Both are used with the GIL held.
std::unique_ptr<worker> the_worker;
bool is_shut_down = false;

worker& running_worker() {
  if (is_shut_down) {
    throw oktopk::error(oktopk::fault::bad_state, "oktopk_torch has been shut down");
  }
  if (!the_worker) {
    the_worker = std::make_unique<worker>();
  }
  return *the_worker;
}

void shut_down() {
  is_shut_down = true;
  auto ending = std::move(the_worker);
  py::gil_scoped_release const release;
  ending.reset();
}

/// The state of a hook.
class native_state {
public:
  native_state(c10d::ProcessGroup& group, std::string const& text, double momentum, bool nesterov,
               std::vector<std::int64_t> const& lengths) {
    // The type of the pointer that Python holds differs between releases of torch.
    auto const counted = c10::intrusive_ptr<c10d::ProcessGroup>::unsafe_reclaim_from_nonowning(&group);
    oktopk::error_feedback_options how;
    how.momentum = momentum;
    how.nesterov = nesterov;
    run([&](std::unique_ptr<buckets>& made) { made = std::make_unique<buckets>(counted, text, how, lengths); });
  }

  native_state(native_state const&) = delete;
  native_state& operator=(native_state const&) = delete;

  ~native_state() {
    if (the_worker) {
      the_worker->post([on = the_worker.get(), number = number_] { on->all.erase(number); });
    }
  }

  /// Returns at once; `future` is complete when the averages lie in `buffer`, or has the error.
  void start(std::int64_t index, bool is_last, std::vector<int> parameters, std::vector<int> used,
             at::Tensor const& buffer, std::shared_ptr<torch::jit::PythonFutureWrapper> const& future) {
    auto const result = torch::jit::toIValue(py::cast(buffer), c10::PyObjectType::get());
    auto const done = [result, future = future->fut](std::exception_ptr const& why) {
      why ? future->setError(why) : future->markCompleted(result);
    };
    worker& on = running_worker();
    on.post(
        [&on, number = number_, what = arrival{buffer, std::move(parameters), std::move(used), index, is_last, done}] {
          on.all.at(number)->arrive(what);
        });
  }

  at::Tensor save() const {
    return run([](auto& of) { return of->save(); });
  }

  void load(at::Tensor const& saved, std::string const& fault) const {
    run([&](auto& of) { of->load(saved, fault); });
  }

  double words_sent() const {
    return run([](auto& of) { return of->words_sent(); });
  }

private:
  /// What a job gives or throws on the worker's thread; lets Python go on meanwhile.
  template <class Job>
  std::invoke_result_t<Job, std::unique_ptr<buckets>&> run(Job const& job) const {
    using result_type = std::invoke_result_t<Job, std::unique_ptr<buckets>&>;
    worker& on = running_worker();
    auto const task = std::make_shared<std::packaged_task<result_type()>>([&] { return job(on.all[number_]); });
    auto result = task->get_future();
    py::gil_scoped_release const release;
    on.post([task] { (*task)(); });
    return result.get();
  }

  static inline int count_ = 0; // with the GIL held
  int number_ = count_++;
};

} // namespace

} // namespace oktopk_torch

PYBIND11_MODULE(_native, module) {
  using oktopk_torch::native_state;
  py::register_exception<oktopk::error>(module, "Error", PyExc_RuntimeError);
  py::class_<native_state>(module, "State")
      .def(py::init<c10d::ProcessGroup&, std::string const&, double, bool, std::vector<std::int64_t> const&>())
      .def("start", &native_state::start)
      .def("save", &native_state::save)
      .def("load", &native_state::load)
      .def("words_sent", &native_state::words_sent);
  module.def("shut_down", &oktopk_torch::shut_down);
}
