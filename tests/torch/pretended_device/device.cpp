// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A pretended device, torch's PrivateUse1, in the memory of the host: so that tests without a GPU notice a wait that is missing.
// Each stream is a thread, which writes late: so long after it could as `set_delays` says, unless the host waits for the stream.
// Fresh and freed memory is NaN, that of the host that is pinned as well, and is used again when all streams are through with
// it. Kernels are those of the CPU; their results are written late.
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Event.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace {

using c10::Device, c10::DeviceIndex, c10::Stream;
constexpr auto type = c10::DeviceType::PrivateUse1;
constexpr int devices = 2, streams = 8; // of each device; the first one is the default

std::atomic<int> delays[2] = {0, 0}; // in ms, before what default streams write, and the others
std::atomic<bool> has_streams{true}, has_events{true}, has_pinned{true};
std::atomic<std::int64_t> to_host{0}, to_device{0}; // bytes that programs have copied

/// A stream: jobs one after the other, on a thread, or on one that waits for them.
class queue {
public:
  bool is_default = false;
  void post(std::function<void()> job, bool writes = false) {
    std::scoped_lock const lock(mutex_);
    if (!is_there_) {
      std::thread([this] { work(); }).detach();
    }
    is_there_ = true;
    jobs_.push_back({std::move(job), writes});
    changed_.notify_all();
  }
  /// Until all that was posted is done, or enough. What the host waits for need not be late.
  void wait(std::function<bool()> const& is_enough = [] { return false; }) {
    std::unique_lock lock(mutex_);
    waiting_ += 1;
    changed_.notify_all();
    while (!jobs_.empty() && !is_enough()) {
      if (is_busy_) {
        changed_.wait(lock);
      } else {
        run_first(lock);
      }
    }
    waiting_ -= 1;
  }
  bool is_idle() {
    std::scoped_lock const lock(mutex_);
    return jobs_.empty();
  }

private:
  struct job_type {
    std::function<void()> run;
    bool writes;
  };
  void run_first(std::unique_lock<std::mutex>& lock) {
    is_busy_ = true;
    auto run = std::move(jobs_.front().run);
    lock.unlock();
    {
      c10::InferenceMode const any; // writes tensors of this mode and others
      run();
      run = nullptr;
    }
    lock.lock();
    jobs_.pop_front();
    is_busy_ = false;
    done_ += 1;
    changed_.notify_all();
  }
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !jobs_.empty() && !is_busy_; });
      auto const first = done_;
      if (jobs_.front().writes) {
        changed_.wait_for(lock, std::chrono::milliseconds(delays[is_default ? 0 : 1]),
                          [&] { return waiting_ > 0 || is_busy_ || done_ != first; });
      }
      if (!is_busy_ && done_ == first) { // else who waits has run it
        run_first(lock);
      }
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<job_type> jobs_;
  std::uint64_t done_ = 0;
  int waiting_ = 0;
  bool is_there_ = false, is_busy_ = false;
};

queue& queue_of(Stream const& stream) {
  static auto* const all = [] { // for as long as their threads, which never end
    auto* const made = new queue[devices * streams];
    for (int i = 0; i < devices; ++i) {
      made[i * streams].is_default = true;
    }
    return made;
  }();
  return all[stream.device_index() * streams + stream.id()];
}

/// An event: how often it was recorded, and how many of these its streams have come to.
struct event {
  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t recorded = 0, reached = 0;
  queue* last = nullptr;

  std::int64_t record(queue& on) {
    std::scoped_lock const lock(mutex);
    last = &on;
    return ++recorded;
  }
  std::pair<std::int64_t, queue*> now() {
    std::scoped_lock const lock(mutex);
    return {recorded, last};
  }
  void reach(std::int64_t one) {
    std::scoped_lock const lock(mutex);
    reached = std::max(reached, one);
    changed.notify_all();
  }
  void wait(std::int64_t one) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return reached >= one; });
  }
  bool is_reached(std::int64_t one) {
    std::scoped_lock const lock(mutex);
    return reached >= one;
  }
};
using event_pointer = std::shared_ptr<event>;
event& event_of(void* handle) {
  return **static_cast<event_pointer*>(handle);
}

/// Memory of a device, or pinned memory of the host.
class memory {
public:
  void* take(std::size_t bytes, queue* on) {
    std::scoped_lock const lock(mutex_);
    void* found;
    if (auto const at = free_.find(bytes); at != free_.end()) {
      found = at->second;
      free_.erase(at);
    } else {
      found = std::malloc(bytes);
      std::memset(found, 0xff, bytes); // NaN of each type
    }
    used_[static_cast<char const*>(found)] = {bytes, {}};
    if (on != nullptr) {
      used_[static_cast<char const*>(found)].by.insert(on);
    }
    return found;
  }
  /// Streams that use it have come to the end of what they do now, before anybody gets it.
  void give_back(void* data) {
    std::unique_lock lock(mutex_);
    block const of = used_.extract(static_cast<char const*>(data)).mapped();
    lock.unlock();
    std::shared_ptr<void> const last(data, [this, bytes = of.bytes](void* freed) {
      std::memset(freed, 0xff, bytes);
      std::scoped_lock const again(mutex_);
      free_.emplace(bytes, freed);
    });
    for (queue* each : of.by) {
      each->post([last] {});
    }
  }
  void use(void const* data, queue& by) {
    std::scoped_lock const lock(mutex_);
    if (auto const at = around(data); at != used_.end()) {
      at->second.by.insert(&by);
    }
  }
  bool has(void const* data) {
    std::scoped_lock const lock(mutex_);
    return around(data) != used_.end();
  }
  std::size_t bytes() {
    std::scoped_lock const lock(mutex_);
    std::size_t sum = 0;
    for (auto const& each : used_) {
      sum += each.second.bytes;
    }
    return sum;
  }

private:
  struct block {
    std::size_t bytes = 0;
    std::set<queue*> by;
  };
  std::map<char const*, block>::iterator around(void const* data) {
    auto const behind = used_.upper_bound(static_cast<char const*>(data));
    if (behind == used_.begin()) {
      return used_.end();
    }
    auto const at = std::prev(behind);
    return data < at->first + at->second.bytes ? at : used_.end();
  }
  std::mutex mutex_;
  std::map<char const*, block> used_;
  std::multimap<std::size_t, void*> free_;
};
memory& of_device = *new memory;
memory& of_host = *new memory;

thread_local DeviceIndex current_device = 0;
thread_local c10::StreamId current_streams[devices] = {};
std::atomic<unsigned> next_stream{0};

struct guard final : c10::impl::DeviceGuardImplInterface {
  static DeviceIndex index(Device device) { return device.has_index() ? device.index() : current_device; }
  static Stream stream(Device device, c10::StreamId id) { return Stream(Stream::UNSAFE, {::type, index(device)}, id); }

  c10::DeviceType type() const override { return ::type; }
  Device exchangeDevice(Device device) const override { return {::type, std::exchange(current_device, index(device))}; }
  Device getDevice() const override { return {::type, current_device}; }
  void setDevice(Device device) const override { current_device = index(device); }
  void uncheckedSetDevice(Device device) const noexcept override { current_device = index(device); }
  DeviceIndex deviceCount() const noexcept override { return devices; }

  Stream getStream(Device device) const override { return stream(device, current_streams[index(device)]); }
  Stream getDefaultStream(Device device) const override { return stream(device, 0); }
  Stream getStreamFromGlobalPool(Device device, bool) const override {
    TORCH_CHECK(has_streams, "the pretended device has no streams of a pool");
    return stream(device, 1 + next_stream++ % (streams - 1));
  }
  Stream getNewStream(Device device, int) const override { return getStreamFromGlobalPool(device, false); }
  Stream exchangeStream(Stream one) const override {
    return stream(one.device(), std::exchange(current_streams[one.device_index()], one.id()));
  }
  bool queryStream(Stream const& one) const override { return queue_of(one).is_idle(); }
  void synchronizeStream(Stream const& one) const override { queue_of(one).wait(); }
  void synchronizeDevice(DeviceIndex device) const override {
    for (int i = 0; i < streams; ++i) {
      queue_of(stream({::type, device}, i)).wait();
    }
  }

  void record(void** handle, Stream const& on, DeviceIndex, c10::EventFlag) const override {
    TORCH_CHECK(has_events, "the pretended device has no events");
    if (*handle == nullptr) {
      *handle = new event_pointer(std::make_shared<event>());
    }
    auto const of = *static_cast<event_pointer*>(*handle);
    queue_of(on).post([of, one = of->record(queue_of(on))] { of->reach(one); });
  }
  void block(void* handle, Stream const& on) const override {
    if (handle != nullptr) {
      auto const of = *static_cast<event_pointer*>(handle);
      queue_of(on).post([of, one = of->now().first] { of->wait(one); });
    }
  }
  bool queryEvent(void* handle) const override {
    return handle == nullptr || event_of(handle).is_reached(event_of(handle).now().first);
  }
  void synchronizeEvent(void* handle) const override {
    if (handle != nullptr) {
      event& of = event_of(handle);
      auto const [one, on] = of.now();
      on->wait([&of, one = one] { return of.is_reached(one); });
      of.wait(one);
    }
  }
  void destroyEvent(void* handle, DeviceIndex) const noexcept override { delete static_cast<event_pointer*>(handle); }
  void recordDataPtrOnStream(c10::DataPtr const& data, Stream const& on) const override {
    of_device.use(data.get(), queue_of(on));
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, guard)

queue& current_queue(Device device) {
  return queue_of(guard().getStream(device));
}

struct device_memory final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    Device const here = guard().getDevice();
    void* const data = bytes == 0 ? nullptr : of_device.take(bytes, &current_queue(here));
    return {data, data, raw_deleter(), here};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return [](void* data) {
      if (data != nullptr) {
        of_device.give_back(data);
      }
    };
  }
  void copy_data(void* to, void const* from, std::size_t bytes) const override {
    guard().synchronizeDevice(current_device);
    std::memcpy(to, from, bytes);
  }
} the_memory;
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &the_memory)

struct pinned_memory final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    TORCH_CHECK(has_pinned, "the pretended device pins no memory");
    void* const data = of_host.take(std::max<std::size_t>(bytes, 1), nullptr);
    return {data, data, raw_deleter(), c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return [](void* data) { of_host.give_back(data); };
  }
  void copy_data(void* to, void const* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }
} the_pinned_memory;

struct hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return devices; }
  DeviceIndex getCurrentDevice() const override { return current_device; }
  void setCurrentDevice(DeviceIndex device) const override { current_device = device; }
  DeviceIndex exchangeDevice(DeviceIndex device) const override { return std::exchange(current_device, device); }
  DeviceIndex maybeExchangeDevice(DeviceIndex device) const override { return exchangeDevice(device); }
  bool isPinnedPtr(void const* data) const override { return of_host.has(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &the_pinned_memory; }
  /// What was there is not kept: FSDP lets memory go, and takes it again.
  void resizePrivateUse1Bytes(c10::Storage const& storage, std::size_t bytes) const override {
    c10::OptionalDeviceGuard const here(storage.device());
    storage.unsafeGetStorageImpl()->set_data_ptr_noswap(the_memory.allocate(bytes));
    storage.set_nbytes(bytes);
  }
};

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<Device> device, std::optional<bool>) {
  c10::OptionalDeviceGuard const here(device);
  return at::detail::empty_strided_generic(
      sizes, strides, &the_memory, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::dtype_or_default(dtype));
}

at::Tensor empty(c10::IntArrayRef sizes, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  c10::OptionalDeviceGuard const here(device);
  return at::detail::empty_generic(sizes, &the_memory, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}

thread_local bool is_in_kernel = false;

/// Its memory, for a thread that keeps nothing alive, as a device does not.
at::Tensor behind(at::Tensor const& tensor) {
  auto seen = at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(), tensor.scalar_type());
  seen._set_neg(tensor.is_neg());
  return seen;
}

/// As CUDA: the host waits, unless its memory is pinned and it need not.
at::Tensor copy_from(at::Tensor const& from, at::Tensor const& to, bool non_blocking) {
  if (to.numel() == 0) {
    return to;
  }
  queue& on = current_queue((to.is_cpu() ? from : to).device());
  if (!from.is_cpu() && !to.is_cpu() && from.device() != to.device()) {
    current_queue(from.device()).wait();
  }
  auto const& host = to.is_cpu() ? to : from;
  bool const goes_on = host.is_cpu() ? non_blocking && of_host.has(host.data_ptr()) : true;
  if (host.is_cpu() && !is_in_kernel) {
    (to.is_cpu() ? to_host : to_device) += static_cast<std::int64_t>(to.numel() * from.itemsize());
  }
  if (host.is_cpu() && goes_on) {
    of_host.use(host.data_ptr(), on);
  }
  if (goes_on || (is_in_kernel && from.is_cpu())) {
    on.post([source = goes_on ? behind(from) : from, target = behind(to)] { target.copy_(source); }, true);
  } else {
    on.wait();
    c10::InferenceMode const any;
    behind(to).copy_(behind(from));
  }
  return to;
}

at::Tensor copy_from_and_resize(at::Tensor const& from, at::Tensor const& to) {
  if (to.sizes() != from.sizes()) {
    at::native::resize_(to, from.sizes(), std::nullopt);
  }
  return copy_from(from, to, false);
}

at::Tensor& fill(at::Tensor& self, at::Scalar const& value) {
  if (self.numel() > 0) {
    current_queue(self.device()).post([target = behind(self), value] { target.fill_(value); }, true);
  }
  return self;
}
at::Tensor& zero(at::Tensor& self) {
  return fill(self, 0);
}

void kernel_of_cpu(c10::OperatorHandle const& op, torch::jit::Stack* stack) {
  struct restored {
    bool before = std::exchange(is_in_kernel, true);
    ~restored() { is_in_kernel = before; }
  } const within;
  at::native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("fill_.Scalar", &fill);
  m.impl("zero_", &zero);
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  m.impl("resize_", TORCH_FN(at::native::resize_));
  m.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
  m.impl("set_.source_Storage", static_cast<at::Tensor& (*)(at::Tensor&, at::Storage)>(&at::native::set_));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(at::native::set_storage_cpu_));
}
// Else it resolves the negative in a copy, by itself.
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&kernel_of_cpu>());
}

/// A result that is under way on a stream of its own, as NCCL has it: whoever waits lets the current stream wait.
class late_work final : public c10d::Work {
public:
  late_work(at::Tensor const& result, at::Tensor const& values)
      : device_(result.device()), values_(values.pin_memory()), done_(c10::DeviceType::PrivateUse1) {
    c10::Event given(c10::DeviceType::PrivateUse1);
    given.record(guard().getStream(device_));
    Stream const own = guard().getStreamFromGlobalPool(device_, false);
    given.block(own);
    Stream const before = guard().exchangeStream(own);
    result.copy_(values_, true);
    done_.record(own);
    guard().exchangeStream(before);
  }
  bool wait(std::chrono::milliseconds) override {
    done_.block(guard().getStream(device_));
    return true;
  }
  bool isCompleted() override { return done_.query(); }

private:
  Device device_;
  at::Tensor values_;
  c10::Event done_;
};

/// What DDP itself does with tensors of the device: by Gloo, which moves copies, with waits of the host.
class staged final : public c10d::Backend {
public:
  explicit staged(c10::intrusive_ptr<c10d::Backend> gloo)
      : Backend(gloo->getRank(), gloo->getSize()), gloo_(std::move(gloo)) {}
  std::string const getBackendName() const override { return "staged"; }
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           c10d::BroadcastOptions const& how) override {
    auto copies = on_host(tensors);
    return back(gloo_->broadcast(copies, how), copies, tensors);
  }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           c10d::AllreduceOptions const& how) override {
    auto copies = on_host(tensors);
    return back(gloo_->allreduce(copies, how), copies, tensors);
  }
  c10::intrusive_ptr<c10d::Work> allgather(std::vector<std::vector<at::Tensor>>& results,
                                           std::vector<at::Tensor>& tensors,
                                           c10d::AllgatherOptions const& how) override {
    auto copies = on_host(tensors);
    std::vector<std::vector<at::Tensor>> every{on_host(results.at(0))};
    return back(gloo_->allgather(every, copies, how), every[0], results[0]);
  }
  c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(at::Tensor& result, at::Tensor& rows,
                                                      c10d::ReduceScatterOptions const& how) override {
    at::Tensor given = rows.to(at::kCPU);
    at::Tensor sums = at::empty(result.sizes(), given.options());
    gloo_->_reduce_scatter_base(sums, given, how)->wait();
    return c10::make_intrusive<late_work>(result, sums);
  }
  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& results, at::Tensor& own,
                                                 c10d::AllgatherOptions const& how) override {
    at::Tensor given = own.to(at::kCPU);
    at::Tensor every = at::empty(results.sizes(), given.options());
    gloo_->_allgather_base(every, given, how)->wait();
    return c10::make_intrusive<late_work>(results, every);
  }
  c10::intrusive_ptr<c10d::Work> barrier(c10d::BarrierOptions const& how) override { return gloo_->barrier(how); }

private:
  static std::vector<at::Tensor> on_host(std::vector<at::Tensor> const& tensors) {
    std::vector<at::Tensor> copies;
    for (auto const& each : tensors) {
      copies.push_back(each.to(at::kCPU));
    }
    return copies;
  }
  static c10::intrusive_ptr<c10d::Work> back(c10::intrusive_ptr<c10d::Work> work, std::vector<at::Tensor> const& copies,
                                             std::vector<at::Tensor> const& tensors) {
    work->wait();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].copy_(copies[i]);
    }
    return work;
  }
  c10::intrusive_ptr<c10d::Backend> gloo_;
};

} // namespace

PYBIND11_MODULE(pretended_native, m) {
  namespace py = pybind11;
  static hooks the_hooks;
  at::RegisterPrivateUse1HooksInterface(&the_hooks);
  m.def("set_delays", [](int of_default, int of_others) {
    delays[0] = of_default;
    delays[1] = of_others;
  });
  m.def("set_has", [](bool with_streams, bool with_events, bool with_pinned) {
    has_streams = with_streams;
    has_events = with_events;
    has_pinned = with_pinned;
  });
  m.def("copied", [] { return std::pair(to_host.load(), to_device.load()); });
  m.def("pinned_bytes", [] { return of_host.bytes(); });
  m.def("current_device", [] { return static_cast<int>(current_device); });
  m.def("set_device", [](int device) { current_device = static_cast<DeviceIndex>(device); });
  m.def(
      "synchronize", [](int device) { guard().synchronizeDevice(static_cast<DeviceIndex>(device)); },
      py::call_guard<py::gil_scoped_release>());
  py::object const backend = py::module_::import("torch._C._distributed_c10d").attr("Backend");
  py::class_<staged, c10::intrusive_ptr<staged>>(m, "Staged", backend)
      .def(py::init<c10::intrusive_ptr<c10d::Backend>>());
}
