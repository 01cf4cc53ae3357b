// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dense/suite.hpp"

#include <oktopk/dense/native_allreduce.hpp>

using namespace oktopk_tests;
using namespace oktopk_tests::dense;

namespace {

struct native_subject {
  template <class Comm, class Value>
  using algorithm = oktopk::native_allreduce<execution, Comm, Value>;
};

} // namespace

TEST_CASE("the communicator's own allreduce reduces by sum, maximum and minimum") {
  static_assert(
      oktopk::detail::dense_reduction<native_subject::algorithm<counting_any, float>, execution, counting_any, float>);
  CHECK(wrong_results<native_subject, float>() == "");
  CHECK(wrong_results<native_subject, double>() == "");
  CHECK(special_values_lost<native_subject>() == "");
  CHECK(wrong_when_staged<native_subject, float>() == "");
  CHECK(native_subject::algorithm<counting_any, float>::name() == "native");
}
