// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Where there is no device, the engine of one says so, each time, in an error that a program can handle. Kokkos would end the program.

#include <oktopk/engine.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

int failures = 0;

void expect(bool holds, char const* what) {
  if (!holds) {
    std::fprintf(stderr, "%s: %s\n", what, oktopk_engine_last_error());
    failures += 1;
  }
}

bool says_that_there_is_none(std::int32_t code) {
  return code == OKTOPK_ENGINE_BAD_STATE &&
         std::strstr(oktopk_engine_last_error(), "there is no device for this engine, of ") != nullptr;
}

} // namespace

int main() {
  expect(std::strcmp(oktopk_engine_backend(), "host") != 0, "the name of the engine");
  expect(says_that_there_is_none(oktopk_engine_initialize_on(0)), "a device by its number");
  expect(says_that_there_is_none(oktopk_engine_initialize_on(7)), "another one");
  expect(says_that_there_is_none(oktopk_engine_initialize()), "any device");
  oktopk_engine_group_options ranks;
  oktopk_engine_group_defaults(&ranks);
  oktopk_engine_group* group = nullptr;
  expect(says_that_there_is_none(oktopk_engine_group_make(&ranks, &group)) && group == nullptr, "a group");
  expect(oktopk_engine_finalize() == OKTOPK_ENGINE_OK, "the end");
  std::printf("%s\n", oktopk_engine_last_error());
  return failures;
}
