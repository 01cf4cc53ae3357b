// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/packed_subject.hpp"

#include <oktopk/algorithm/topk_dsa.hpp>

using namespace oktopk_tests;

namespace {

template <class Comm, class Format>
using algorithm = oktopk::topk_dsa<execution, Comm, Format>;

} // namespace

TEST_CASE("topk_dsa with packed messages: lossless as COO, lossy with every error returned") {
  check_packed<algorithm>();
}
