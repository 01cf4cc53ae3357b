// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Every header includes this one before it has code of its own. The file that does not exist ends the compilation: it would
// go on, and report thousands of errors of other places.
#if __cplusplus < 202002L
#error "oktopk needs C++20: compile with -std=c++20, or a newer standard"
#include <needs_cxx20>
#endif

#include <version> // _GLIBCXX_USE_CXX11_ABI

/// The version of the library. `OKTOPK_VERSION` is a number to compare with: 10000 times the major, 100 times the
/// minor, plus the patch number, so that `#if OKTOPK_VERSION >= 200` holds from 0.2.0 on.
#define OKTOPK_VERSION_MAJOR 0
#define OKTOPK_VERSION_MINOR 2
#define OKTOPK_VERSION_PATCH 0
#define OKTOPK_VERSION (OKTOPK_VERSION_MAJOR * 10000 + OKTOPK_VERSION_MINOR * 100 + OKTOPK_VERSION_PATCH)
#define OKTOPK_VERSION_STRING "0.2.0"

namespace oktopk {

namespace detail {

// What of the standard library changes the layout of the types between a program and `oktopk::catalogue`.
struct usual_containers;
struct debug_containers; ///< -D_GLIBCXX_DEBUG
struct usual_strings;
struct old_strings; ///< -D_GLIBCXX_USE_CXX11_ABI=0
#ifdef _GLIBCXX_DEBUG
using containers_in_use = debug_containers;
#else
using containers_in_use = usual_containers;
#endif
#if defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
using strings_in_use = old_strings;
#else
using strings_in_use = usual_strings;
#endif

/// The last template argument of what `oktopk::catalogue` has compiled. So these symbols have in their names the version
/// of oktopk and of Kokkos, and the kind of containers: a program whose headers have another one does not link, instead of
/// a crash, and the linker names both.
inline namespace v0_2 {
template <class Containers, class Strings, int Kokkos>
struct compiled_with;
}

} // namespace detail

/// The version of the headers in use, for example "0.2.0". The text lives as long as the program.
constexpr char const* version() noexcept {
  return OKTOPK_VERSION_STRING;
}

} // namespace oktopk
