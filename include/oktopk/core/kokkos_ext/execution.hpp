// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>

#include <mutex>
#include <string>

// The memory of devices: the host memory that a device copies to fastest, and the definition of a device.
namespace oktopk::detail {

#ifdef KOKKOS_ENABLE_HIP
#if KOKKOS_VERSION >= 40000
namespace kokkos_hip = Kokkos;
#else
namespace kokkos_hip = Kokkos::Experimental;
#endif
#endif

template <class E>
struct host_staging {
  using type = Kokkos::HostSpace;
};

/// The kind of device that the memory belongs to; MPI libraries know only these.
enum class device_family { unknown, cuda, hip };

template <class MemorySpace>
inline constexpr device_family family_of = device_family::unknown;

#ifdef KOKKOS_ENABLE_CUDA
template <>
struct host_staging<Kokkos::Cuda> {
  using type = Kokkos::CudaHostPinnedSpace;
};

template <>
inline constexpr device_family family_of<Kokkos::CudaSpace> = device_family::cuda;
#endif

#ifdef KOKKOS_ENABLE_HIP
template <>
struct host_staging<kokkos_hip::HIP> {
  using type = kokkos_hip::HIPHostPinnedSpace;
};

template <>
inline constexpr device_family family_of<kokkos_hip::HIPSpace> = device_family::hip;
#endif

/// Page-locked host memory if the backend has it, else plain host memory.
template <execution_space E>
using host_staging_space = typename host_staging<E>::type;

// Defined in programs for a device, the only ones that compile kernels for one.
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP) || defined(KOKKOS_ENABLE_SYCL) ||                        \
    defined(KOKKOS_ENABLE_OPENMPTARGET) || defined(KOKKOS_ENABLE_OPENACC)
#define OKTOPK_HAS_DEVICE
#endif

/// True if kernels of `E` run beside the host program, in very many threads. The host may still be able to read their
/// memory, if a driver moves its pages.
template <execution_space E>
inline constexpr bool is_device =
    !Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename E::memory_space>::accessible ||
    !std::is_same_v<host_staging_space<E>, Kokkos::HostSpace>;

// Code that is compiled a second time, for processors with AVX2 and the instructions that came with it. A function with
// the attribute `OKTOPK_FOR_AVX2` calls the common code, which is always inlined, and may be called only if
// `processor_has_avx2()`. This is checked when the program runs: translation units with different -m flags have the
// same definitions. Fused multiply-adds are not among the instructions, so the results have the same bits.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define OKTOPK_FOR_AVX2 [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]]
inline bool processor_has_avx2() {
  static bool const has = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi2") != 0;
  return has;
}
#else
#define OKTOPK_FOR_AVX2 KOKKOS_INLINE_FUNCTION
inline bool processor_has_avx2() {
  return false;
}
#endif

/// Prefetches memory that a kernel on a CPU will write soon. Does nothing on a device, whose threads hide the latency
/// of each other. The address need not be valid.
template <execution_space E>
KOKKOS_INLINE_FUNCTION void prefetch_for_writing([[maybe_unused]] void const* address) {
  if constexpr (!is_device<E>) {
    __builtin_prefetch(address, 1);
  }
}

/// True if kernels of `E` never run in two threads at once.
template <execution_space E>
inline constexpr bool is_one_thread =
#ifdef KOKKOS_ENABLE_SERIAL
    std::is_same_v<E, Kokkos::Serial>;
#else
    false;
#endif

/// Sets bits of a word; with an atomic operation only if other threads may do so too, since it costs tenfold.
template <execution_space E>
KOKKOS_INLINE_FUNCTION void set_bits(std::uint64_t* word, std::uint64_t bits) {
  if constexpr (is_one_thread<E>) {
    *word |= bits;
  } else {
    Kokkos::atomic_fetch_or(word, bits);
  }
}

// Visible, so that libraries which are compiled with -fvisibility=hidden have the lock of the process, none of their own.
/// This thread holds `launch_mutex`.
[[gnu::visibility("default")]] inline thread_local bool has_launch_lock = false;
/// Held by the thread that may launch kernels and wait for them.
[[gnu::visibility("default")]] inline std::mutex launch_mutex;

/// Takes the lock for this thread, or releases it, until the end of the scope; does nothing if that is so already.
template <bool Holds>
class launch_lock_scope {
public:
  launch_lock_scope() : changes_(has_launch_lock != Holds) { change_to(Holds); }
  ~launch_lock_scope() { change_to(!Holds); }
  launch_lock_scope& operator=(launch_lock_scope&&) = delete;

private:
  void change_to(bool holds) const {
    if (changes_ && holds) {
      launch_mutex.lock();
      has_launch_lock = true;
    } else if (changes_) {
      has_launch_lock = false;
      launch_mutex.unlock();
    }
  }

  bool changes_;
};

/// Releases this thread's lock, if it has it, until the end of the scope: for waits that launch nothing.
class launch_unlock : launch_lock_scope<false> {};

/// True for a Kokkos that two threads must not use at once: before 4.4 kernels of two threads share scratch memory.
inline constexpr bool launches_need_lock = KOKKOS_VERSION < 40400;

/// True if kernels of `E` may be launched by another thread than the one that has initialised Kokkos. Before 4.4,
/// OpenMP knows its threads only from that thread, and a new thread has no chosen device; `Threads` never accepts
/// another thread.
template <execution_space E>
constexpr bool launches_from_any_thread() {
#ifdef KOKKOS_ENABLE_SERIAL
  if (std::same_as<E, Kokkos::Serial>) {
    return true;
  }
#endif
#ifdef KOKKOS_ENABLE_THREADS
  if (std::same_as<E, Kokkos::Threads>) {
    return false;
  }
#endif
  return !launches_need_lock;
}

} // namespace oktopk::detail

namespace oktopk {

/// The lock that gives the right to use Kokkos, for a program that launches kernels or copies views of its own while
/// buckets are under way (`bucketed`). Kokkos before 4.4 must not be used by two threads at once; with later versions
/// locks are not needed, and cost two operations on a mutex.
///
/// Waits until no other thread has the lock, and releases it when it goes out of scope. A lock within a lock of the
/// same thread has no effect. The kernels launched under a lock must have ended when it ends: fence their instance. The
/// communicators of the library release the lock while they wait for messages (`launch_unlock`).
class launch_lock : detail::launch_lock_scope<true> {};

} // namespace oktopk

// Execution-space instances: waiting for one, comparing two, and the stream of a device behind one.
namespace oktopk::detail {

/// Waits for one execution-space instance, with a label if this Kokkos takes one (3.5 and later).
template <execution_space E>
void fence(E const& exec, char const* label) {
  if constexpr (requires { exec.fence(std::string(label)); }) {
    exec.fence(label);
  } else {
    exec.fence();
  }
}

/// True if kernels on `one` and on `other` run in the order in which they are launched. Kokkos before 4.0 does not
/// compare instances, so there the answer is false.
template <execution_space E>
bool same_instance([[maybe_unused]] E const& one, [[maybe_unused]] E const& other) {
  if constexpr (std::equality_comparable<E>) {
    return one == other;
  } else {
    return false;
  }
}

/// True for execution spaces whose instances have a stream, on which other libraries of the same device can enqueue.
template <execution_space E>
inline constexpr bool has_stream = false;

/// The stream of an instance; deleted for execution spaces without streams.
template <execution_space E>
  requires(!has_stream<E>)
void stream_of(E const&) = delete;

/// The events of the device of an execution space that has streams: their types, and the functions of the device.
template <execution_space E>
struct device_events;

#ifdef KOKKOS_ENABLE_CUDA
template <>
inline constexpr bool has_stream<Kokkos::Cuda> = true;

inline cudaStream_t stream_of(Kokkos::Cuda const& exec) {
  return exec.cuda_stream();
}

template <>
struct device_events<Kokkos::Cuda> {
  using event_type = cudaEvent_t;
  using status_type = cudaError_t;
  static constexpr status_type success = cudaSuccess;
  static constexpr status_type not_ready = cudaErrorNotReady;

  static status_type create(event_type& event) { return cudaEventCreateWithFlags(&event, cudaEventDisableTiming); }
  static status_type destroy(event_type event) { return cudaEventDestroy(event); }
  static status_type record(event_type event, cudaStream_t stream) { return cudaEventRecord(event, stream); }
  static status_type query(event_type event) { return cudaEventQuery(event); }
  static std::string describe(status_type code) { return std::string("CUDA: ") + cudaGetErrorString(code); }
};
#endif

#ifdef KOKKOS_ENABLE_HIP
template <>
inline constexpr bool has_stream<kokkos_hip::HIP> = true;

inline hipStream_t stream_of(kokkos_hip::HIP const& exec) {
  return exec.hip_stream();
}

template <>
struct device_events<kokkos_hip::HIP> {
  using event_type = hipEvent_t;
  using status_type = hipError_t;
  static constexpr status_type success = hipSuccess;
  static constexpr status_type not_ready = hipErrorNotReady;

  static status_type create(event_type& event) { return hipEventCreateWithFlags(&event, hipEventDisableTiming); }
  static status_type destroy(event_type event) { return hipEventDestroy(event); }
  static status_type record(event_type event, hipStream_t stream) { return hipEventRecord(event, stream); }
  static status_type query(event_type event) { return hipEventQuery(event); }
  static std::string describe(status_type code) { return std::string("HIP: ") + hipGetErrorString(code); }
};
#endif

/// The range of a kernel with one 64-bit index: `index_range<E>(exec, 0, count)`. Kokkos 3.4 deduces no arguments.
template <execution_space E>
using index_range = Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>;

/// A scan without its writing: the sum of what it counts.
template <class Kernel>
struct scan_total {
  Kernel kernel;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, std::int64_t& count) const { kernel(i, count, false); }
};

/// Runs a scan that counts, waits for it, and gives the sum. Before 3.7 Kokkos copies that of a device on the default
/// stream, for which a stream that was made with cudaStreamNonBlocking does not wait: there a pass more counts first.
template <execution_space E, class Kernel>
std::int64_t scan_with_total(char const* label, E const& exec, std::int64_t size, Kernel const& kernel) {
  std::int64_t count = 0;
  if constexpr (is_device<E> && KOKKOS_VERSION < 30700) {
    Kokkos::parallel_reduce(label, index_range<E>(exec, 0, size), scan_total<Kernel>{kernel}, count);
    Kokkos::parallel_scan(label, index_range<E>(exec, 0, size), kernel);
    fence(exec, label);
  } else {
    Kokkos::parallel_scan(label, index_range<E>(exec, 0, size), kernel, count);
  }
  return count;
}

template <class Array, class Value>
struct array_filling {
  Array to;
  Value value;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const { to[i] = value; }
};

/// Enqueues a kernel that sets `count` elements. `Array` is a pointer or a rank-1 view that the execution space
/// reaches.
template <execution_space E, class Array, class Value>
void fill_array(char const* label, E const& exec, Array const& to, std::int64_t count, Value value) {
  Kokkos::parallel_for(label, index_range<E>(exec, 0, count), array_filling<Array, Value>{to, value});
}

template <class From, class To>
struct array_copy {
  From from;
  To to;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    to[i] = static_cast<std::remove_reference_t<decltype(to[i])>>(from[i]);
  }
};

/// Enqueues a kernel that copies `count` elements. The target may have another element type and another layout. `From`
/// and `To` are pointers or rank-1 views that the execution space reaches.
template <execution_space E, class From, class To>
void copy_array(char const* label, E const& exec, From const& from, std::int64_t count, To const& to) {
  Kokkos::parallel_for(label, index_range<E>(exec, 0, count), array_copy<From, To>{from, to});
}

/// Names a part of a call for a profiler: Kokkos Tools show the work in its scope under `label`.
///
/// Costs one comparison if no tool is loaded. Regions of ranks in one process (`in_process`) interleave.
class profiling_region {
public:
  explicit profiling_region(char const* label) : active_(Kokkos::Profiling::profileLibraryLoaded()) {
    if (active_) {
      Kokkos::Profiling::pushRegion(std::string(label));
    }
  }

  profiling_region& operator=(profiling_region&&) = delete;

  ~profiling_region() {
    if (active_) {
      Kokkos::Profiling::popRegion();
    }
  }

private:
  bool active_;
};

template <gradient_value Value>
struct loss_subtraction {
  Value const* values;
  Value const* rounded;
  Value* losses;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const { losses[i] = values[i] - rounded[i]; }
};

/// Enqueues losses[i] = values[i] - rounded[i]. The arrays may be the same.
template <execution_space E, gradient_value Value>
void losses_of(E const& exec, Value const* values, Value const* rounded, std::int64_t count, Value* losses) {
  Kokkos::parallel_for("oktopk::losses_of", index_range<E>(exec, 0, count),
                       loss_subtraction<Value>{values, rounded, losses});
}

} // namespace oktopk::detail
