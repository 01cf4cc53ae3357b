// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/set_if_there.hpp"

// What nearly every test needs: a file that includes this one, directly or by another, need not name these again.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

// An exception that passes an assertion ends the test case, with its message: a fifth less to compile than where each
// assertion catches it.
#define CATCH_CONFIG_FAST_COMPILE

// Catch2 2 is one header, Catch2 3 many; the tests keep to what both have, or have here under the names of 3.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx; // a name of all files in 2
#else
#include <catch2/catch.hpp>
namespace Catch::Matchers {
inline auto ContainsSubstring(std::string const& text) {
  return Contains(text); // of a range in 3
}
} // namespace Catch::Matchers
#endif

#if CATCH_VERSION_MAJOR >= 3
using invoker_pointer = Catch::Detail::unique_ptr<Catch::ITestInvoker>;
#else
using invoker_pointer = Catch::ITestInvoker*;
#endif

/// A test case whose name is made as the program starts, before `main`.
struct named_test_case : Catch::ITestInvoker {
  named_test_case(void (*does)(std::size_t), std::size_t of) : body(does), number(of) {}
  void invoke() const override { body(number); }

  void (*body)(std::size_t);
  std::size_t number;
};
inline void add_test_case(std::string const& name, void (*body)(std::size_t), std::size_t number) {
  Catch::AutoReg const added(invoker_pointer(new named_test_case(body, number)), CATCH_INTERNAL_LINEINFO, {}, {name});
}

/// A test case all of whose body runs on so many ranks of this process, each with its communicator under this name.
#define TEST_CASE_ON(comm, ranks, ...) OKTOPK_TESTS_ON(OKTOPK_TESTS_BODY_AT(__COUNTER__), comm, ranks, __VA_ARGS__)
#define OKTOPK_TESTS_BODY_AT(number) OKTOPK_TESTS_JOINED(body_of_case_, number)
#define OKTOPK_TESTS_JOINED(a, b) a##b
#define OKTOPK_TESTS_ON(body, comm, ranks, ...)                                                                        \
  static void body(oktopk::in_process_communicator);                                                                   \
  TEST_CASE(__VA_ARGS__) {                                                                                             \
    oktopk::in_process::run(ranks, body);                                                                              \
  }                                                                                                                    \
  static void body(oktopk::in_process_communicator comm)
