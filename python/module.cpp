// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What Python sees of buckets.hpp: the module oktopk_torch._native, which oktopk_torch/__init__.py uses.

#include "buckets.hpp"
#include "communication_thread.hpp"

#include <oktopk/core/error.hpp>

#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace oktopk_torch {

namespace {

/// A `buckets` that only the communication thread makes, calls and destroys; none once Python ends.
struct handle {
  std::unique_ptr<buckets> inside;

  buckets& get() const {
    if (!inside) {
      throw oktopk::error(oktopk::fault::bad_state, "oktopk_torch has been shut down");
    }
    return *inside;
  }
};

// Both are used with the GIL held.
std::unique_ptr<communication_thread> the_thread;
std::vector<std::weak_ptr<handle>> all_handles;
bool is_shut_down = false;

communication_thread& thread() {
  if (is_shut_down) {
    throw oktopk::error(oktopk::fault::bad_state, "oktopk_torch has been shut down");
  }
  if (!the_thread) {
    the_thread = std::make_unique<communication_thread>();
  }
  return *the_thread;
}

/// Runs a job on the thread, and lets Python go on meanwhile.
template <class Job>
auto run(Job job) {
  communication_thread& on = thread();
  py::gil_scoped_release const release;
  return on.run(std::move(job));
}

void shut_down() {
  is_shut_down = true;
  if (!the_thread) {
    return;
  }
  std::vector<std::weak_ptr<handle>> const ending = std::exchange(all_handles, {});
  py::gil_scoped_release const release;
  the_thread->post([&] {
    for (auto const& each : ending) {
      if (auto const alive = each.lock()) {
        alive->inside.reset();
      }
    }
  });
  the_thread.reset();
}

/// The state of a hook.
class native_state {
public:
  native_state(c10d::ProcessGroup& group, std::string const& text, double momentum, bool nesterov,
               std::vector<std::int64_t> const& lengths)
      : handle_(std::make_shared<handle>()) {
    // The type of the pointer that Python holds differs between releases of torch.
    auto const counted = c10::intrusive_ptr<c10d::ProcessGroup>::unsafe_reclaim_from_nonowning(&group);
    std::erase_if(all_handles, [](auto const& each) { return each.expired(); });
    all_handles.push_back(handle_);
    run([&] {
      handle_->inside = std::make_unique<buckets>(counted, text, momentum_options{momentum, nesterov}, lengths);
    });
  }

  native_state(native_state const&) = delete;
  native_state& operator=(native_state const&) = delete;

  ~native_state() {
    if (the_thread) {
      the_thread->post([gone = std::move(handle_)] { gone->inside.reset(); });
    }
  }

  /// Returns at once; `future` is complete when the averages lie in `buffer`, or has the error.
  void start(std::int64_t index, bool is_last, std::vector<std::int64_t> parameters, std::vector<int> used,
             at::Tensor const& buffer, std::shared_ptr<torch::jit::PythonFutureWrapper> const& future) {
    auto const result = torch::jit::toIValue(py::cast(buffer), c10::PyObjectType::get());
    auto const done = [result, future = future->fut](std::exception_ptr const& why) {
      if (why) {
        future->setError(why);
      } else {
        future->markCompleted(result);
      }
    };
    thread().post(
        [self = handle_, what = arrival{buffer, std::move(parameters), std::move(used), index, is_last, done}] {
          if (self->inside) {
            self->inside->arrive(what);
          }
        });
  }

  saved_state save() const {
    return run([this] { return handle_->get().save(); });
  }

  void load(saved_state const& saved, std::string const& fault) const {
    run([&] { handle_->get().load(saved, fault); });
  }

  double words_sent() const {
    return run([this] { return handle_->get().words_sent(); });
  }

private:
  std::shared_ptr<handle> handle_;
};

using saved_bucket_tuple = std::tuple<std::vector<std::int64_t>, py::bytes, py::bytes>;

py::list list_of(std::vector<at::Tensor> const& tensors) {
  py::list list;
  for (at::Tensor const& each : tensors) {
    list.append(each.defined() ? py::cast(each) : py::none());
  }
  return list;
}

std::vector<at::Tensor> tensors_of(py::list const& list) {
  std::vector<at::Tensor> tensors;
  for (py::handle const each : list) {
    tensors.push_back(each.is_none() ? at::Tensor() : each.cast<at::Tensor>());
  }
  return tensors;
}

py::tuple save(native_state const& state) {
  saved_state const saved = state.save();
  py::list all;
  for (saved_bucket const& each : saved.buckets) {
    all.append(py::make_tuple(each.parameters, py::bytes(each.policies), py::bytes(each.checkpoint)));
  }
  return py::make_tuple(list_of(saved.residuals), list_of(saved.velocities), all);
}

void load(native_state const& state, py::list const& residuals, py::list const& velocities,
          std::vector<saved_bucket_tuple> const& all, std::string const& fault) {
  saved_state saved{tensors_of(residuals), tensors_of(velocities), {}};
  for (auto const& [parameters, policies, checkpoint] : all) {
    saved.buckets.push_back({parameters, policies, checkpoint});
  }
  state.load(saved, fault);
}

} // namespace

} // namespace oktopk_torch

PYBIND11_MODULE(_native, module) {
  using oktopk_torch::native_state;
  py::register_exception<oktopk::error>(module, "Error", PyExc_RuntimeError);
  py::class_<native_state>(module, "State")
      .def(py::init<c10d::ProcessGroup&, std::string const&, double, bool, std::vector<std::int64_t> const&>())
      .def("start", &native_state::start)
      .def("save", &oktopk_torch::save)
      .def("load", &oktopk_torch::load)
      .def("words_sent", &native_state::words_sent);
  module.def("shut_down", &oktopk_torch::shut_down);
}
