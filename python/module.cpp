// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What Python sees of averager.hpp: the module oktopk_torch._native, which oktopk_torch/__init__.py uses.

#include "averager.hpp"

#include <oktopk/core/version.hpp>
#include <oktopk/training/communication_thread.hpp>
#include <oktopk/training/density.hpp>

#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/pybind.h>

#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <utility>

namespace py = pybind11;

namespace oktopk_torch {

namespace {

using future_pointer = std::shared_ptr<torch::jit::PythonFutureWrapper>;

void end_worker();

/// The one thread that does all work of the module, in the order in which it came, and the averagers.
///
/// Everything of Kokkos happens on it, from initialize to finalize: some backends of old releases launch kernels from
/// no other thread. Where somebody else has initialised Kokkos, it is left alone.
///
/// Kokkos is finalized at the exit of the process, behind what was made after its initialization: views of other
/// libraries may live as long as static objects.
class worker {
public:
  worker() {
    post([this] {
      if (!Kokkos::is_initialized()) {
        Kokkos::initialize();
        is_ours_ = true;
      }
    });
    thread_.wait(); // so that what the process does at its exit comes in the right order
    std::atexit(&end_worker);
  }

  worker& operator=(worker&&) = delete;

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

  bool runs_here() const { return thread_.runs_here(); }

  /// A process that was forked has all objects, and not the thread: whatever waits for it would wait for ever.
  bool is_of_this_process() const { return process_ == ::getpid(); }

  /// Destroys the averagers, after the jobs that have come.
  void end_jobs() {
    post([this] { all.clear(); });
    thread_.wait();
  }

  std::map<void*, std::shared_ptr<void>> all; ///< for jobs alone

private:
  bool is_ours_ = false;
  pid_t process_ = ::getpid();
  oktopk::detail::communication_thread thread_; // the last: its work uses the others
};

// All are used with the GIL held; the worker at the exit of the process as well.
std::unique_ptr<worker> the_worker;
bool is_shut_down = false;
PyObject* error_type = nullptr;

worker& running_worker(bool waits = false) {
  if (is_shut_down) {
    throw oktopk::error(oktopk::fault::bad_state, "oktopk_torch has been shut down");
  }
  if (!the_worker) {
    the_worker = std::make_unique<worker>();
  }
  if (!the_worker->is_of_this_process()) {
    throw oktopk::error(oktopk::fault::bad_state,
                        "oktopk_torch was in use before this process was forked: use it in processes that are spawned, "
                        "or fork them before");
  }
  if (waits && the_worker->runs_here()) { // the wait would have no end
    throw oktopk::error(oktopk::fault::bad_state, "a callback of a future cannot wait for oktopk_torch");
  }
  return *the_worker;
}

bool has_worker() {
  return the_worker && the_worker->is_of_this_process();
}

void end_worker() {
  if (!has_worker()) {
    static_cast<void>(the_worker.release()); // its destructor would wait for the thread
  }
  the_worker.reset();
}

void shut_down() {
  is_shut_down = true;
  if (has_worker()) {
    py::gil_scoped_release const release;
    the_worker->end_jobs();
  }
}

/// A future whose `wait` raises `oktopk_torch.Error`, in a backward pass as well: torch knows its own exception of
/// Python alone.
void set_error(c10::ivalue::Future& future, std::string const& text) {
  py::gil_scoped_acquire const lock;
  PyErr_SetString(error_type, text.c_str());
  python_error caught;
  caught.persist();
  future.setError(std::make_exception_ptr(caught));
}

std::string text_of(std::exception_ptr const& why) {
  try {
    std::rethrow_exception(why);
  } catch (std::exception const& caught) {
    return caught.what();
  }
}

/// The first error of a step, kept until DDP has ended its backward pass.
struct kept_error {
  std::mutex mutex;
  std::string text;
};

/// An averager on the worker's thread.
template <class Value>
class native_averager {
  using averager = oktopk::detail::tensor_averager<Value>;

public:
  native_averager(c10d::ProcessGroup& group, c10d::ProcessGroup& of_allreduce, std::string const& text,
                  oktopk::detail::error_feedback_options const& how, std::vector<std::string> const& names,
                  std::vector<std::int64_t> const& lengths, bool skips, std::string const& fault) {
    // The type of the pointer that Python holds differs between releases of torch.
    using pointer = c10::intrusive_ptr<c10d::ProcessGroup>;
    auto const counted = pointer::unsafe_reclaim_from_nonowning(&group);
    auto const beside = pointer::unsafe_reclaim_from_nonowning(&of_allreduce);
    using oktopk::detail::on_non_finite;
    auto const gives = skips ? on_non_finite::infinities : on_non_finite::error;
    worker& owner = running_worker();
    run([&] {
      auto const made = std::make_shared<averager>(counted, beside, text, how, names, lengths, gives, fault);
      on_ = made.get();
      owner.all[on_] = made;
    });
  }

  native_averager& operator=(native_averager&&) = delete;

  ~native_averager() {
    if (has_worker()) {
      the_worker->post([owner = the_worker.get(), on = on_] { owner->all.erase(on); });
    }
  }

  /// Returns at once; `future` is complete when the averages lie in the buffer, or has the error. With `keeps_error` it
  /// has none, and `error` tells: DDP does not end a backward pass in order where a future has an error.
  void start(oktopk::detail::tensor_arrival what, future_pointer const& future, bool keeps_error) {
    auto const result = torch::jit::toIValue(py::cast(what.buffer), c10::PyObjectType::get());
    if (what.is_first) {
      kept_ = std::make_shared<kept_error>();
    }
    what.done = [result, future = future->fut, kept = kept_, keeps_error](std::exception_ptr const& why) {
      if (why && !keeps_error) {
        set_error(*future, text_of(why));
        return;
      }
      if (why) {
        std::scoped_lock const lock(kept->mutex);
        kept->text = kept->text.empty() ? text_of(why) : kept->text;
      }
      future->markCompleted(result);
    };
    post([what = std::move(what)](averager& of) { of.arrive(what); });
  }

  /// Of the last step, so far; empty if there is none.
  std::string error() const {
    std::scoped_lock const lock(kept_->mutex);
    return kept_->text;
  }

  void backward_ended() {
    post([when = std::chrono::steady_clock::now()](averager& of) { of.backward_ended(when); });
  }

  /// Makes the class of Python.
  static void define(py::module& module, char const* name) {
    py::class_<native_averager>(module, name)
        .def(py::init<c10d::ProcessGroup&, c10d::ProcessGroup&, std::string const&,
                      oktopk::detail::error_feedback_options const&, std::vector<std::string> const&,
                      std::vector<std::int64_t> const&, bool, std::string const&>())
        .def("start", &native_averager::start)
        .def("error", &native_averager::error)
        .def("backward_ended", &native_averager::backward_ended)
        .def("add", of(&averager::add))
        .def("set_density", of(&averager::set_density))
        .def("save", of(&averager::save))
        .def("load", of(&averager::load))
        .def("residual_norm", of(&averager::residual_norm))
        .def("words_sent", of(&averager::words_sent))
        .def("last_step", [](native_averager& self) { return named(of(&averager::last_step)(self)); })
        .def("schemes", of(&averager::schemes));
  }

private:
  static std::map<std::string, double> named(oktopk::detail::step_figures const& last) {
    return {{"steps", last.steps},
            {"skipped", last.skipped},
            {"was_skipped", last.was_skipped ? 1 : 0},
            {"words", last.words},
            {"step_values", last.step_values},
            {"seconds", last.times.communication()},
            {"hidden_seconds", last.times.hidden()},
            {"hideable_seconds", last.times.hideable()},
            {"values", last.values},
            {"selected", last.selected},
            {"buckets", last.buckets},
            {"ranks", last.ranks},
            {"density", last.values > 0 ? last.selected / last.values : 0}};
  }

  /// A member of the averager as one of this class: gives what it gives or throws on the worker's thread.
  template <class Result, class... Arguments>
  static auto of(Result (averager::*member)(Arguments...)) {
    return [member](native_averager& self, std::decay_t<Arguments>... given) {
      return self.run([&] { return (self.on_->*member)(given...); });
    };
  }
  template <class Result>
  static auto of(Result (averager::*member)() const) {
    return [member](native_averager& self) { return self.run([&] { return (self.on_->*member)(); }); };
  }

  template <class Job>
  void post(Job job) {
    running_worker().post([on = on_, job = std::move(job)] { job(*on); });
  }

  /// Lets Python go on meanwhile.
  template <class Job>
  std::invoke_result_t<Job> run(Job const& job) const {
    worker& on = running_worker(true);
    auto const task = std::make_shared<std::packaged_task<std::invoke_result_t<Job>()>>(job);
    auto result = task->get_future();
    py::gil_scoped_release const release;
    on.post([task] { (*task)(); });
    return result.get();
  }

  averager* on_ = nullptr;                                            // the worker owns it
  std::shared_ptr<kept_error> kept_ = std::make_shared<kept_error>(); // of the last step
};

} // namespace

} // namespace oktopk_torch

PYBIND11_MODULE(_native, module) {
  using namespace oktopk_torch;
  error_type = py::register_exception<oktopk::error>(module, "Error", PyExc_RuntimeError).ptr();
  py::class_<oktopk::detail::error_feedback_options>(module, "Feedback")
      .def(py::init<double, bool, bool, double, double>());
  py::class_<oktopk::density_schedule>(module, "density_schedule",
                                       "`density` after a `warm_up` of so many steps, which goes down from "
                                       "`initial` in `stages`, each the same factor sparser.")
      .def(py::init([](double density, double initial, std::int64_t warm_up, int stages) {
             oktopk::density_schedule const made{density, initial, warm_up, stages};
             if (std::string const sentence = made.problem(); !sentence.empty()) {
               throw oktopk::error(oktopk::fault::density_out_of_range, sentence);
             }
             return made;
           }),
           py::arg("density"), py::arg("initial") = 1, py::arg("warm_up") = 0, py::arg("stages") = 4)
      .def("__call__", &oktopk::density_schedule::at);
  py::class_<oktopk::detail::tensor_arrival>(module, "Arrival")
      .def(py::init<at::Tensor, std::vector<int>, std::vector<int>, std::string, std::string, bool, bool, double,
                    std::optional<double>>());
  py::class_<oktopk::detail::tensor_loading>(module, "Loading")
      .def(py::init<std::vector<std::string>, std::string, std::optional<double>, bool, std::int32_t, int,
                    std::optional<double>>());
  native_averager<float>::define(module, "Averager32");
  native_averager<double>::define(module, "Averager64");
  module.def("refuse", [](future_pointer const& future, std::string const& text) { set_error(*future->fut, text); });
  module.def("algorithms", [] {
    std::map<std::string, std::string> all;
    for (auto const& each : oktopk::list_allreduces()) {
      all[each.name] = each.about;
    }
    return all;
  });
  module.def("version", &oktopk::version);
  module.def("expect_other_thread", [] { running_worker(true); });
  module.def("shut_down", &shut_down);
}
