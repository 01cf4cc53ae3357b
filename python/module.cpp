// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What Python sees of engine/averager.hpp: the module oktopk_torch._native, which oktopk_torch/__init__.py uses.

#include "engine/averager.hpp"
#include "engine/workers.hpp"

#include <oktopk/core/version.hpp>
#include <oktopk/torch/process_group.hpp>
#include <oktopk/torch/view.hpp>
#include <oktopk/training/density.hpp>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/pybind.h>

#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace oktopk_torch {

namespace {

using future_pointer = std::shared_ptr<torch::jit::PythonFutureWrapper>;
using oktopk::detail::running_workers;

constexpr char const* library = "oktopk_torch";
PyObject* error_type = nullptr; // used with the GIL held

void shut_down() {
  py::gil_scoped_release const release;
  running_workers::shut_down();
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
  return oktopk::detail::text_of(why, library);
}

oktopk::detail::element element_of(at::ScalarType type) {
  using oktopk::detail::element;
  return type == at::kDouble     ? element::float64
         : type == at::kHalf     ? element::float16
         : type == at::kBFloat16 ? element::bfloat16
                                 : element::float32;
}

/// A call, with its tensor, and with those of `reordered`.
struct arrival {
  at::Tensor buffer;
  std::vector<std::pair<int, at::Tensor>> reordered;
  oktopk::detail::tensor_arrival call;

  arrival(at::Tensor of, std::vector<int> tensors, std::string key, std::vector<std::pair<int, at::Tensor>> moved,
          std::vector<int> used, std::string fault, std::string subject, bool is_first, bool is_last, bool continues,
          double loss_scale, std::optional<double> density)
      : buffer(std::move(of)), reordered(std::move(moved)), call{{},
                                                                 std::move(tensors),
                                                                 std::move(key),
                                                                 {},
                                                                 std::move(used),
                                                                 std::move(fault),
                                                                 std::move(subject),
                                                                 is_first,
                                                                 is_last,
                                                                 continues,
                                                                 loss_scale,
                                                                 density,
                                                                 {}} {}
};

/// The arguments of `load` beside the states.
struct loading : oktopk::detail::tensor_loading {
  loading(std::vector<std::string> given, std::string why, std::optional<double> part, bool is_partial,
          std::int32_t rank, int steps, std::optional<double> set)
      : tensor_loading{std::move(given), std::move(why), part, is_partial, rank, steps, set, "load_state_dict"} {}
};

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
      : when_skipped_(oktopk::detail::value_of_skipped(gives)),
        on_(running_workers::take(&group, library), library, [&] {
          // The type of the pointer that Python holds differs between releases of torch.
          using pointer = c10::intrusive_ptr<c10d::ProcessGroup>;
          using communicator = oktopk::process_group_communicator;
          return std::make_shared<averager>(communicator(pointer::unsafe_reclaim_from_nonowning(&group),
                                                         communicator::usual_first_tag,
                                                         pointer::unsafe_reclaim_from_nonowning(&of_allreduce)),
                                            library, text, how, names, lengths, gives, fault);
        }) {}

  /// Returns at once; `future` is complete when the averages lie in the buffer, or has the error. With `keeps_error` it
  /// has none, the buffer has zeros, and `error` tells: DDP does not end a backward pass in order where a future has an
  /// error, and a callback of the future that moves weights must move none.
  void start(arrival const& given, future_pointer const& future, bool keeps_error) {
    auto const result = torch::jit::toIValue(py::cast(given.buffer), c10::PyObjectType::get());
    if (given.call.is_first) {
      kept_ = std::make_shared<kept_error>();
    }
    auto const end = [result, buffer = given.buffer, future = future->fut, kept = kept_,
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
    on_.post(
        [given, end, when_skipped = when_skipped_](averager& of) { of.arrive(with_memory(given, when_skipped, end)); });
  }

  /// Of the last step, so far; empty if there is none.
  std::string error() const {
    std::scoped_lock const lock(kept_->mutex);
    return kept_->text;
  }

  void backward_ended() {
    on_.post([when = std::chrono::steady_clock::now()](averager& of) { of.backward_ended(when); });
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
        .def("save", &native_averager::save)
        .def("load", &native_averager::load)
        .def("residual_norm", of(&averager::residual_norm))
        .def("words_sent", of(&averager::words_sent))
        .def("last_step", [](native_averager& self) { return named(of(&averager::last_step)(self)); })
        .def("schemes", of(&averager::schemes));
  }

private:
  /// The call over memory: the tensor's, or that of a copy where its values do not lie one after the other there.
  template <class End>
  static oktopk::detail::tensor_arrival with_memory(arrival const& given, float when_skipped, End const& end) {
    oktopk::detail::tensor_arrival call = given.call;
    call.buffer = {nullptr, given.buffer.numel(), element_of(given.buffer.scalar_type())};
    at::Tensor values;
    try {
      for (auto const& [tensor, from] : given.reordered) {
        auto const indices = oktopk::torch_view<std::int64_t>(from);
        call.reordered.push_back({tensor, {indices.data(), indices.data() + indices.extent(0)}});
      }
      if (call.fault.empty()) { // the memory of a tensor with the negative bit has the values of another one
        values = given.buffer.resolve_neg().contiguous();
        call.buffer.data = values.data_ptr();
      }
    } catch (...) { // the other ranks make this call
      call.fault = oktopk::detail::error_of_rank(std::current_exception()).sentence();
    }
    call.done = end;
    if (!call.fault.empty()) {
      call.done = [buffer = given.buffer, when_skipped, end](std::exception_ptr const& why) {
        if (!why) {
          buffer.fill_(when_skipped);
        }
        end(why);
      };
    } else if (!values.is_same(given.buffer)) {
      call.done = [values, buffer = given.buffer, end](std::exception_ptr why) {
        try {
          c10::InferenceMode const guard; // a buffer that is an inference tensor can only be changed in this mode
          why ? void() : oktopk::detail::torch_call("the copy of an average", [&] { buffer.copy_(values); });
        } catch (
            oktopk::error const&) { // on this rank only: the sums are complete, and residuals are as after the step
          why = std::current_exception();
        }
        end(why);
      };
    }
    return call;
  }

  at::Tensor save() const {
    auto bytes = on_.run([&] { return on_.object().save(); });
    return at::from_blob(bytes.data(), {std::ssize(bytes)}, at::kByte).clone();
  }

  void load(std::vector<at::Tensor> const& saved, loading how) {
    std::vector<std::span<char const>> states;
    try {
      for (at::Tensor const& each : saved) {
        auto const bytes = oktopk::torch_view<std::uint8_t>(each);
        states.emplace_back(reinterpret_cast<char const*>(bytes.data()), bytes.extent(0));
      }
    } catch (oktopk::error const& caught) {
      how.fault = how.fault.empty() ? caught.sentence() : how.fault;
    }
    on_.run([&] { on_.object().load(states, how); });
  }

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
      return self.on_.run([&] { return (self.on_.object().*member)(given...); });
    };
  }
  template <class Result>
  static auto of(Result (averager::*member)() const) {
    return [member](native_averager& self) { return self.on_.run([&] { return (self.on_.object().*member)(); }); };
  }

  float when_skipped_;
  oktopk::detail::posted<averager, py::gil_scoped_release> on_;
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
  py::class_<arrival>(module, "Arrival")
      .def(py::init<at::Tensor, std::vector<int>, std::string, std::vector<std::pair<int, at::Tensor>>,
                    std::vector<int>, std::string, std::string, bool, bool, bool, double, std::optional<double>>());
  py::class_<loading>(module, "Loading")
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
  module.def("expect_other_thread", [] { running_workers::expect(library, true); });
  module.def("shut_down", &shut_down);
}
