// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <oktopk/catalogue/option_reader.hpp>

#include "support/catch.hpp"
#include "support/caught.hpp"

#include <optional>

namespace {

using oktopk::detail::allreduce_request;
using oktopk::detail::split_list;
using oktopk_tests::outcome_of;
using items = std::vector<std::string>;

oktopk_tests::outcome parsed(std::string const& text) {
  return outcome_of([&] { allreduce_request::parse(text); });
}

enum class colour { red, green };

/// Reads options from a text, as a policy does.
struct options_read {
  int count = 3;
  double share = 0.5;
  bool flag = true;
  colour paint = colour::red;
  std::optional<int> limit = 8;
  std::string chosen;
  int depth = 1;

  explicit options_read(std::string const& text) {
    oktopk::detail::option_reader in(allreduce_request::parse(text));
    read(in);
    in.finish([this](oktopk::detail::option_reader& all) { read(all); });
  }

  void read(oktopk::detail::option_reader& in) {
    in("count", count, "how many");
    in("share", share, "how much");
    in("flag", flag, "whether");
    constexpr std::array<std::pair<std::string_view, colour>, 2> colours{
        {{"red", colour::red}, {"green", colour::green}}};
    in("paint", paint, colours, "which");
    struct named {
      std::string_view name;
    };
    in.choose("policy", std::tuple{named{"one"}, named{"two"}}, "one", "which", [&](named const& each) {
      chosen = each.name;
      if (chosen == "two") {
        in("depth", depth, "how deep");
      }
      in("limit", limit, "how many at most");
    });
  }
};

oktopk_tests::outcome refused(std::string const& text) {
  return outcome_of([&] { options_read{text}; });
}

} // namespace

TEST_CASE("a list is split at its commas outside of parentheses") {
  CHECK(split_list("a, b(c=1, d=2) ,e") == items{"a", "b(c=1, d=2)", "e"});
  CHECK(split_list("a") == items{"a"});
  CHECK(split_list("  ").empty());
  CHECK(split_list("a,,b,") == items{"a", "", "b", ""});
}

TEST_CASE("a request is a name and its options, with blanks anywhere") {
  auto const request = allreduce_request::parse("  ok_topk ( local_select = reused ,tau=32 )\n");
  CHECK(request.name == "ok_topk");
  CHECK(request.options == std::vector<std::pair<std::string, std::string>>{{"local_select", "reused"}, {"tau", "32"}});
  CHECK(allreduce_request::parse("ring").options.empty());
  CHECK(allreduce_request::parse("ring()").options.empty());
}

TEST_CASE("a request of another form is refused, with the form that it should have") {
  for (std::string const text :
       {"", " ", "()", "(tau=3)", "ok topk", "ok-topk", "ok_topk(", "ok_topk)", "ok_topk(tau=3", "ok_topk(tau=3))",
        "ok_topk((tau=3))", "ok_topk(tau=3) x", "ok_topk(tau)", "ok_topk(=3)", "ok_topk(tau=)", "ok_topk(tau=3,)",
        "ok_topk(tau=3,tau=3)", "ok_topk(t u=3)"}) {
    auto const said = parsed(text);
    INFO(text << ": " << said);
    CHECK(oktopk_tests::unlike(said, oktopk::fault::option_out_of_range, "\"" + text + "\"") == "");
    CHECK(said.says("NAME(KEY=VALUE, ...)"));
  }
}

TEST_CASE("options take the values of the request and keep their own otherwise") {
  options_read const own("x");
  CHECK((own.count == 3 && own.share == 0.5 && own.flag && own.paint == colour::red && own.chosen == "one"));
  CHECK(options_read("x(limit=none)").limit == options_read("x").limit);
  CHECK((own.limit == 8 && options_read("x(limit=4)").limit == 4 && options_read("x(policy=two, depth=3)").depth == 3));
  options_read const given("x(policy=two, paint=green, flag=false, share=1e-3, count=-7)");
  CHECK((given.count == -7 && given.share == 1e-3 && !given.flag && given.paint == colour::green));
  CHECK(given.chosen == "two");
}

TEST_CASE("a wrong key or value is refused, with the right ones") {
  CHECK(refused("x(cuont=3)").says("x has no option \"cuont\" here; it has count, share, flag, paint, policy, limit"));
  CHECK(refused("x(depth=3)").says("x: depth goes with policy=two"));
  CHECK(refused("x(limit=3.5)").says("x: limit = \"3.5\" is no integer of 32 bits"));
  CHECK(refused("x(count=3.5)").says("x: count = \"3.5\" is no integer of 32 bits"));
  CHECK(refused("x(count=3000000000)").says("is no integer of 32 bits"));
  CHECK(refused("x(count=ten)").says("is no integer of 32 bits"));
  CHECK(refused("x(share=half)").says("share = \"half\" is no number"));
  CHECK(refused("x(flag=maybe)").says("flag = \"maybe\" is unknown; there are true, false"));
  CHECK(refused("x(paint=blue)").says("paint = \"blue\" is unknown; there are red, green"));
  CHECK(refused("x(policy=three)").says("policy = \"three\" is unknown; there are one, two"));
  CHECK(refused("x(count=1)").code == oktopk::fault::none);
}
