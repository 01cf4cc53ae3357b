// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Every algorithm of the catalogue gives what its type gives, to the bit and to the byte; wrong texts are refused.
#include <oktopk/catalogue/algorithms.hpp>
#ifdef OKTOPK_TESTS_WITH_ZFP
#include <oktopk/catalogue/with_zfp.hpp>
#endif

#include "algorithm/record.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/policies.hpp"

#include <fstream>
#include <iterator>
#include <set>

namespace {

using namespace oktopk;
using namespace oktopk_tests;
using E = execution;
using C = counting;
using any = any_allreduce<E>;

constexpr std::int64_t length = 700;
constexpr std::int64_t k = 35;
constexpr int iterations = 5;

any made(C const& comm, std::string const& text) {
  gradient_size const size{.length = length, .k = k, .density = {}};
#ifdef OKTOPK_TESTS_WITH_ZFP
  return make_allreduce(E(), comm, text, size, zfp_codec<E>());
#else
  return make_allreduce(E(), comm, text, size);
#endif
}

std::set<std::string>& names_seen() {
  static std::set<std::string> names;
  return names;
}

/// The calls of an algorithm by its text are those by its type: one for each kind of policy that a text chooses, and one
/// for each scheme that has no others.
template <class Typed>
void check_twin(std::string const& text, typename Typed::options how = {}) {
  names_seen().insert(oktopk::detail::allreduce_request::parse(text).name);
  how.length = length;
  SET_IF_THERE(how.k, k);
  for (int const ranks : {1, 3, 4}) {
    CAPTURE(text, ranks);
    in_process::run(ranks, [&](in_process_communicator comm) {
      Typed typed(E(), C(comm), how);
      any by_text = made(C(comm), text);
      CHECK((by_text.text() == text && by_text.name() == typed.name()));
      CHECK((by_text.length() == typed.length() && by_text.k() == typed.k()));
      std::vector<float> residual(static_cast<std::size_t>(length), 0);
      for (int iteration = 0; iteration < iterations; ++iteration) {
        if constexpr (requires { typed.set_k(k); }) {
          if (iteration == 3) {
            typed.set_k(k / 5);
            by_text.set_k(k / 5);
            CHECK(by_text.k() == k / 5);
          }
        }
        auto const input = accumulator_of({comm.rank(), ranks, iteration}, residual, correlated{7, 3});
        auto const one = observe(typed, input);
        auto const other = observe(by_text, input);
        CHECK(difference(one, other) == "");
        CHECK(one.bound_words == other.bound_words);
        residual = one.residual;
      }
    });
  }
}

/// An algorithm by its text agrees with the one by its type: they are of the same policies and options, and bounds.
template <class Typed>
void check_agrees(std::string const& text, typename Typed::options how = {}) {
  names_seen().insert(oktopk::detail::allreduce_request::parse(text).name);
  how.length = length;
  SET_IF_THERE(how.k, k);
  CAPTURE(text);
  std::vector<std::string> said(3);
  in_process::run(3, [&](in_process_communicator inner) {
    auto const told = [](auto const& allreduce) {
      return std::string(allreduce.name()) + " of " + std::to_string(allreduce.k()) + ", " +
             std::to_string(allreduce.bound_words());
    };
    C const comm(inner);
    std::string& mine = said[static_cast<std::size_t>(inner.rank())];
    if (inner.rank() == 1) {
      any_communicator erased(comm);
      agreement("make_allreduce").fact("algorithm", text).check_on(erased);
      mine = told(Typed(E(), erased, how));
    } else {
      mine = told(made(comm, text));
    }
  });
  CHECK((said[1] == said[0] && said[1] == said[2]));
}

using A = any_communicator;
template <class Comm>
using reusing = ok_topk<E, Comm, oktopk_tests::policies_of<coo<>, reused_threshold, reused_threshold, balanced>>;
template <class Values>
using rounded = packed<float, std::int32_t, Values>;
template <class Comm, class Codec>
using coded_ring = dense_ring_chunked<E, Comm, float, std::int32_t, coded_wire<Codec>>;

} // namespace

TEST_CASE("every algorithm of the list gives by text what its type gives") {
  check_twin<ok_topk<E, C>>("ok_topk");
  check_twin<ok_topk<E, C, oktopk_tests::policies_of<coo_or_dense<>, gaussian, exact, uniform>>>(
      "ok_topk(format=coo_or_dense, local_select=gaussian, partition=uniform)");
  typename reusing<C>::options reused;
  reused.local_select = {.tau_prime = 2, .low = 0.5};
  reused.deliver.global_select = {.tau_prime = 2, .low = 0.5};
  reused.partition.tau = 2;
  reused.schedule.bucket = 2;
  reused.deliver.gather.ratio = 1.5;
  reused.deliver.gather.message_entries = 5;
  check_twin<reusing<C>>("ok_topk(local_select=reused, global_select=reused, partition=balanced, tau=2, tau_prime=2, "
                         "low=0.5, bucket=2, ratio=1.5, message_entries=5)",
                         reused);
  check_agrees<reusing<A>>("ok_topk(local=reused(tau_prime=2, low=0.5), global=reused( low = 0.5, tau_prime=2 ), "
                           "partition=balanced(tau=2), bucket=2, ratio=1.5, message_entries=5)",
                           {.local_select = reused.local_select,
                            .partition = reused.partition,
                            .schedule = reused.schedule,
                            .deliver = reused.deliver});
  check_agrees<ok_topk<E, A, oktopk_tests::policies_of<rounded<bfloat16_values>, chunked, exact>>>(
      "ok_topk(format=packed, values=bfloat16, local_select=chunked)");
  check_twin<topk_a<E, C, oktopk::with_format<rounded<fixed_values<2>>>>>("topk_a(format=packed(values=fixed2))");
  check_agrees<topk_a<E, A, oktopk::with_format<packed<>>>>("topk_a(format=packed)");
  check_agrees<topk_a<E, A>>("topk_a");
  check_agrees<gtopk<E, A, oktopk::with_format<rounded<fixed_values<4>>>>>("gtopk(format=packed, values=fixed4)");
  check_agrees<gtopk<E, A>>("gtopk");
  check_twin<gtopk<E, C>>("gtopk(return_dropped=false)", {.return_dropped = false});
  typename paper_ok_topk<E, A>::options paper;
  paper.local_select.tau_prime = 3;
  paper.deliver.global_select.tau_prime = 3;
  paper.partition.tau = 2;
  check_agrees<paper_ok_topk<E, A>>("paper_ok_topk(tau=2, tau_prime=3)", paper);
  check_agrees<paper_ok_topk<E, A>>("paper_ok_topk(ratio=3)", {.deliver = {.gather = {.ratio = 3}}});
  check_agrees<topk_dsa<E, A>>("topk_dsa(bucket=2)", {.schedule = {.bucket = 2}});
  check_agrees<topk_dsa<E, A, oktopk::with_format<coo<>>>>("topk_dsa(format=coo)");
  check_agrees<gaussian_k<E, A>>("gaussian_k");
  check_agrees<dense<E, A>>("dense");
  check_twin<dense_rabenseifner<E, C>>("dense_rabenseifner");
  check_agrees<dense_bfloat16<E, A>>("dense_bfloat16");
  check_agrees<dense_ring<E, A>>("ring");
  check_agrees<dense_ring_chunked<E, A>>("ring_chunked");
  check_twin<dense_ring_pipelined<E, C>>("ring_pipelined(chunk_bytes=64, ahead=2)",
                                         {.reduce = {.chunk_bytes = 64, .ahead = 2}});
  check_agrees<dense_halving_doubling<E, A>>("halving_doubling");
  check_agrees<dense_recursive_doubling<E, A>>("recursive_doubling");
  typename coded_ring<C, block_float>::options how;
  how.reduce.codec.rate = 9;
  how.reduce.level = detail::codec_level::message;
  how.reduce.cutoff_bytes = 0;
  check_twin<coded_ring<C, block_float>>("ring_chunked(codec=block_float, rate=9, codec_level=message, cutoff_bytes=0)",
                                         how);
  check_agrees<coded_ring<A, block_float>>(
      "ring_chunked(codec=block_float(rate=9, codec_level=message, cutoff_bytes=0))",
      {.reduce = {.codec = {.rate = 9}, .level = how.reduce.level, .cutoff_bytes = 0}});
  check_agrees<coded_ring<A, identity>>("ring_chunked(codec=identity, cutoff_bytes=0)",
                                        {.reduce = {.cutoff_bytes = 0}});
  check_agrees<dense_recursive_doubling<E, A, float, std::int32_t, coded_wire<bfloat16>>>(
      "recursive_doubling(codec=bfloat16, cutoff_bytes=0)", {.reduce = {.cutoff_bytes = 0}});
#ifdef OKTOPK_TESTS_WITH_ZFP
  check_agrees<coded_ring<A, zfp>>("ring_chunked(codec=zfp, cutoff_bytes=0)", {.reduce = {.cutoff_bytes = 0}});
#endif
  for (oktopk::detail::listed_allreduce const& each : list_allreduces()) {
    // `automatic` chooses by its clock: see test_automatic.cpp.
    CHECK(names_seen().count(each.name) == (each.name == "automatic" ? 0 : 1));
  }
}

TEST_CASE("the list has every option with its default") {
  for (oktopk::detail::listed_allreduce const& each : list_allreduces()) {
    for (oktopk::detail::listed_option const& option : each.options) {
      CHECK_FALSE(option.value.empty());
      CHECK_FALSE(option.about.empty());
    }
  }
  std::string const text = catalogue_text();
  CHECK(text.find("local=exact") != std::string::npos);
  CHECK(text.find("tau=64") != std::string::npos);
  CHECK(text.find("none, identity, bfloat16, block_float") != std::string::npos);
  std::size_t const values = text.find("values of a packed format: exact, bfloat16, fixed8, fixed4, fixed2, sign");
  REQUIRE(values != std::string::npos);
  CHECK(text.substr(0, text.find('\n', values)).ends_with("; goes with format=packed"));
  CHECK(text.find("goes with format=coo") == std::string::npos); // what every format has goes with none
}

namespace {

/// The tables of docs/policies.md: the options of each policy, in the order of the list, with the choices that have
/// them, and then those of the algorithms themselves, with their names.
std::vector<std::string> tables_of_options() {
  struct row {
    oktopk::detail::listed_option option;
    std::vector<std::string> algorithms{}; // that have the option whatever is chosen
  };
  std::vector<row> rows;
  std::vector<std::string> policies;
  for (oktopk::detail::listed_allreduce const& each : list_allreduces()) {
    for (oktopk::detail::listed_option const& option : each.options) {
      auto found = std::ranges::find(rows, option.key, [](row const& known) { return known.option.key; });
      if (found == rows.end()) {
        found = rows.insert(rows.end(), {option});
        std::erase(found->option.goes_with, "codec=zfp"); // not of every build
        if (option.about.ends_with(", zfp")) {
          found->option.about.resize(option.about.size() - 5);
        }
      } else if (found->option.value.find(option.value) == std::string::npos) {
        found->option.value += " or " + option.value; // by algorithm
      }
      if (option.goes_with.empty()) {
        found->algorithms.push_back(each.name);
      }
      for (std::string const& choice : option.goes_with) {
        std::string const policy = choice.substr(0, choice.find('='));
        if (std::ranges::find(policies, policy) == policies.end()) {
          policies.push_back(policy);
        }
      }
    }
  }
  auto const text_of = [](row const& each, std::vector<std::string> const& with) {
    return "| `" + each.option.key + "` | " + each.option.value + " | " + each.option.about + " | " +
           (with.empty() ? "" : "`" + oktopk::detail::joined(with, "`, `") + "`") + " |\n";
  };
  std::vector<std::string> tables;
  for (std::string const& policy : policies) {
    std::string& table = tables.emplace_back();
    for (row const& each : rows) {
      if (each.option.key == policy) {
        table = text_of(each, {}) + table;
      }
      std::vector<std::string> of;
      for (std::string const& choice : each.option.goes_with) {
        if (choice.starts_with(policy + "=")) {
          of.push_back(choice.substr(policy.size() + 1));
        }
      }
      table += of.empty() ? "" : text_of(each, of);
    }
  }
  std::string& others = tables.emplace_back();
  for (row const& each : rows) {
    bool const chooses = std::ranges::find(policies, each.option.key) != policies.end();
    others += chooses || each.algorithms.empty() ? "" : text_of(each, each.algorithms);
  }
  return tables;
}

} // namespace

TEST_CASE("the page of policies has the tables of all options, one for each policy") {
  std::string const here = __FILE__;
  std::ifstream in(here.substr(0, here.rfind('/')) + "/../../docs/policies.md");
  std::string const page(std::istreambuf_iterator<char>(in), {});
  for (std::string const& table : tables_of_options()) {
    INFO(table);
    CHECK(page.find("|---|---|---|---|\n" + table + "\n") != std::string::npos);
  }
}

namespace {

/// A text that all ranks say is wrong, in these words.
void refused(std::string const& text, std::string const& words, fault code = fault::option_out_of_range) {
  CHECK(unlike(outcomes_of(3, [&](in_process_communicator comm) { made(C(comm), text); }), code, words) == "");
}

/// What ranks hear that have another text on one of them.
void refused_on(int rank, std::string const& text, std::string const& others, fault code, std::string const& words) {
  auto const all =
      outcomes_of(3, [&](in_process_communicator comm) { made(C(comm), comm.rank() == rank ? text : others); });
  CHECK(unlike(all, code, words) == "");
}

} // namespace

TEST_CASE("a wrong text is the same error on every rank, and lists the right ones") {
  refused("okk", "\"okk\"; there are ok_topk, paper_ok_topk, topk_a, topk_dsa, gtopk, gaussian_k, dense, ");
  refused("ok_topk(taw=3)", "no option \"taw\" here; it has format, local, ");
  refused("ok_topk(partition=fair)", "\"fair\" is unknown; there are sampled, balanced, uniform");
  refused("ok_topk(local_select=best)", "there are exact, reused, unguarded, gaussian, chunked");
  refused("ok_topk(global_select=gaussian)", "there are exact, reused, unguarded, foreseen, gathered");
  refused("topk_a(format=gzip)", "there are coo, coo_or_dense, packed");
  refused("topk_a(format=packed, values=gzip)", "there are exact, bfloat16, fixed8, fixed4, fixed2, sign");
  refused("ok_topk(values=sign)", "ok_topk: values goes with format=packed");
  refused("ok_topk(format=coo, values=sign)", "ok_topk: values goes with format=packed");
  refused("ok_topk(tau_prime=16)", "ok_topk: tau_prime goes with local=reused or local=unguarded or "
                                   "global=reused or global=unguarded or global=gathered");
  refused("ok_topk(chunk=4096)", "ok_topk: chunk goes with local=chunked");
  refused("topk_a(tau_prime=16)", "no option \"tau_prime\" here; it has format, ");
  refused("dense(density=0.1)", "no option \"density\" here");
  refused("ring_chunked(codec=gzip)", "there are none, identity, bfloat16, block_float");
  refused("ring_chunked(codec=block_float, codec_level=bit)", "there are collective, message");
  refused("ok_topk(partition=uniform, tau=3)", "tau goes with partition=sampled or partition=balanced");
  refused("ring_chunked(rate=8)", "rate goes with codec=block_float");
  refused("ring(rate=8)", "no option \"rate\" here");
  refused("paper_ok_topk(density=2)", "paper_ok_topk: density = 2 is not in (0, 1]", fault::density_out_of_range);
  refused("ok_topk(density=much)", "density = \"much\" is no number");
  refused("ok_topk(tau=often)", "is no integer");
  refused("ok_topk(reduce=radix(1))", "radix = 1 of radix cuts nothing");
  refused("ok_topk(reduce=radix(-2))", "\"radix(-2)\" has \"-2\" where KEY=VALUE should be");
  refused("ok_topk(reduce=rotated(2))", "reduce=rotated has no option \"rotated\"");
  refused("ok_topk(reduce=rotated, radix=2)", "radix goes with reduce=radix");
  refused("ok_topk(tau=0)", "tau = 0 of sampled is not positive");
  refused("ring_chunked(codec=block_float, rate=17)", "is not between 4 and 16");
  refused("dense(", "NAME(KEY=VALUE, ...)");
  refused("ok_topk(local=reused(taw=3))", "ok_topk: local=reused has no option \"taw\"; it has tau_prime, low, high");
  refused("ok_topk(local=exact(low=3))", "ok_topk: low goes with local=reused or global=reused");
  refused("ok_topk(global=foreseen(bucket=3))", "ok_topk: global=foreseen has no option \"bucket\", nor any other");
  refused("ok_topk(format=coo(values=sign))", "ok_topk: values goes with format=packed");
  refused("ok_topk(partition=sampled(tau=often))", "ok_topk: tau = \"often\" is no integer");
  refused("ok_topk(partition=sampled(tau))",
          "\"sampled(tau)\" has \"tau\" where KEY=VALUE should be; a policy is NAME");
  refused("ok_topk(partition=fair(tau=3))", "partition = \"fair\" is unknown; there are sampled, balanced, uniform");
}

TEST_CASE("a key that could be meant for different policies is refused, with the form that tells which") {
  refused("ok_topk(local=reused, global=gathered, tau_prime=16)",
          "ok_topk: tau_prime is an option of local=reused and of global=gathered; write local=reused(tau_prime=16), "
          "global=gathered(tau_prime=16)");
  refused("ok_topk(local=reused(tau_prime=4), global=reused, tau_prime=16)",
          "tau_prime is an option of local=reused and of global=reused; write local=reused(tau_prime=16), ");
  refused("ok_topk(partition=sampled(tau=3), tau=4)",
          "tau is an option of partition=sampled; write partition=sampled(tau=4)");
  refused("ok_topk(local=exact, local_select=exact)", "ok_topk has the option local twice");
}

TEST_CASE("texts that differ between ranks are an error on every rank") {
  refused_on(2, "ok_topk(tau=3)", "ok_topk(tau=4)", fault::ranks_disagree, "rank 2 has algorithm = ok_topk(tau=3)");
  refused_on(1, "okk", "ring", fault::option_out_of_range, "rank 1: there is no algorithm \"okk\"");
  refused_on(1, "ok_topk(format=packed, values=sign)", "ok_topk(format=packed)", fault::ranks_disagree, "values=sign");
}

TEST_CASE("a density or k of the text replaces that of the program") {
  in_process::run(2, [](in_process_communicator comm) {
    auto const k_of = [&](std::string const& text) { return made(C(comm), text).k(); };
    CHECK(k_of("ok_topk") == k);
    CHECK(k_of("ok_topk(density=0.01, format=packed)") == 7);
    CHECK(k_of("topk_a(k=3)") == 3);
    CHECK(make_allreduce(E(), C(comm), "gtopk(k=3)", {.length = length}).k() == 3);
    CHECK(make_allreduce(E(), C(comm), "gtopk(density=0.5)", {.length = 10, .density = 0.1}).k() == 5);
  });
  refused("ok_topk(density=0.1, k=3)", "give either k or density, not both", fault::k_out_of_range);
  refused("ok_topk(density=2)", "density = 2 is not in (0, 1]", fault::density_out_of_range);
  refused("ok_topk(density=nan)", "density = nan is not in (0, 1]", fault::density_out_of_range);
  refused("ok_topk(k=-1)", "k = -1 is not in [0, length]", fault::k_out_of_range);
}

static_assert(catalogue::needs_free_order<dense_ring<E, C>> && !catalogue::needs_free_order<dense<E, C>> &&
              !catalogue::needs_free_order<ok_topk<E, C>>);

TEST_CASE("a state depends on no policies that its type tells") {
  CHECK(catalogue::policies_of(ok_topk<E, C>::options{}).empty());
  CHECK(catalogue::policies_of(dense<E, C>::options{}).empty());
}

TEST_CASE("a state of another algorithm or of other policies is refused on every rank") {
  auto const restored = [](std::string const& from, std::string const& to, bool damage = false) {
    return outcomes_of(3, [&](in_process_communicator comm) {
      auto saved = made(C(comm), from).state();
      if (damage && comm.rank() == 1) {
        saved.checkpoint.back() = static_cast<char>(saved.checkpoint.back() ^ 1);
      }
      made(C(comm), to).restore(saved);
    });
  };
  CHECK(unlike(restored("ok_topk", "ok_topk(tau=3)"), fault::none, "") == "");
  std::string const of_ok_topk = "ok_topk(local_select=exact, global_select=exact)";
  for (auto const& [from, to, state] :
       {std::tuple("ok_topk", "topk_a(format=packed)", of_ok_topk),
        std::tuple("topk_a", "dense", std::string("local selection (exact, 32-bit values)")),
        std::tuple("dense", "topk_a", std::string("dense")),
        std::tuple("ok_topk", "ok_topk(global_select=reused)", of_ok_topk)}) {
    CHECK(unlike(restored(from, to), fault::bad_state, "the state is of " + state + ", this is " + to) == "");
  }
  CHECK(unlike(restored("ok_topk", "ok_topk", true), fault::bad_state, "rank 1: the checkpoint") == "");
  in_process::run(1, [](in_process_communicator comm) {
    auto const saved = made(C(comm), "ok_topk").state();
    any const other = made(C(comm), "topk_a");
    CHECK(outcome_of([&] { other.for_other_ranks(saved); }).says("the state is of ok_topk(local_select=exact, "));
  });
}
