// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/collectives.hpp>
#include <oktopk/comm/in_process.hpp>

#include <Kokkos_Core.hpp>

namespace oktopk_tests {

/// One thing that Kokkos did, as it tells its tools.
struct kokkos_event {
  enum kind { kernel, allocation, deallocation, deep_copy, fence };

  kind what = kernel;
  std::string label;
  std::uint32_t device = 0; ///< of a kernel or fence: space and instance
  std::uint64_t bytes = 0;  ///< of a deep copy
};

inline std::string to_string(kokkos_event const& event) {
  constexpr std::string_view names[] = {"kernel", "allocation", "deallocation", "deep copy", "fence"};
  return std::string(names[event.what]) + " \"" + event.label + "\"";
}

/// Writes down what Kokkos does while it lives, through the callbacks of Kokkos Tools; one at a time.
///
/// Kokkos before 4 tells nothing of fences, except of those within a deep copy by telling of the copy. The global
/// fences that Kokkos adds only because a tool listens are left out.
class kokkos_events {
public:
  kokkos_events() : others_(Kokkos::Tools::Experimental::get_callbacks()) {
    using namespace Kokkos::Tools::Experimental;
    log().clear();
    set_begin_parallel_for_callback(begin_kernel);
    set_begin_parallel_reduce_callback(begin_kernel);
    set_begin_parallel_scan_callback(begin_kernel);
    set_allocate_data_callback(allocated);
    set_deallocate_data_callback(deallocated);
    set_begin_deep_copy_callback(begin_deep_copy);
    set_begin_fence_callback(begin_fence);
  }

  kokkos_events(kokkos_events const&) = delete;
  kokkos_events& operator=(kokkos_events const&) = delete;

  ~kokkos_events() { Kokkos::Tools::Experimental::set_callbacks(others_); }

  /// What happened since the last call.
  std::vector<kokkos_event> take() {
    std::vector<kokkos_event> taken;
    taken.swap(log());
    return taken;
  }

private:
  using space_handle = Kokkos::Profiling::SpaceHandle;

  static std::vector<kokkos_event>& log() {
    static std::vector<kokkos_event> events;
    return events;
  }

  static void begin_kernel(char const* label, std::uint32_t device, std::uint64_t*) {
    log().push_back({kokkos_event::kernel, label, device, 0});
  }

  static void allocated(space_handle, char const* label, void const*, std::uint64_t bytes) {
    if (!is_nothing(label, bytes)) {
      log().push_back({kokkos_event::allocation, label, 0, 0});
    }
  }

  static void deallocated(space_handle, char const* label, void const*, std::uint64_t bytes) {
    if (!is_nothing(label, bytes)) {
      log().push_back({kokkos_event::deallocation, label, 0, 0});
    }
  }

  // Before a kernel of teams Kokkos 4.6 tells of no bytes for them in CUDA's memory, and takes none.
  static bool is_nothing(std::string_view label, std::uint64_t bytes) {
    return bytes == 0 && label.find("TeamScratchMemory") != std::string_view::npos;
  }

  static void begin_deep_copy(space_handle, char const* to, void const*, space_handle, char const*, void const*,
                              std::uint64_t bytes) {
    log().push_back({kokkos_event::deep_copy, to, 0, bytes});
  }

  static void begin_fence(char const* label, std::uint32_t device, std::uint64_t*) {
    if (std::string_view(label).find("Profile Tool Fence") == std::string_view::npos) {
      log().push_back({kokkos_event::fence, label, device, 0});
    }
  }

  Kokkos::Tools::Experimental::EventSet others_;
};

/// A watcher of all ranks of a world, who run in one thread: it begins, tells and ends when all of them have come to
/// that, so that nobody does anything else meanwhile. Collective.
struct watched_together {
  oktopk::in_process_communicator comm;
  std::unique_ptr<kokkos_events>& watcher;

  void begin() const {
    together([&] { watcher = std::make_unique<kokkos_events>(); });
  }

  /// What has happened since the last call.
  template <class Visit>
  void take(Visit const& visit) const {
    together([&] {
      for (kokkos_event const& event : watcher->take()) {
        visit(event);
      }
    });
  }

  template <class Visit>
  void end(Visit const& visit) const {
    take(visit);
    together([&] { watcher.reset(); });
  }

private:
  template <class Act>
  void together(Act const& act) const {
    oktopk::in_process_communicator everybody = comm;
    oktopk::detail::barrier_all_to_one(everybody, 0);
    if (comm.rank() == 0) {
      act();
    }
    oktopk::detail::barrier_all_to_one(everybody, 0);
  }
};

} // namespace oktopk_tests
