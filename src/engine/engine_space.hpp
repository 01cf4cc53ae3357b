// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>

#include <memory>
#include <string>

// Where the engine averages: the execution space that its build has chosen, and the device behind it. All loops of the engine
// over values are kernels of that space.
namespace oktopk::detail {

#ifdef OKTOPK_ENGINE_ON_DEVICE // of all files of the engine of a device
using engine_space = Kokkos::DefaultExecutionSpace;
static_assert(has_stream<engine_space>, "oktopk: the engine of a device is one for CUDA or HIP");
#else
using engine_space = Kokkos::DefaultHostExecutionSpace;
#endif

/// The runtime of a device, by one name for all.
template <execution_space E>
struct device_runtime;

#if defined(__CUDACC__) || defined(__HIPCC__)
/// Is there for a device that takes code of this library.
template <int>
__global__ void probe() {
}
#endif

#ifdef KOKKOS_ENABLE_CUDA
template <>
struct device_runtime<Kokkos::Cuda> {
  static constexpr char const* name = "cuda";
  using stream_type = cudaStream_t;
  using status_type = cudaError_t;
  static constexpr status_type success = cudaSuccess;

  static status_type count(int& devices) { return cudaGetDeviceCount(&devices); }
  static status_type current(int& device) { return cudaGetDevice(&device); }
  static status_type use(int device) { return cudaSetDevice(device); }
  static status_type create(stream_type& stream) { return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking); }
  static void destroy(stream_type stream) { static_cast<void>(cudaStreamDestroy(stream)); }
  static void forget_error() { static_cast<void>(cudaGetLastError()); }
  static std::string describe(status_type code) { return std::string("CUDA: ") + cudaGetErrorString(code); }
  static int device_of(Kokkos::Cuda const& exec) { return exec.cuda_device(); }

  static status_type probed() {
    cudaFuncAttributes of{};
    return cudaFuncGetAttributes(&of, reinterpret_cast<void const*>(&probe<0>));
  }

  /// The device with this memory; -1 for that of the host.
  static int owner_of(void const* address) {
    cudaPointerAttributes of{};
    bool const is_known = cudaPointerGetAttributes(&of, address) == success;
    return is_known && (of.type == cudaMemoryTypeDevice || of.type == cudaMemoryTypeManaged) ? of.device : -1;
  }
};
#endif

#ifdef KOKKOS_ENABLE_HIP
template <>
struct device_runtime<kokkos_hip::HIP> {
  static constexpr char const* name = "hip";
  using stream_type = hipStream_t;
  using status_type = hipError_t;
  static constexpr status_type success = hipSuccess;

  static status_type count(int& devices) { return hipGetDeviceCount(&devices); }
  static status_type current(int& device) { return hipGetDevice(&device); }
  static status_type use(int device) { return hipSetDevice(device); }
  static status_type create(stream_type& stream) { return hipStreamCreateWithFlags(&stream, hipStreamNonBlocking); }
  static void destroy(stream_type stream) { static_cast<void>(hipStreamDestroy(stream)); }
  static void forget_error() { static_cast<void>(hipGetLastError()); }
  static std::string describe(status_type code) { return std::string("HIP: ") + hipGetErrorString(code); }
  static int device_of(kokkos_hip::HIP const& exec) { return exec.hip_device(); }

  static status_type probed() {
    hipFuncAttributes of{};
    return hipFuncGetAttributes(&of, reinterpret_cast<void const*>(&probe<0>));
  }

  /// The device with this memory; -1 for that of the host.
  static int owner_of(void const* address) {
    hipPointerAttribute_t of{};
    bool const is_known = hipPointerGetAttributes(&of, address) == success;
    return is_known && is_of_device(of) ? of.device : -1;
  }

private:
  template <class Attributes>
  static bool is_of_device(Attributes const& of) {
    if constexpr (requires { of.memoryType; }) { // before ROCm 6
      return of.memoryType == hipMemoryTypeDevice;
    } else {
      return of.type == hipMemoryTypeDevice;
    }
  }
};
#endif

/// What the engine asks of the device of an execution space; devices have numbers. The host is number -1, and this is it.
template <execution_space E>
struct engine_device {
  static constexpr char const* name = "host";

  /// That of this thread, which an engine takes that is told of no other one.
  static int usual() { return -1; }

  /// An `error` where there is no such device.
  static void expect(int device) {
    if (device != -1) {
      throw error(fault::option_out_of_range,
                  "this engine averages on the host, and has no device " + std::to_string(device));
    }
  }

  /// The device of this thread from now on.
  static void use(int) {}

  /// Starts Kokkos on a device that is there, and that this thread uses. An `error` where it takes no code of this library.
  static void initialize(int) { Kokkos::initialize(); }

  /// The device that Kokkos was started on.
  static int started() { return -1; }

  /// What is wrong with memory that kernels of the device `own` are to reach; empty where they do.
  static std::string fault_of_memory(void const*, int) { return {}; }

  /// An instance for work of its own.
  class instance {
  public:
    E const& get() const { return exec_; }

  private:
    E exec_;
  };
};

template <execution_space E>
  requires has_stream<E>
struct engine_device<E> {
  using runtime = device_runtime<E>;
  static constexpr char const* name = runtime::name;

  static int usual() {
    int device = 0;
    if (runtime::current(device) != runtime::success) {
      runtime::forget_error();
      return 0;
    }
    return device;
  }

  // Kokkos would end the program.
  static void expect(int device) {
    int count = 0;
    auto const told = runtime::count(count);
    if (told != runtime::success || count == 0) {
      runtime::forget_error();
      throw error(fault::bad_state, "there is no device for this engine, of " + std::string(name) +
                                        (told != runtime::success ? " (" + runtime::describe(told) + ")" : ""));
    }
    if (device < 0 || device >= count) {
      throw error(fault::option_out_of_range, "there is no device " + std::to_string(device) + " of " +
                                                  std::string(name) + " among " + std::to_string(count));
    }
  }

  static void use(int device) {
    if (runtime::use(device) != runtime::success) {
      runtime::forget_error(); // the next call of the thread has an error of its own
    }
  }

  static void initialize(int device) {
    if (auto const told = runtime::probed(); told != runtime::success) { // here, too, Kokkos would end the program
      runtime::forget_error();
      throw error(fault::bad_state, "device " + std::to_string(device) + " of " + name +
                                        " takes no code of this engine (" + runtime::describe(told) + ")");
    }
    // It warns where the driver makes code of PTX, as it does for each newer GPU.
#if KOKKOS_VERSION >= 30700
    Kokkos::initialize(Kokkos::InitializationSettings().set_device_id(device).set_disable_warnings(true));
#else
    Kokkos::InitArguments how;
    how.device_id = device;
    how.disable_warnings = true;
    Kokkos::initialize(how);
#endif
  }

  static int started() { return runtime::device_of(E()); }

  static std::string fault_of_memory(void const* address, int own) {
    int const owner = runtime::owner_of(address);
    if (owner < 0) {
      runtime::forget_error();
      return "the values lie in memory of the host, and this engine averages on a device";
    }
    return owner == own ? ""
                        : "the values lie on device " + std::to_string(owner) +
                              ", and this engine averages on device " + std::to_string(own);
  }

  // A stream that does not wait for what others do on the default one. Outlives what launches on copies of the instance.
  class instance {
  public:
    instance() : stream_(made()), exec_(std::make_unique<E>(stream_)) {}
    instance& operator=(instance&&) = delete;

    ~instance() {
      exec_.reset();
      runtime::destroy(stream_);
    }

    E const& get() const { return *exec_; }

  private:
    static typename runtime::stream_type made() {
      typename runtime::stream_type stream{};
      if (auto const told = runtime::create(stream); told != runtime::success) {
        runtime::forget_error();
        throw error(fault::bad_state, "the device gives no stream (" + runtime::describe(told) + ")");
      }
      return stream;
    }

    typename runtime::stream_type stream_;
    std::unique_ptr<E> exec_;
  };
};

} // namespace oktopk::detail
