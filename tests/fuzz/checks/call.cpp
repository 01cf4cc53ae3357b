// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/checks/checks.hpp"

#include <cstdio>

namespace oktopk_fuzz {

std::string in_words(double x) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.17g", x);
  return text;
}

template <class Value>
verdict check_call(seen_call<Value> const& seen, bool& threw) {
  if (auto wrong = check_errors(seen, threw)) {
    return wrong;
  }
  if (threw) {
    return check_nothing_moved(seen);
  }
  if (auto wrong = check_form(seen)) {
    return wrong;
  }
  std::vector<entries<Value>> selections;
  bool const dense = seen.about.kind == family::dense;
  verdict wrong = dense ? check_dense(seen) : check_local_selection(seen, selections);
  if (!wrong && !dense) {
    wrong = check_update(seen, selections);
  }
  if (!wrong) {
    wrong = check_conservation(seen);
  }
  if (!wrong) {
    wrong = check_volume(seen, selections);
  }
  if (!wrong && seen.what.calls_made != way::bare) {
    wrong = check_step(seen);
  }
  return wrong;
}

template verdict check_call(seen_call<float> const&, bool&);
template verdict check_call(seen_call<double> const&, bool&);

} // namespace oktopk_fuzz
