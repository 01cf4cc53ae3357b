// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "processes.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace select_bench {

struct processes::shared {
  std::atomic<int> here{0};
  std::atomic<unsigned> meetings{0};
  std::atomic<bool> broken{false};
};

processes::processes(int count) : count_(count) {
  if (count_ == 1) {
    return;
  }
  void* const memory = mmap(nullptr, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::runtime_error("there is no memory to share between processes");
  }
  shared_ = new (memory) shared;
  for (int number = 1; number < count_; ++number) {
    pid_t const child = fork();
    if (child < 0) {
      shared_->broken = true;
      throw std::runtime_error("the system starts no more than " + std::to_string(number) + " processes");
    }
    if (child == 0) {
      number_ = number;
      return;
    }
  }
}

// One that ends before the last meeting leaves nobody waiting.
processes::~processes() {
  if (shared_ != nullptr) {
    shared_->broken = true;
    munmap(shared_, sizeof(shared));
  }
}

void processes::meet() {
  if (count_ == 1) {
    return;
  }
  unsigned const meeting = shared_->meetings;
  if (++shared_->here == count_) {
    shared_->here = 0;
    ++shared_->meetings;
    return;
  }
  while (shared_->meetings == meeting) {
    if (shared_->broken) {
      std::fputs("select_bench: another process has ended early\n", stderr);
      std::_Exit(1);
    }
    sched_yield();
  }
}

bool processes::join() {
  bool well = true;
  for (int number = 1; number < count_; ++number) {
    int status = 0;
    well = wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 && well;
  }
  return well;
}

} // namespace select_bench
