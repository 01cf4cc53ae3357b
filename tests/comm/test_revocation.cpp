// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A communicator that has broken down: the first reason stays, every later call hears it, and sentences say what a rank
// waited for.

#include "support/catch.hpp"
#include "support/caught.hpp"

#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/revocation.hpp>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::phase;
using oktopk::detail::revocation;

TEST_CASE("a communicator in order lets calls pass, and the first reason of a breakdown stays, with its fault") {
  revocation seen;
  CHECK((!seen && seen.code() == fault::none && seen.reason().empty()));
  CHECK_NOTHROW(seen.throw_if_happened());
  seen.note(oktopk::error(fault::timed_out, "rank 3 has not answered"));
  seen.note(oktopk::error(fault::damaged_message, "a bit fell over"));
  CHECK((static_cast<bool>(seen) && seen.code() == fault::timed_out && seen.reason() == "rank 3 has not answered"));
  for (int call = 0; call < 2; ++call) {
    CHECK(outcome_of([&] { seen.throw_if_happened(); }) ==
          outcome{fault::timed_out, "oktopk: the communicator cannot be used any more: rank 3 has not answered"});
  }
  revocation without_sentence;
  without_sentence.note(oktopk::error(fault::communication, {}));
  CHECK(outcome_of([&] { without_sentence.throw_if_happened(); }).code == fault::communication);
  without_sentence.note(oktopk::error(fault::abandoned, "rank 1 has left"));
  CHECK((static_cast<bool>(without_sentence) && without_sentence.reason().empty()));
}

TEST_CASE("an operation is named with the number of its call, where it has one") {
  oktopk::detail::operation during;
  CHECK(during.text().empty());
  during.begin("ok_topk", 12);
  CHECK(during.text() == "ok_topk, call 12");
  during.begin("agreement", -1);
  CHECK(during.text() == "agreement");
}

TEST_CASE("a wait in vain says for whom, in which phase, and what is complete") {
  oktopk::detail::wait_report report;
  report.add(false, true, 1, phase::gather);
  report.add(true, true, 2, phase::reduce);
  report.add(false, false, 3, phase::gather);
  report.add(true, false, 4, phase::reduce);
  CHECK(report.open() == "to receive from rank 1 (gather) and to send to rank 3 (gather)");
  oktopk::detail::operation const during{"ok_topk", 5};
  auto const late = report.timed_out(0, during, std::chrono::milliseconds(1500));
  CHECK(late.code() == oktopk::fault::timed_out);
  CHECK(late.sentence() == "rank 0 has waited to receive from rank 1 (gather) and to send to rank 3 (gather) in "
                           "ok_topk, call 5 for more than 1.500000 s, the time limit; complete: from rank 2 (reduce), "
                           "to rank 4 (reduce)");
  CHECK(oktopk::detail::wait_report("for everybody").timed_out(0, {}, std::chrono::seconds(1)).sentence() ==
        "rank 0 has waited for everybody for more than 1.000000 s, the time limit; complete: nothing");
  oktopk::detail::wait_report late_but_complete;
  late_but_complete.add(true, true, 1, phase::gather);
  CHECK(late_but_complete.timed_out(0, during, std::chrono::nanoseconds(1)).sentence() ==
        "rank 0 has waited in ok_topk, call 5 for more than 1 ns, the time limit; complete: from rank 1 (gather)");
}

TEST_CASE("who hears that another rank has given up says who, what this rank was in, and why") {
  auto const heard = oktopk::detail::abandoned_by(3, {"gtopk", 2}, "a bit fell over");
  CHECK(heard.code() == oktopk::fault::abandoned);
  CHECK(heard.sentence() == "rank 3 has given up (this rank was in gtopk, call 2): a bit fell over");
  CHECK(oktopk::detail::abandoned_by(3, {}, "a bit").sentence() == "rank 3 has given up: a bit");
}
