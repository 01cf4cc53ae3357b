// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The main program of every test executable, for Catch2 2 and 3, whatever its ranks are (world.cpp): to compile Catch2 takes
// long.

#define CATCH_CONFIG_RUNNER
#include "support/catch.hpp"
#include "support/watchdog.hpp"
#include "support/world.hpp"

#include <Kokkos_Core.hpp>

#include <iostream>
#include <memory>
#include <sstream>

namespace {

std::unique_ptr<oktopk_tests::watchdog> the_watchdog;

#if CATCH_VERSION_MAJOR >= 3
using listener_base = Catch::EventListenerBase;
#else
using listener_base = Catch::TestEventListenerBase;
#endif

// The first section of a test case is the test case itself.
class watched : public listener_base {
public:
  using listener_base::listener_base;

  void sectionStarting(Catch::SectionInfo const& section) override {
    listener_base::sectionStarting(section);
    the_watchdog->enter(section.name);
  }

  void sectionEnded(Catch::SectionStats const& section) override {
    the_watchdog->leave();
    listener_base::sectionEnded(section);
  }
};

CATCH_REGISTER_LISTENER(watched)

// All ranks run all test cases; rank 0 reports, and another rank's report is shown only if it has something to say.
class processes {
public:
  processes(int& argc, char**& argv) : world_(argc, argv) {
    if (world_.rank != 0) {
      stdout_ = std::cout.rdbuf(held_back_.rdbuf());
    }
  }

  processes(processes const&) = delete;
  processes& operator=(processes const&) = delete;

  ~processes() {
    if (world_.rank != 0) {
      std::cout.rdbuf(stdout_);
    }
  }

  std::string const& name() const { return world_.name; }

  void show_held_back() const {
    if (world_.rank != 0) {
      std::cerr << name() << ":\n" << held_back_.str() << std::flush;
    }
  }

private:
  oktopk_tests::world const world_;
  std::ostringstream held_back_;
  std::streambuf* stdout_ = nullptr;
};

} // namespace

int main(int argc, char** argv) {
  processes const ours(argc, argv);
  Kokkos::ScopeGuard const kokkos(argc, argv);
  the_watchdog = std::make_unique<oktopk_tests::watchdog>(ours.name(), [&ours] { ours.show_held_back(); });
  int const failures = Catch::Session().run(argc, argv);
  the_watchdog.reset();
  if (failures != 0) {
    ours.show_held_back();
  }
  return std::min(failures, 255);
}
