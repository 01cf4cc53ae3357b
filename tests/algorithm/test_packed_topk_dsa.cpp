// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/packed_subject.hpp"

#include <oktopk/algorithm/topk_dsa.hpp>

using namespace oktopk_tests;

// A name of its own: g++ gives what is made of an alias template the same symbols in every file, unnamed namespace or
// not.
template <class Comm, class Format>
using topk_dsa_of = oktopk::topk_dsa<execution, Comm, oktopk::with_format<Format>>;

TEST_CASE("topk_dsa with packed messages: lossless as COO, lossy with every error returned") {
  check_packed<topk_dsa_of>();
}
