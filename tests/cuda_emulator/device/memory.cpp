// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "memory.hpp"

#include "counters.hpp"
#include "errors.hpp"
#include "settings.hpp"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace cuda_emulator {

namespace {

constexpr u64 page = 4096;
constexpr u8 fill = 0xA5;
struct sigaction previous_action;

// Says why the program ends, and lets it end as it would have. A test framework raises the signal once more.
void on_segmentation_fault(int, siginfo_t* info, void*) {
  static int raised = 0;
  if (info->si_code <= 0 && raised++ == 0) {
    return;
  }
  if (device_memory::owns(info->si_addr)) {
    constexpr char text[] = "\n*** CUDA emulator: the host touched memory of the device\n";
    [[maybe_unused]] auto const written = write(STDERR_FILENO, text, sizeof text - 1);
  }
  sigaction(SIGSEGV, &previous_action, nullptr);
}

u8* mapped(u64 bytes, int rights, int flags, int file, u64 at = 0) {
  void* const place = mmap(reinterpret_cast<void*>(at), bytes, rights, flags | MAP_NORESERVE, file, 0);
  if (place == MAP_FAILED) {
    stop("cannot reserve addresses for the device's memory");
  }
  return static_cast<u8*>(place);
}

} // namespace

bool const device_memory::ready_ = prepare();

bool device_memory::prepare() {
  constexpr u64 wanted = 0x100000000000;
  constexpr int own = MAP_PRIVATE | MAP_ANONYMOUS;
  file_ = memfd_create("cuda_emulator", 0);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(size_)) != 0) {
    stop("cannot make the device's memory");
  }
  begin_ = reinterpret_cast<u64>(mapped(size_, PROT_NONE, MAP_SHARED | MAP_FIXED_NOREPLACE, file_, wanted));
  bytes_ = mapped(size_, PROT_READ | PROT_WRITE, MAP_SHARED, file_);
  shadow_ = mapped(size_ / 16, PROT_READ | PROT_WRITE, own, -1);
  if (settings::uninitialised_reads) {
    written_ = mapped(size_, PROT_READ | PROT_WRITE, own, -1);
  }
  struct sigaction action = {};
  action.sa_sigaction = on_segmentation_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, &previous_action);
  return true;
}

u64 device_memory::allocate(u64 bytes) {
  constexpr u64 apart = 256;
  u64 const place = (end_ + apart - 1) / apart * apart;
  if (place + apart > size_ || bytes > size_ - place - apart) {
    return 0;
  }
  end_ = place + bytes + apart; // never next to another one
  std::memset(shadow_ + place / 16, 16, bytes / 16);
  if (bytes % 16 != 0) {
    shadow_[(place + bytes) / 16] = static_cast<u8>(bytes % 16);
  }
  std::memset(bytes_ + place, fill, bytes);
  allocations_[begin_ + place] = bytes;
  ++counters.allocations;
  return begin_ + place;
}

void device_memory::release(u64 address) {
  auto const found = allocations_.find(address);
  if (found == allocations_.end()) {
    stop("free of %#lx, where no allocation begins", address);
  }
  u64 const place = address - begin_;
  u64 const end = place + found->second;
  std::memset(shadow_ + place / 16, 0, (found->second + 15) / 16);
  allocations_.erase(found);
  u64 const first_page = (place + page - 1) / page * page;
  if (first_page < end / page * page) {
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first_page),
              static_cast<off_t>(end / page * page - first_page));
  }
}

bool device_memory::lies_in(std::map<u64, u64> const& ranges, u64 address, u64 bytes) {
  auto after = ranges.upper_bound(address);
  if (after == ranges.begin()) {
    return false;
  }
  --after;
  u64 const place = address - after->first;
  return place <= after->second && bytes <= after->second - place;
}

u8* device_memory::range(void const* pointer, u64 bytes, char const* use) {
  u64 const address = reinterpret_cast<u64>(pointer);
  if (!owns(address)) {
    return const_cast<u8*>(static_cast<u8 const*>(pointer));
  }
  if (bytes != 0 && !lies_in(allocations_, address, bytes)) {
    stop("%s of %lu bytes at %p, which are not of one allocation", use, bytes, pointer);
  }
  return bytes_at(address);
}

void device_memory::mark_written(u64 address, u64 bytes) {
  if (written_ != nullptr && owns(address)) {
    std::memset(written_ + (address - begin_), 1, bytes);
  }
}

bool device_memory::was_written(u64 address, u64 bytes) {
  u8 const* const marks = written_ + (address - begin_);
  return written_ == nullptr || !owns(address) || std::find(marks, marks + bytes, u8(0)) == marks + bytes;
}

void device_memory::copy_marks(u64 to, u64 from, u64 bytes) {
  if (written_ != nullptr) {
    std::memmove(written_ + (to - begin_), written_ + (from - begin_), bytes);
  }
}

} // namespace cuda_emulator
