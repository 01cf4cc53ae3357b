// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/policies.hpp"

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/algorithm/paper_ok_topk.hpp>
#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/select/reused_threshold.hpp>
#include <oktopk/sgd.hpp>

#include <sstream>

using namespace oktopk_tests;
using oktopk::fault;

namespace {

template <class Comm>
using exact = oktopk::ok_topk<execution, Comm>;
template <class Comm>
using reusing = oktopk::ok_topk<execution, Comm, reused_policies>;
template <class Comm>
using paper = oktopk::paper_ok_topk<execution, Comm>;
template <class Comm>
using topk_a = oktopk::topk_a<execution, Comm, policies_of<oktopk::coo<>, oktopk::reused_threshold>>;

} // namespace

TEST_CASE("a checkpoint of one scheme is not read as that of another") {
  using comm = oktopk::in_process_communicator;
  oktopk::in_process::run(1, [](comm alone) {
    exact<comm> sparse(execution(), alone, {.length = 100, .k = 10});
    sparse(to_view(std::vector<float>(100, 1.0F)));
    std::ostringstream out;
    oktopk::save(out, sparse.state());
    auto const reading = [&](auto const& which) {
      using other = std::remove_cvref_t<decltype(which)>;
      return outcome_of([&] {
        std::istringstream in(out.str());
        oktopk::load<other>(in);
      });
    };
    CHECK(reading(exact<comm>::state_type()).code == fault::none);
    std::string damaged = out.str();
    damaged[damaged.find("ok_topk (")] = '\x1b';
    auto const said = outcome_of([&] {
      std::istringstream in(damaged);
      oktopk::load<exact<comm>::state_type>(in);
    });
    CHECK(said.text.find("the checkpoint holds a state of ?k_topk (local exact") != std::string::npos);
    for (auto const& heard :
         {reading(reusing<comm>::state_type()), reading(paper<comm>::state_type()), reading(topk_a<comm>::state_type()),
          reading(oktopk::dense<execution, comm>::state_type()), reading(oktopk::sgd<exact<comm>>::state_type()),
          reading(oktopk::ok_topk<execution, comm, oktopk::with_format<oktopk::coo<double>>>::state_type())}) {
      CHECK(heard.code == fault::bad_file);
      CHECK(heard.text.find("the checkpoint holds a state of ok_topk (local exact, global exact, 32-bit values)") !=
            std::string::npos);
    }
  });
}
