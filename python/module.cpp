// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What Python sees of buckets.hpp: the module oktopk_torch._native, which oktopk_torch/__init__.py uses.

#include "buckets.hpp"

#include <oktopk/core/error.hpp>
#include <oktopk/training/communication_thread.hpp>

#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/pybind.h>

#include <future>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace oktopk_torch {

namespace {

/// The one thread that does all work of the module, in the order in which it came.
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

  /// After the jobs that have come; the objects of Kokkos are gone by then.
  ~worker() {
    post([this] {
      if (is_ours_) {
        Kokkos::finalize();
      }
    });
  }

  /// A job throws nothing.
  void post(std::function<void()> job) { thread_.submit(std::move(job)); }

private:
  bool is_ours_ = false;
  oktopk::detail::communication_thread thread_; // the last: its work uses the other
};

/// Made, called and destroyed on the worker's thread; none once Python ends.
using handle = std::unique_ptr<buckets>;

// All three are used with the GIL held.
std::unique_ptr<worker> the_worker;
std::vector<std::weak_ptr<handle>> all_handles;
bool is_shut_down = false;

oktopk::error after_the_end() {
  return {oktopk::fault::bad_state, "oktopk_torch has been shut down"};
}

worker& running_worker() {
  if (is_shut_down) {
    throw after_the_end();
  }
  if (!the_worker) {
    the_worker = std::make_unique<worker>();
  }
  return *the_worker;
}

void shut_down() {
  is_shut_down = true;
  if (!the_worker) {
    return;
  }
  std::vector<std::weak_ptr<handle>> const ending = std::exchange(all_handles, {});
  py::gil_scoped_release const release;
  the_worker->post([&] {
    for (auto const& each : ending) {
      if (auto const alive = each.lock()) {
        alive->reset();
      }
    }
  });
  the_worker.reset();
}

/// The state of a hook.
class native_state {
public:
  native_state(c10d::ProcessGroup& group, std::string const& text, double momentum, bool nesterov,
               std::vector<std::int64_t> const& lengths) {
    // The type of the pointer that Python holds differs between releases of torch.
    auto const counted = c10::intrusive_ptr<c10d::ProcessGroup>::unsafe_reclaim_from_nonowning(&group);
    std::erase_if(all_handles, [](auto const& each) { return each.expired(); });
    all_handles.push_back(handle_);
    oktopk::error_feedback_options how;
    how.momentum = momentum;
    how.nesterov = nesterov;
    run([&](handle& made) { made = std::make_unique<buckets>(counted, text, how, lengths); });
  }

  native_state(native_state const&) = delete;
  native_state& operator=(native_state const&) = delete;

  ~native_state() {
    if (the_worker) {
      the_worker->post([gone = std::move(handle_)] { gone->reset(); });
    }
  }

  /// Returns at once; `future` is complete when the averages lie in `buffer`, or has the error.
  void start(std::int64_t index, bool is_last, std::vector<int> parameters, std::vector<int> used,
             at::Tensor const& buffer, std::shared_ptr<torch::jit::PythonFutureWrapper> const& future) {
    auto const result = torch::jit::toIValue(py::cast(buffer), c10::PyObjectType::get());
    auto const done = [result, future = future->fut](std::exception_ptr const& why) {
      if (why) {
        future->setError(why);
      } else {
        future->markCompleted(result);
      }
    };
    running_worker().post(
        [self = handle_, what = arrival{buffer, std::move(parameters), std::move(used), index, is_last, done}] {
          if (*self) {
            (*self)->arrive(what);
          }
        });
  }

  at::Tensor save() const {
    return run([](handle& of) { return alive(of).save(); });
  }

  void load(at::Tensor const& saved, std::string const& fault) const {
    run([&](handle& of) { alive(of).load(saved, fault); });
  }

  double words_sent() const {
    return run([](handle& of) { return alive(of).words_sent(); });
  }

private:
  static buckets& alive(handle& of) {
    if (!of) {
      throw after_the_end();
    }
    return *of;
  }

  /// What a job gives or throws on the worker's thread; lets Python go on meanwhile.
  template <class Job>
  std::invoke_result_t<Job, handle&> run(Job const& job) const {
    using task_type = std::packaged_task<std::invoke_result_t<Job, handle&>()>;
    auto const task = std::make_shared<task_type>([this, &job] { return job(*handle_); });
    auto result = task->get_future();
    worker& on = running_worker();
    py::gil_scoped_release const release;
    on.post([task] { (*task)(); });
    return result.get();
  }

  std::shared_ptr<handle> handle_ = std::make_shared<handle>();
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
