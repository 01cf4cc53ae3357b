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

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace oktopk_torch {

namespace {

using future_pointer = std::shared_ptr<torch::jit::PythonFutureWrapper>;

void end_workers();

/// The one thread that does all work of a process group, in the order in which it came, and its averagers.
///
/// Each group has its own, so that averages of several groups end in whatever order each rank starts them, as the calls
/// of Gloo do. Jobs of two threads hold the launch lock with a Kokkos that two threads must not use at once; whoever
/// waits for messages gives it back.
class worker {
public:
  /// A job throws nothing.
  void post(std::function<void()> job) {
    thread_.submit([job = std::move(job)] {
      std::optional<oktopk::launch_lock> launching;
      if (oktopk::detail::launches_need_lock) {
        launching.emplace();
      }
      job();
    });
  }

  bool runs_here() const { return thread_.runs_here(); }

  void wait() { thread_.wait(); }

  std::map<void*, std::shared_ptr<void>> all; ///< the averagers; for jobs alone
  std::atomic<int> users{0};                  ///< as many averagers; 0: the thread is free for another group

private:
  oktopk::detail::communication_thread thread_; // the last: its work uses the others
};

/// The workers of this process, by their groups. All members are called with the GIL held.
///
/// The first worker initialises Kokkos and finalizes it: some backends of old releases launch kernels from no other
/// thread, and with them it is the worker of all groups. Where somebody else has initialised Kokkos, it is left alone.
/// Kokkos is finalized at the exit of the process, behind what was made after its initialization: views of other
/// libraries may live as long as static objects.
class workers {
public:
  workers() {
    first().post([this] {
      if (!Kokkos::is_initialized()) {
        Kokkos::initialize();
        is_ours_ = true;
      }
    });
    first().wait(); // so that what the process does at its exit comes in the right order
    std::atexit(&end_workers);
  }

  workers& operator=(workers&&) = delete;

  /// After the jobs that have come.
  ~workers() {
    end_jobs();
    all_.resize(1);
    first().post([this] {
      if (is_ours_) {
        Kokkos::finalize();
      }
    });
  }

  worker& of(c10d::ProcessGroup const* group) {
    if (!oktopk::detail::launches_from_any_thread<Kokkos::DefaultHostExecutionSpace>()) {
      return first();
    }
    auto const free = std::find_if(all_.begin(), all_.end(), [group](entry const& each) {
      return each.group == group && each.of->users > 0; // alive, so it is the same group
    });
    auto const found = free != all_.end() ? free : std::find_if(all_.begin(), all_.end(), [](entry const& each) {
      return each.of->users == 0;
    });
    entry& taken = found != all_.end() ? *found : all_.emplace_back();
    taken.group = group;
    return *taken.of;
  }

  bool run_here() const {
    return std::any_of(all_.begin(), all_.end(), [](entry const& each) { return each.of->runs_here(); });
  }

  /// A process that was forked has all objects, and not the threads: whatever waits for them would wait for ever.
  bool are_of_this_process() const { return process_ == ::getpid(); }

  /// Destroys the averagers, after the jobs that have come.
  void end_jobs() {
    for (entry const& each : all_) {
      each.of->post([of = each.of.get()] { of->all.clear(); });
    }
    for (entry const& each : all_) {
      each.of->wait();
    }
  }

private:
  struct entry {
    c10d::ProcessGroup const* group = nullptr;
    std::unique_ptr<worker> of = std::make_unique<worker>();
  };

  worker& first() { return *all_.front().of; }

  bool is_ours_ = false;
  pid_t process_ = ::getpid();
  std::vector<entry> all_ = std::vector<entry>(1);
};

// All are used with the GIL held; the workers at the exit of the process as well.
std::unique_ptr<workers> the_workers;
bool is_shut_down = false;
PyObject* error_type = nullptr;

workers& running_workers(bool waits = false) {
  if (is_shut_down) {
    throw oktopk::error(oktopk::fault::bad_state, "oktopk_torch has been shut down");
  }
  if (!the_workers) {
    the_workers = std::make_unique<workers>();
  }
  if (!the_workers->are_of_this_process()) {
    throw oktopk::error(oktopk::fault::bad_state,
                        "oktopk_torch was in use before this process was forked: use it in processes that are spawned, "
                        "or fork them before");
  }
  if (waits && the_workers->run_here()) { // the wait would have no end
    throw oktopk::error(oktopk::fault::bad_state, "a callback of a future cannot wait for oktopk_torch");
  }
  return *the_workers;
}

bool have_workers() {
  return the_workers && the_workers->are_of_this_process();
}

void end_workers() {
  if (!have_workers()) {
    static_cast<void>(the_workers.release()); // its destructor would wait for the threads
  }
  the_workers.reset();
}

void shut_down() {
  is_shut_down = true;
  if (have_workers()) {
    py::gil_scoped_release const release;
    the_workers->end_jobs();
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
  } catch (oktopk::error const& caught) {
    bool const is_late = caught.code() == oktopk::fault::timed_out;
    return caught.what() + std::string(is_late ? " (calls of oktopk_torch are collective: does every rank of the group "
                                                 "make this one, in the same order?)"
                                               : "");
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
                  std::vector<std::int64_t> const& lengths, oktopk::detail::on_non_finite gives,
                  std::string const& fault)
      : worker_(running_workers(true).of(&group)) {
    // The type of the pointer that Python holds differs between releases of torch.
    using pointer = c10::intrusive_ptr<c10d::ProcessGroup>;
    auto const counted = pointer::unsafe_reclaim_from_nonowning(&group);
    auto const beside = pointer::unsafe_reclaim_from_nonowning(&of_allreduce);
    worker_.users += 1;
    try {
      run([&] {
        auto const made = std::make_shared<averager>(counted, beside, text, how, names, lengths, gives, fault);
        on_ = made.get();
        worker_.all[on_] = made;
      });
    } catch (...) {
      worker_.users -= 1;
      throw;
    }
  }

  native_averager& operator=(native_averager&&) = delete;

  ~native_averager() {
    if (have_workers()) {
      worker_.post([&from = worker_, on = on_] {
        from.all.erase(on);
        from.users -= 1;
      });
    }
  }

  /// Returns at once; `future` is complete when the averages lie in the buffer, or has the error. With `keeps_error` it
  /// has none, the buffer has zeros, and `error` tells: DDP does not end a backward pass in order where a future has an
  /// error, and a callback of the future that moves weights must move none.
  void start(oktopk::detail::tensor_arrival what, future_pointer const& future, bool keeps_error) {
    auto const result = torch::jit::toIValue(py::cast(what.buffer), c10::PyObjectType::get());
    if (what.is_first) {
      kept_ = std::make_shared<kept_error>();
    }
    what.done = [result, buffer = what.buffer, future = future->fut, kept = kept_,
                 keeps_error](std::exception_ptr const& why) {
      oktopk::detail::launch_unlock const lent; // callbacks run here
      if (why && !keeps_error) {
        set_error(*future, text_of(why));
        return;
      }
      if (why) {
        buffer.zero_();
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
                      std::vector<std::int64_t> const&, oktopk::detail::on_non_finite, std::string const&>())
        .def("start", &native_averager::start)
        .def("error", &native_averager::error)
        .def("backward_ended", &native_averager::backward_ended)
        .def("names", of(&averager::names))
        .def("lengths", of(&averager::lengths))
        .def("set_density", of(&averager::set_density))
        .def("undo", of(&averager::undo))
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
    running_workers();
    worker_.post([on = on_, job = std::move(job)] { job(*on); });
  }

  /// Lets Python go on meanwhile.
  template <class Job>
  std::invoke_result_t<Job> run(Job const& job) const {
    running_workers(true);
    auto const task = std::make_shared<std::packaged_task<std::invoke_result_t<Job>()>>(job);
    auto result = task->get_future();
    py::gil_scoped_release const release;
    worker_.post([task] { (*task)(); });
    return result.get();
  }

  worker& worker_;
  averager* on_ = nullptr;                                            // the worker owns it
  std::shared_ptr<kept_error> kept_ = std::make_shared<kept_error>(); // of the last step
};

oktopk::density_schedule schedule(double density, double initial, std::int64_t warm_up, int stages) {
  oktopk::density_schedule const made{density, initial, warm_up, stages};
  if (std::string const sentence = made.problem(); !sentence.empty()) {
    throw oktopk::error(oktopk::fault::density_out_of_range, sentence);
  }
  return made;
}

} // namespace

} // namespace oktopk_torch

PYBIND11_MODULE(_native, module) {
  using namespace oktopk_torch;
  error_type = py::exception<oktopk::error>(module, "Error", PyExc_RuntimeError).release().ptr();
  py::register_exception_translator([](std::exception_ptr why) {
    try {
      std::rethrow_exception(why);
    } catch (oktopk::error const&) {
      PyErr_SetString(error_type, text_of(why).c_str());
    }
  });
  py::class_<oktopk::detail::error_feedback_options>(module, "Feedback")
      .def(py::init<double, bool, bool, double, double>());
  py::class_<oktopk::density_schedule>(module, "density_schedule",
                                       "`density` after a `warm_up` of so many steps, which goes down from "
                                       "`initial` in `stages`, each the same factor sparser.")
      .def(py::init(&schedule), py::arg("density"), py::arg("initial") = 1, py::arg("warm_up") = 0,
           py::arg("stages") = 4)
      .def("__call__", &oktopk::density_schedule::at)
      .def(py::pickle(
          [](oktopk::density_schedule const& of) {
            return py::make_tuple(of.density, of.initial, of.warm_up, of.stages);
          },
          [](py::tuple const& saved) {
            return schedule(saved[0].cast<double>(), saved[1].cast<double>(), saved[2].cast<std::int64_t>(),
                            saved[3].cast<int>());
          }));
  py::class_<oktopk::detail::tensor_arrival>(module, "Arrival")
      .def(py::init<at::Tensor, std::vector<int>, std::string, std::vector<std::pair<int, at::Tensor>>,
                    std::vector<int>, std::string, std::string, bool, bool, bool, double, std::optional<double>>());
  py::class_<oktopk::detail::tensor_loading>(module, "Loading")
      .def(py::init<std::vector<std::string>, std::string, std::optional<double>, bool, std::int32_t, int,
                    std::optional<double>>());
  py::enum_<oktopk::detail::on_non_finite>(module, "on_non_finite")
      .value("error", oktopk::detail::on_non_finite::error)
      .value("zeros", oktopk::detail::on_non_finite::zeros)
      .value("infinities", oktopk::detail::on_non_finite::infinities);
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
  module.def("expect_other_thread", [] { running_workers(true); });
  module.def("shut_down", &shut_down);
}
