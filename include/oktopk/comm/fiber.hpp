// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/version.hpp>

#include <cxxabi.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define OKTOPK_DETAIL_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OKTOPK_DETAIL_FIBER_ASAN 1
#endif
#endif
#ifdef OKTOPK_DETAIL_FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifdef _LIBCPPABI_VERSION // libc++abi has this function of the C++ ABI, and does not declare it
namespace __cxxabiv1 {
struct __cxa_eh_globals;
extern "C" __cxa_eh_globals* __cxa_get_globals(); // NOLINT(bugprone-reserved-identifier)
} // namespace __cxxabiv1
#endif

namespace oktopk::detail {

/// A function on a stack of its own that can be left in the middle and resumed.
///
/// Ranks of one process are fibres rather than threads because all of them then launch their kernels from one thread:
/// Kokkos before 4.4 shares scratch between threads, and its OpenMP backend takes kernels from the initialising thread
/// alone. It also makes every run the same to the bit. The stack is reserved, not committed, and ends in a guard.
class fiber {
public:
  fiber(std::function<void()> body, std::size_t stack_bytes) : body_(std::move(body)), stack_(stack_bytes) {
    getcontext(&inside_);
    inside_.uc_stack.ss_sp = stack_.begin();
    inside_.uc_stack.ss_size = stack_.size();
    inside_.uc_link = nullptr;
    // makecontext passes ints only, so the new fibre finds itself through the thread.
    makecontext(&inside_, &fiber::enter, 0);
  }

  fiber& operator=(fiber&&) = delete;

  /// Runs the body until it leaves or ends; rethrows nothing.
  void resume() {
    current() = this;
    switch_to(inside_, outside_, stack_.begin(), stack_.size(), &outside_fake_stack_);
    current() = nullptr;
  }

  /// Called from inside: returns to the caller of `resume`, until the next `resume`.
  void leave() { switch_to(outside_, inside_, outside_stack_, outside_stack_size_, &inside_fake_stack_); }

  bool finished() const { return finished_; }

  std::exception_ptr failure() const { return failure_; }

  /// While it exists, a fibre of this thread that overflows its stack says so on standard error before the signal ends the
  /// program. Leaves a program alone that handles the signal itself.
  class overflow_notice {
  public:
    overflow_notice() {
      stack_t other{};
      if (sigaltstack(nullptr, &other) == 0 && (other.ss_flags & SS_DISABLE) != 0) { // no stack is left to say it on
        space_ = std::make_unique_for_overwrite<std::byte[]>(space_bytes);
        other.ss_sp = space_.get();
        other.ss_size = space_bytes;
        other.ss_flags = 0;
        sigaltstack(&other, nullptr);
      }
      struct sigaction now {};
      if (sigaction(SIGSEGV, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL) {
        now.sa_sigaction = &overflow_notice::say;
        now.sa_flags = SA_SIGINFO | SA_ONSTACK;
        installed_ = sigaction(SIGSEGV, &now, nullptr) == 0;
      }
    }

    ~overflow_notice() {
      struct sigaction now {};
      if (installed_ && sigaction(SIGSEGV, nullptr, &now) == 0 && now.sa_sigaction == &overflow_notice::say) {
        std::signal(SIGSEGV, SIG_DFL);
      }
      if (space_) {
        stack_t none{};
        none.ss_flags = SS_DISABLE;
        sigaltstack(&none, nullptr);
      }
    }

    overflow_notice& operator=(overflow_notice&&) = delete;

  private:
    static constexpr std::size_t space_bytes = std::size_t(64) << 10;

    // Calls only what a handler of signals may call. The access is tried again when it returns, and ends the program.
    static void say(int signal, siginfo_t* what, void*) {
      std::signal(signal, SIG_DFL);
      if (current() == nullptr || !current()->stack_.guards(what->si_addr)) {
        return;
      }
      std::array<char, 24> number{};
      auto const bytes = current()->stack_.size();
      auto* const end = std::to_chars(number.data(), number.data() + number.size(), bytes).ptr;
      auto const write_text = [](char const* text, std::size_t size) {
        [[maybe_unused]] auto const written = ::write(STDERR_FILENO, text, size);
      };
      constexpr std::string_view begin = "oktopk: a rank of in_process::run has overflowed its stack of ";
      constexpr std::string_view rest = " bytes; in_process::options::stack_bytes sets the size\n";
      write_text(begin.data(), begin.size());
      write_text(number.data(), static_cast<std::size_t>(end - number.data()));
      write_text(rest.data(), rest.size());
    }

    std::unique_ptr<std::byte[]> space_;
    bool installed_ = false;
  };

private:
  class stack_memory {
  public:
    explicit stack_memory(std::size_t bytes) {
      auto const page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
      if (bytes > std::numeric_limits<std::size_t>::max() / 4) {
        throw std::bad_alloc();
      }
      std::size_t const usable = (bytes + page - 1) / page * page;
      // As many addresses as the stack has, and no memory: a large array would begin beyond one page, in the stack of
      // another rank. One page where a limit counts addresses.
      struct rlimit most {};
      guard_ = getrlimit(RLIMIT_AS, &most) == 0 && most.rlim_cur == RLIM_INFINITY ? usable : page;
      bytes_ = usable + guard_;
      base_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (base_ == MAP_FAILED) {
        throw std::bad_alloc();
      }
      mprotect(base_, guard_, PROT_NONE);
#ifdef OKTOPK_DETAIL_FIBER_ASAN
      // An earlier stack at this address that was left by an exception may have left its marks.
      __asan_unpoison_memory_region(begin(), size());
#endif
    }
    ~stack_memory() { munmap(base_, bytes_); }
    stack_memory& operator=(stack_memory&&) = delete;

    void* begin() const { return static_cast<std::byte*>(base_) + guard_; }
    std::size_t size() const { return bytes_ - guard_; }

    /// True for an address in the guard.
    bool guards(void const* address) const {
      auto const offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base_);
      return offset < guard_;
    }

  private:
    std::size_t guard_ = 0;
    std::size_t bytes_ = 0;
    void* base_ = MAP_FAILED;
  };

  // The C++ runtime stores the exceptions that are being handled per thread; each fibre must keep its own.
  struct exception_globals {
    void* caught = nullptr;
    unsigned int uncaught = 0;
#if defined(__ARM_EABI__) && !defined(__USING_SJLJ_EXCEPTIONS__) && !defined(__ARM_DWARF_EH__)
    void* propagating = nullptr;
#endif
  };

  [[gnu::visibility("default")]] static fiber*& current() { // one for all libraries of a process
    static thread_local fiber* running = nullptr;
    return running;
  }

  static void enter() {
    fiber* const self = current();
#ifdef OKTOPK_DETAIL_FIBER_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &self->outside_stack_, &self->outside_stack_size_);
#endif
    try {
      self->body_();
    } catch (...) {
      self->failure_ = std::current_exception();
    }
    self->finished_ = true;
    self->switch_to(self->outside_, self->inside_, self->outside_stack_, self->outside_stack_size_, nullptr);
  }

  void switch_to(ucontext_t& there, ucontext_t& here, [[maybe_unused]] void const* stack,
                 [[maybe_unused]] std::size_t stack_size, [[maybe_unused]] void** fake_stack) {
    auto* const globals = reinterpret_cast<exception_globals*>(abi::__cxa_get_globals());
    std::swap(*globals, other_globals_);
#ifdef OKTOPK_DETAIL_FIBER_ASAN
    __sanitizer_start_switch_fiber(fake_stack, stack, stack_size);
#endif
    swapcontext(&here, &there);
#ifdef OKTOPK_DETAIL_FIBER_ASAN
    bool const is_back_inside = &here == &inside_;
    __sanitizer_finish_switch_fiber(*fake_stack, is_back_inside ? &outside_stack_ : nullptr,
                                    is_back_inside ? &outside_stack_size_ : nullptr);
#endif
  }

  std::function<void()> body_;
  stack_memory stack_;
  ucontext_t inside_{};
  ucontext_t outside_{};
  exception_globals other_globals_;
  void* inside_fake_stack_ = nullptr;
  void* outside_fake_stack_ = nullptr;
  void const* outside_stack_ = nullptr;
  std::size_t outside_stack_size_ = 0;
  bool finished_ = false;
  std::exception_ptr failure_;
};

} // namespace oktopk::detail
