// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

#include "../ptx/types.hpp"

#include <map>

namespace cuda_emulator {

// The memory of the device: one file in memory, mapped twice. At the addresses that programs see nobody has rights, so
// that a host that touches them is caught; the emulator uses the other mapping. A shadow knows to the byte what is
// allocated. Addresses are never used again, so that a use after free is seen. New memory holds 0xA5 in every byte.
// There is one device, so all of it is static.
class device_memory {
public:
  static u64 allocate(u64 bytes); // 0 where there is no room
  static void release(u64 address);

  static bool owns(u64 address) { return address - begin_ < size_; }
  static bool owns(void const* pointer) { return owns(reinterpret_cast<u64>(pointer)); }

  // Whether these bytes, within one line of 16, are allocated.
  static bool allocated(u64 address, u32 bytes) {
    u64 const place = address - begin_;
    return place < size_ && (place & 15) + bytes <= shadow_[place >> 4];
  }

  static u8* bytes_at(u64 address) { return bytes_ + (address - begin_); }

  // The bytes of one allocation; for host memory the pointer itself. Ends the program where they are not of one.
  static u8* range(void const* pointer, u64 bytes, char const* use);

  // With settings::uninitialised_reads; else everything counts as written.
  static bool knows_written() { return written_ != nullptr; }
  static void mark_written(u64 address, u64 bytes);
  static bool was_written(u64 address, u64 bytes);
  static void copy_marks(u64 to, u64 from, u64 bytes);

  static inline std::map<u64, u64> pinned; // page-locked memory of the host, which kernels may use
  static bool kernels_may_use(u64 address, u64 bytes) { return lies_in(pinned, address, bytes); }

private:
  static bool prepare();
  static bool lies_in(std::map<u64, u64> const& ranges, u64 address, u64 bytes);

  static inline u64 begin_ = 0;
  static inline u64 const size_ = u64(1) << 37;
  static inline u64 end_ = 0; // of what was ever allocated
  static inline u8* bytes_ = nullptr;
  static inline u8* shadow_ = nullptr;  // for every 16 bytes, how many are allocated
  static inline u8* written_ = nullptr; // for every byte
  static inline int file_ = -1;
  static inline std::map<u64, u64> allocations_;
  static bool const ready_;
};

} // namespace cuda_emulator
