// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The automatic choice: what it predicts, and what it learns. That all ranks take the same scheme, that nothing is lost
// when it changes and that all hear of a rank's mistake, simulate_automatic of tests/simulate finds in many worlds.
#include <oktopk/algorithm/dense.hpp>
#include <oktopk/bucketed.hpp>
#include <oktopk/catalogue/automatic.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/error_feedback.hpp>

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/policies.hpp"
#include "support/replaced_clock.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <thread>

#include <unistd.h>

namespace {

using namespace oktopk;
using namespace oktopk_tests;
using E = Kokkos::DefaultHostExecutionSpace;
using catalogue::forecast;
using detail::allowed_sums;

constexpr std::int64_t length = 20000;
constexpr std::int64_t k = 200;

Kokkos::View<float*, E> gradient_of(int rank, int iteration, std::int64_t n = length) {
  Kokkos::View<float*, E> gradient("gradient", static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    auto const mixed =
        static_cast<std::uint64_t>(i + 1) * 0x9E3779B97F4A7C15U * static_cast<std::uint64_t>(iteration * 64 + rank + 3);
    gradient(static_cast<std::size_t>(i)) = static_cast<float>(static_cast<double>(mixed >> 40U) / 8388608.0 - 1.0);
  }
  return gradient;
}

std::optional<std::chrono::steady_clock::time_point> network_clock;

/// While it lives only messages take time, where the clock can be replaced: what else the machine does counts for nothing.
struct network_clock_alone {
  network_clock_alone() {
    if (can_replace_clock) {
      network_clock = std::chrono::steady_clock::now();
      replaced_clock = [] { return network_clock; };
    }
  }
  ~network_clock_alone() { network_clock.reset(); }
  network_clock_alone(network_clock_alone const&) = delete;
  network_clock_alone& operator=(network_clock_alone const&) = delete;
};

/// Ranks of this process whose network may take its time: a message leaves when its bytes have passed, and some long ones
/// are late, as where another program has the processor. All copies share the speed and the number of late ones.
class slow : public communicator_decorator<in_process_communicator> {
  using decorator = communicator_decorator<in_process_communicator>;

public:
  slow(in_process_communicator inner, std::atomic<double> const* seconds_per_byte = nullptr,
       std::atomic<int>* late = nullptr)
      : decorator(std::move(inner)), seconds_per_byte_(seconds_per_byte), late_(late) {}

  request isend(std::span<std::byte const> out, int peer, phase use) {
    pass(out.size());
    return decorator::isend(out, peer, use);
  }

  template <execution_space Space>
  void start(Space const& exec, std::span<bulk_message const> messages, std::span<bulk_request> requests) {
    for (bulk_message const& each : messages) {
      pass(each.receives ? 0 : each.bytes.size());
    }
    bool const is_long = !messages.empty() && messages.front().bytes.size() >= 1 << 14;
    if (late_ != nullptr && is_long && late_->fetch_sub(1) > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    }
    decorator::start(exec, messages, requests);
  }

  template <class T>
  void allreduce(std::span<T> values, reduction op, phase use) {
    pass(static_cast<std::size_t>(2.0 * static_cast<double>(values.size_bytes()) * (size() - 1) / size()));
    decorator::allreduce(values, op, use);
  }

private:
  void pass(std::size_t bytes) const {
    if (seconds_per_byte_ == nullptr) {
      return;
    }
    std::chrono::duration<double> const time(static_cast<double>(bytes) * *seconds_per_byte_ + 1e-6);
    if (network_clock) {
      *network_clock += std::chrono::duration_cast<std::chrono::steady_clock::duration>(time);
    } else {
      std::this_thread::sleep_for(time);
    }
  }

  std::atomic<double> const* seconds_per_byte_;
  std::atomic<int>* late_;
};

using C = counted<slow>;
using chosen = automatic<E, any_communicator>; // of one communicator for all cases

/// Calls until trials are over; gives the number of calls.
template <class Allreduce>
int settle(Allreduce& allreduce, int rank) {
  int calls = 0;
  for (; calls < 2000 && (calls == 0 || allreduce.state().text.empty()); ++calls) {
    allreduce(gradient_of(rank, calls));
  }
  CHECK_FALSE(allreduce.state().text.empty());
  return calls;
}

machine_model network(double latency, double seconds_per_byte) {
  machine_model model;
  model.latency = latency;
  model.seconds_per_byte = seconds_per_byte;
  return model;
}

} // namespace

TEST_CASE("automatic: the expected bytes of a scheme are those that it sends", "[automatic]") {
  for (int const ranks : {2, 3, 4, 8, 16}) {
    std::int64_t const selected = ranks > 8 ? 10 * k : k; // stages split a share again
    for (forecast const& each :
         catalogue::forecast_all<E, float, std::int32_t>({.length = length, .k = selected}, ranks)) {
      double sent = 0;
      in_process::run(ranks, [&](in_process_communicator plain) {
        C comm(plain);
        auto allreduce = make_allreduce(E(), comm, each.text, {.length = length, .k = selected});
        for (int iteration = 0; iteration < 4; ++iteration) { // regions are made anew before 0, 1 and 2
          comm.reset();
          allreduce(gradient_of(comm.rank(), iteration));
        }
        if (comm.rank() == 0) {
          bool const one_way = each.text.starts_with("gtopk"); // up the tree, and then down
          sent = static_cast<double>(comm.total().bytes_sent + (one_way ? comm.total().bytes_received : 0));
        }
      });
      INFO(each.text << " over " << ranks << " ranks: " << each.cost.bytes << " expected, " << sent << " sent");
      CHECK(each.cost.bytes >= 0.6 * sent);
      CHECK(each.cost.bytes <= 1.6 * sent + 64);
    }
  }
}

TEST_CASE("automatic: a slow network gets few bytes, a fast one few messages and no selection", "[automatic]") {
  auto const first_choice = [](machine_model const& machine, allowed_sums sums, bool dense_update) {
    std::string text;
    in_process::run(4, [&](in_process_communicator plain) {
      chosen const allreduce(
          E(), C(plain), {.length = length, .k = k, .sums = sums, .dense_update = dense_update, .machine = machine});
      if (plain.rank() == 0) {
        text = allreduce.explain();
      }
    });
    return text;
  };
  machine_model const slow_network = network(1e-6, 1e-6);
  machine_model fast_network = network(1e-6, 1e-12);
  fast_network.select = 1e-7;
  CHECK_THAT(first_choice(slow_network, allowed_sums::exact, false),
             Catch::Matchers::StartsWith("ok_topk(format=packed)"));
  CHECK_THAT(first_choice(slow_network, allowed_sums::rounded, false),
             Catch::Matchers::ContainsSubstring("values=sign"));
  CHECK_THAT(first_choice(slow_network, allowed_sums::unrounded, true), !Catch::Matchers::ContainsSubstring("topk"));
  CHECK_THAT(first_choice(fast_network, allowed_sums::unrounded, false), !Catch::Matchers::ContainsSubstring("topk"));
  CHECK_THAT(first_choice(fast_network, allowed_sums::exact, false), Catch::Matchers::StartsWith("ok_topk"));
}

TEST_CASE("automatic: on many ranks the machine decides in how many messages ok_topk reduces", "[automatic]") {
  auto const best = [](int ranks, machine_model const& machine) {
    auto all = catalogue::forecast_all<E, float, std::int32_t>({.length = 1000 * length, .k = 1000 * k}, ranks);
    std::erase_if(all, [](forecast const& each) { return !each.text.starts_with("ok_topk") || each.rounded; });
    return std::ranges::min_element(all, {},
                                    [&](forecast const& each) { return machine.seconds(each.cost, each.format); })
        ->text;
  };
  machine_model few = network(1e-4, 1e-12);
  CHECK_THAT(best(64, few), Catch::Matchers::ContainsSubstring("reduce=radix(8)"));
  few.beside = few.latency;
  CHECK_THAT(best(64, few), Catch::Matchers::ContainsSubstring("reduce=radix(4)"));
  CHECK_THAT(best(64, network(1e-9, 1e-6)), !Catch::Matchers::ContainsSubstring("reduce"));
  CHECK_THAT(best(8, few), !Catch::Matchers::ContainsSubstring("reduce")); // where it saves next to nothing
  for (forecast const& each : catalogue::forecast_all<E, float, std::int32_t>({.length = length, .k = k}, 64)) {
    CHECK((!each.exact || each.text.find("reduce") == each.text.npos)); // other sums, to the bit
  }
  std::set<std::string> formats; // one radix of each, so that other schemes are tried, too
  in_process::run(16, [&](in_process_communicator plain) {
    chosen const made(E(), C(plain), {.length = length, .k = k, .sums = allowed_sums::rounded, .machine = few});
    for (forecast const& each : made.forecasts()) {
      if (plain.rank() == 0 && each.text.find("reduce") != each.text.npos) {
        CHECK(formats.insert(each.format).second);
      }
    }
  });
  CHECK(formats.size() == 3);
}

TEST_CASE("automatic: a radix in use stays among the choices where another is the best", "[automatic]") {
  in_process::run(16, [&](in_process_communicator plain) {
    chosen allreduce(E(), C(plain), {.length = length, .k = k, .machine = network(1e-4, 1e-12)});
    auto const has = [&](std::string const& text) {
      return std::ranges::count(allreduce.forecasts(), text, &forecast::text) == 1;
    };
    std::string const four = "ok_topk(global=foreseen, reduce=radix(4))";
    std::string const eight = "ok_topk(global=foreseen, reduce=radix(8))";
    CHECK(has(four) != has(eight));
    std::string const other = has(four) ? eight : four;
    auto saved = allreduce.state();
    saved.text.assign(other.begin(), other.end());
    saved.inside = make_allreduce<float, std::int32_t>(E(), C(plain), other, {.length = length, .k = k}).state();
    allreduce.restore(saved);
    CHECK(allreduce.explain().starts_with(other + ":"));
    CHECK(allreduce(gradient_of(plain.rank(), 0)).indices().extent(0) == k);
    CHECK((has(four) && has(eight)));
    allreduce.set_k(k + 1);
    CHECK((has(four) && has(eight)));
  });
}

TEST_CASE("automatic: a change of the network is learnt in a few calls, with one switch at most", "[automatic]") {
  network_clock_alone const only;
  std::atomic<double> seconds_per_byte = 0;
  std::vector<std::vector<std::string>> told(2);
  in_process::run(2, [&](in_process_communicator plain) {
    auto const rank = static_cast<std::size_t>(plain.rank());
    machine_model machine = network(1e-6, 1e-12); // where dense schemes are predicted to be fastest
    machine.select = 1e-7;
    machine.meeting = 1e-4; // what other programs do to calls of 50 us is no change of the network
    chosen allreduce(E(), C(slow(plain, &seconds_per_byte)),
                     {.length = length, .k = 500, .recheck = 3, .machine = machine});
    auto const change = [&](double to) {
      if (rank == 0) {
        seconds_per_byte = to;
      }
      for (int i = 0; i < 60; ++i) {
        allreduce(gradient_of(plain.rank(), i));
      }
      settle(allreduce, plain.rank());
      for (int i = 0; i < 6; ++i) { // a look at the clocks that may learn a shorter time, and one that must not
        allreduce(gradient_of(plain.rank(), i));
      }
      told[rank].push_back(allreduce.explain());
    };
    change(0);
    CHECK(allreduce.switches() == 0);
    change(2e-7);
    CHECK(allreduce.switches() == 1);
    double const learnt = allreduce.machine().seconds_per_byte;
    CHECK(learnt > 1e-7);
    CHECK(learnt < 1e-6);
    change(0);
    CHECK(allreduce.switches() <= 2);
    CHECK(allreduce.machine().seconds_per_byte < learnt / 2);
  });
  CHECK(told[0] == told[1]);
  CHECK_THAT(told[0][0], !Catch::Matchers::ContainsSubstring("topk("));
  CHECK_THAT(told[0][1], Catch::Matchers::StartsWith("ok_topk") || Catch::Matchers::StartsWith("topk") ||
                             Catch::Matchers::StartsWith("gtopk"));
}

TEST_CASE("automatic: schemes that are predicted to be alike are all tried", "[automatic]") {
  network_clock_alone const only;
  std::atomic<double> const seconds_per_byte = 1e-9;
  std::set<std::string> tried;
  in_process::run(4, [&](in_process_communicator comm) {
    chosen allreduce(E(), C(slow(comm, &seconds_per_byte)),
                     {.length = length, .k = k, .dense_update = true, .machine = network(1e-6, 1e-9)});
    settle(allreduce, comm.rank());
    for (int i = 0; i < 400; ++i) { // later trials have five of them
      allreduce(gradient_of(comm.rank(), i));
      if (comm.rank() == 0) {
        tried.insert(allreduce.explain().substr(0, allreduce.explain().find(':')));
      }
    }
  });
  for (std::string const each : {"dense", "halving_doubling", "dense_rabenseifner"}) {
    INFO(each);
    CHECK(tried.contains(each));
  }
}

TEST_CASE("automatic: a scheme that is made again draws its regions anew", "[automatic]") {
  network_clock_alone const only;
  std::atomic<double> const seconds_per_byte = 1e-8;
  in_process::run(2, [&](in_process_communicator plain) {
    chosen allreduce(E(), C(slow(plain, &seconds_per_byte)),
                     {.length = length, .k = k, .sums = allowed_sums::exact, .machine = network(1e-6, 1e-8)});
    std::set<std::string> seen;
    int again = 0;
    std::string runs;
    auto const call = [&](int iteration) {
      allreduce(gradient_of(plain.rank(), iteration));
      std::string const text = allreduce.explain().substr(0, allreduce.explain().find(':'));
      if (text != runs) {
        INFO(text << " in iteration " << iteration);
        CHECK(allreduce.last_call().repartitioned);
        again += seen.insert(text).second ? 0 : 1;
      }
      runs = text;
    };
    int iteration = 0;
    for (std::int64_t const wanted : {k, k / 2}) {
      allreduce.set_k(wanted);
      for (int calls = 0; calls < 300; ++calls) { // formats are tried beside the one in use
        call(iteration++);
      }
    }
    CHECK(again > 0);
  });
}

TEST_CASE("automatic: the state keeps the scheme in use while that is tried again beside others", "[automatic]") {
  in_process::run(2, [&](in_process_communicator plain) {
    machine_model machine = network(1e-6, 1e-8);
    machine.meeting = 1; // no difference of times counts as a change of the network
    chosen allreduce(E(), C(plain), {.length = length, .k = k, .sums = allowed_sums::exact, .machine = machine});
    settle(allreduce, plain.rank());
    bool is_other = false;
    for (int calls = 0; calls < 5000 && !is_other; ++calls) {
      allreduce(gradient_of(plain.rank(), calls));
      std::string const last = allreduce.explain().substr(0, allreduce.explain().find(':'));
      auto const saved = allreduce.state();
      std::string const kept(saved.text.begin(), saved.text.end());
      is_other = last != kept;
      CHECK_FALSE(kept.empty());
      if (is_other) {
        allreduce.restore(saved);
        CHECK(allreduce.explain().starts_with(kept + ":"));
        CHECK(allreduce(gradient_of(plain.rank(), calls)).indices().extent(0) == k);
      }
    }
    CHECK(is_other);
  });
}

TEST_CASE("automatic: regions that are full go dense in the sum, and that is among the choices", "[automatic]") {
  auto const of = [](std::int64_t selected, std::string const& text) {
    auto const all = catalogue::forecast_all<E, float, std::int32_t>({.length = length, .k = selected}, 8);
    auto const found = std::ranges::find(all, text, &forecast::text);
    REQUIRE(found != all.end());
    return *found;
  };
  forecast const full = of(length / 4, "topk_dsa"); // 90 % of the places of the sum
  CHECK(full.format.ends_with("or dense"));
  CHECK(full.cost.bytes < 0.8 * of(length / 4, "topk_dsa(format=coo)").cost.bytes);
  CHECK(full.cost.decoded >= length);
  CHECK(of(k, "topk_dsa").cost.bytes == of(k, "topk_dsa(format=coo)").cost.bytes);
  in_process::run(2, [&](in_process_communicator comm) {
    chosen const made(E(), C(comm), {.length = length, .k = k, .machine = network(1e-6, 1e-6)});
    CHECK(std::ranges::count(made.forecasts(), std::string("topk_dsa"), &forecast::text) == 1);
  });
}

TEST_CASE("automatic: a density is fitted to the time of a call, follows the network, and is saved", "[automatic]") {
  network_clock_alone const only;
  std::atomic<double> seconds_per_byte = 0;
  chosen::state_type saved;
  in_process::run(2, [&](in_process_communicator plain) {
    machine_model machine = network(1e-6, 1e-7);
    machine.add = 1; // no dense scheme
    auto const made = [&](double milliseconds) {
      return chosen(E(), C(slow(plain, &seconds_per_byte)),
                    {.length = length,
                     .fit = {{.milliseconds = milliseconds, .least = 0.001, .most = 0.05}},
                     .sums = allowed_sums::exact,
                     .recheck = 6, // the least of the later three tells a change from a late call
                     .machine = machine});
    };
    CHECK(made(1e-3).k() == 20);
    CHECK(made(1e3).k() == 1000);
    auto const predicted = made(0.3);
    CHECK(predicted.k() > 20);
    CHECK(predicted.k() < 1000);
    double least = 1;
    for (forecast const& each : predicted.forecasts()) {
      least = std::min(least, each.predicted);
    }
    CHECK(least <= 0.3e-3);
    CHECK(least > 0.24e-3);
    chosen allreduce = made(10);
    if (plain.rank() == 0) {
      seconds_per_byte = 2e-6;
    }
    auto const calls = [&](int times) {
      for (int i = 0; i < times; ++i) {
        auto const& update = allreduce(gradient_of(plain.rank(), i));
        CHECK(update.indices().extent(0) <= 1000);
      }
    };
    calls(60);
    CHECK(*plain.untagged_objects() == 4); // all schemes of an object are one to the other ranks
    CHECK(allreduce.k() < 1000);
    CHECK(allreduce.k() > 20);
    double const known = allreduce.machine().seconds_per_byte;
    if (plain.rank() == 0) {
      seconds_per_byte = 4e-6; // a change that one look only suspects
    }
    calls(30);
    CHECK(allreduce.machine().seconds_per_byte > 1.4 * known);
    if (plain.rank() == 0) {
      saved = allreduce.state();
      seconds_per_byte = 0;
    }
    chosen again = made(10);
    CHECK(again.k() == 1000);
    again.restore(saved);
    CHECK(again.k() == saved.k);
    for (int i = 0; i < 60; ++i) {
      again(gradient_of(plain.rank(), i));
    }
    CHECK(again.k() == 1000);
  });
}

TEST_CASE("automatic: a fit in a text, and what is wrong with one, by name on every rank", "[automatic]") {
  auto const made = [](std::string const& text) {
    std::vector<std::string> said(2);
    in_process::run(2, [&](in_process_communicator comm) {
      said[static_cast<std::size_t>(comm.rank())] =
          outcome_of([&] {
            auto const found = make_allreduce(E(), C(comm), "automatic(latency_us=1, rate_mbit=1000, " + text + ")",
                                              {.length = length, .density = 0.5});
            CHECK(found.k() >= 20);
            CHECK(found.k() <= 1000);
          }).text;
    });
    CHECK(said[0] == said[1]);
    return said[0];
  };
  CHECK(made("density=fit(30ms, least=0.001, most=0.05)") == "");
  CHECK(made("density=0.01") == "");
  for (std::string const text :
       {"fit(30s)", "fit(5)", "fit(ms=5)", "fit(5ms)x", "fit()", "fit(", "fit(5ms, least=1)x"}) {
    std::string const said = made("density=" + text);
    CHECK((said.find("density = \"" + text + "\" is not fit(30ms) or fit(30ms, least=0.001, most=0.05)") !=
               std::string::npos ||
           said.find("has not one pair of parentheses") != std::string::npos)); // of the whole text, which is quoted
    CHECK(said.find("?") == std::string::npos);
  }
  CHECK_THAT(made("density=fit(nanms)"), Catch::Matchers::ContainsSubstring("not positive"));
  CHECK(made("density=none, k=50") == "");
  CHECK(made("machine=none, k=none, density=0.01") == "");
  CHECK_THAT(made("density=fit(0ms)"), Catch::Matchers::ContainsSubstring("not positive"));
  CHECK_THAT(made("density=fit(30ms, least=0.1, most=0.05)"), Catch::Matchers::ContainsSubstring("least <= most"));
  CHECK_THAT(made("density=fit(30ms, worst=1)"), Catch::Matchers::ContainsSubstring("fit has no option \"worst\""));
  CHECK_THAT(made("density=much"), Catch::Matchers::ContainsSubstring("density = \"much\" is no number"));
  CHECK_THAT(made("density=fit(30ms), k=5"), Catch::Matchers::ContainsSubstring("either density=fit(...) or k"));
}

TEST_CASE("automatic: a machine from a file, whose faults are named on every rank", "[automatic]") {
  std::string const file = "automatic_machine_" + std::to_string(::getpid());
  auto const made = [](std::string const& option) {
    std::vector<std::string> said(2);
    std::string table;
    in_process::run(2, [&](in_process_communicator comm) {
      said[static_cast<std::size_t>(comm.rank())] =
          outcome_of([&] {
            chosen::options how{.length = length, .k = k};
            how.machine_file = option;
            chosen const of_file(E(), C(comm), how);
            table = of_file.table();
            CHECK(of_file.machine().latency == 0.0625);
            auto const by_text =
                make_allreduce(E(), C(comm), "automatic(machine=" + option + ")", {.length = length, .k = k});
            CHECK_THAT(by_text.explain(), Catch::Matchers::ContainsSubstring("62500 us") ||
                                              Catch::Matchers::ContainsSubstring("6.25e+04 us"));
            CHECK(by_text.table() == table);
          }).text;
    });
    CHECK(said[0] == said[1]);
    return said[0] + table;
  };
  machine_model machine = network(0.0625, 1e-9);
  std::ofstream(file) << machine;
  std::string const table = made(file);
  CHECK_THAT(table, Catch::Matchers::StartsWith("predicted ms  measured ms  messages         bytes  scheme\n"));
  CHECK_THAT(table, Catch::Matchers::ContainsSubstring("  ok_topk(format=packed)\n"));
  CHECK_THAT(table, Catch::Matchers::ContainsSubstring("  halving_doubling\n"));
  std::ofstream(file) << "latency = fast\n";
  CHECK_THAT(made(file), Catch::Matchers::ContainsSubstring("machine=" + file) &&
                             Catch::Matchers::ContainsSubstring("latency = fast"));
  std::remove(file.c_str());
  CHECK_THAT(made(file), Catch::Matchers::ContainsSubstring("machine=" + file) &&
                             Catch::Matchers::ContainsSubstring("cannot be read"));
  CHECK_THAT(made("."),
             Catch::Matchers::ContainsSubstring("machine=.: ") && Catch::Matchers::ContainsSubstring("cannot be read"));
}

TEST_CASE("automatic: a message that is late once does not make the network slow", "[automatic]") {
  for (int const ranks : {2, 3}) {
    std::atomic<int> late = 1;
    in_process::run(ranks, [&](in_process_communicator plain) {
      auto const found =
          machine_model::measure<float, std::int32_t>(E(), any_communicator(C(slow(plain, nullptr, &late))), length, k);
      CHECK(found.seconds_per_byte < 1e-7); // 30 ms of 16 KiB are 2e-6
      CHECK(found.latency < 1e-3);
      CHECK(found.handshake < 5e-3);
    });
    CHECK(late.load() <= 0);
  }
}

TEST_CASE("automatic: a meeting counts once a call, and an idle network takes the first bytes at once", "[automatic]") {
  machine_model machine = network(1e-6, 1e-9);
  detail::call_cost const cost{.messages = 2, .bytes = 5000};
  CHECK(machine.seconds(cost, "") == Approx(7e-6));
  machine.meeting = 3e-6;
  machine.head_start = 2e-6;
  CHECK(machine.seconds(cost, "") == Approx(8e-6));
  CHECK(machine.transfer(cost) == Approx(3e-6));
  machine.head_start = 1; // takes off no more than the bytes
  CHECK(machine.seconds(cost, "") == Approx(5e-6));
  CHECK(machine.seconds(detail::call_cost{}, "") == 0); // a rank alone meets nobody
}

TEST_CASE("automatic: a network of a given rate takes no bytes at once", "[automatic]") {
  in_process::run(2, [&](in_process_communicator comm) {
    chosen const given(E(), C(comm), {.length = length, .k = k, .rate_mbit = 80});
    CHECK(given.machine().seconds_per_byte == Approx(1e-7));
    CHECK(given.machine().head_start == 0);
  });
}

TEST_CASE("automatic: what an encoding takes for nothing is not counted for each entry", "[automatic]") {
  in_process::run(2, [&](in_process_communicator comm) {
    auto const coo_of = [&](std::int64_t selected) {
      return machine_model::measure<float, std::int32_t>(E(), any_communicator(C(comm)), length, selected)
          .formats.front();
    };
    machine_model::format_speed const few = coo_of(1);
    machine_model::format_speed const many = coo_of(length / 2);
    INFO(few.format << ": " << few.encode << " s an entry, of many " << many.encode);
    CHECK(few.encode < 30 * many.encode + 2e-8);
    INFO("decoded: " << few.decode << " s an entry, of many " << many.decode);
    CHECK(few.decode < 30 * many.decode + 2e-8);
  });
}

TEST_CASE("the page of algorithms has the table of expected costs", "[automatic]") {
  std::ostringstream rows;
  rows.precision(4);
  for (forecast const& each : catalogue::forecast_all<E, float, std::int32_t>({.length = 1000000, .k = 10000}, 8)) {
    detail::call_cost const& cost = each.cost;
    if (each.text.find("values=") == std::string::npos) {
      rows << "| `" << each.text << "` | " << cost.messages << " | " << cost.beside << " | " << 1e-3 * cost.bytes
           << " | " << 1e-3 * cost.selected << " | " << 1e-3 * cost.encoded << " | " << 1e-3 * cost.decoded << " | "
           << 1e-3 * cost.added << " |\n";
    }
  }
  std::string const here = __FILE__;
  std::ifstream in(here.substr(0, here.rfind('/')) + "/../../docs/algorithms.md");
  std::string const page(std::istreambuf_iterator<char>(in), {});
  std::string const table = "|---|--:|--:|--:|--:|--:|--:|--:|\n" + rows.str() + "\n";
  INFO(table);
  CHECK(page.find(table) != std::string::npos);
}

TEST_CASE("automatic: momentum is that of SGD while a dense scheme is in use", "[automatic]") {
  in_process::run(3, [&](in_process_communicator comm) {
    chosen chosen_dense(E(), C(comm), {.length = 256, .k = 8, .dense_update = true, .machine = network(1e-6, 1e-9)});
    auto plain = make_allreduce(E(), C(comm), "dense", {.length = 256});
    error_feedback with_chosen(chosen_dense, {.momentum = 0.5});
    error_feedback with_plain(plain, {.momentum = 0.5});
    Kokkos::View<float*, E> gradient("gradient", 256);
    for (int iteration = 0; iteration < 6; ++iteration) {
      for (std::size_t i = 0; i < 256; ++i) { // whole numbers, whose sums are exact in any order
        gradient(i) = static_cast<float>((i + static_cast<std::size_t>(comm.rank() + iteration)) % 5);
      }
      auto const& ours = with_chosen(gradient);
      auto const& theirs = with_plain(gradient);
      for (std::size_t i = 0; i < 256; ++i) {
        CHECK(ours.values()(i) == theirs.values()(i));
      }
    }
  });
}

TEST_CASE("automatic: machines that differ between ranks, or are none, are an error on every rank", "[automatic]") {
  auto const refused = [](auto const& machine_of) {
    std::vector<std::string> said(2);
    in_process::run(2, [&](in_process_communicator comm) {
      said[static_cast<std::size_t>(comm.rank())] = outcome_of([&] {
                                                      chosen::options how{.length = length, .k = k};
                                                      how.machine = machine_of(comm.rank());
                                                      chosen const made(E(), C(comm), how);
                                                    }).text;
    });
    CHECK(said[0] == said[1]);
    return said[0];
  };
  CHECK_THAT(refused([](int rank) { return network(1e-6 * (rank + 1), 1e-9); }),
             Catch::Matchers::ContainsSubstring("latency"));
  CHECK_THAT(refused([](int rank) { return rank == 0 ? std::optional(network(1e-6, 1e-9)) : std::nullopt; }),
             Catch::Matchers::ContainsSubstring("machine"));
  CHECK_THAT(refused([](int) { return network(-1, 1e-9); }), Catch::Matchers::ContainsSubstring("latency"));
}

TEST_CASE("automatic: goes on from a saved state, also with other ranks", "[automatic]") {
  chosen::state_type saved;
  std::string scheme;
  machine_model const machine = network(1e-5, 1e-6);
  chosen::options const how{.length = length, .k = k, .sums = allowed_sums::exact, .machine = machine};
  in_process::run(3, [&](in_process_communicator comm) {
    chosen allreduce(E(), C(comm), how);
    settle(allreduce, comm.rank());
    if (comm.rank() == 0) {
      std::stringstream file;
      save(file, allreduce.state());
      saved = load<decltype(saved)>(file);
      scheme.assign(saved.text.begin(), saved.text.end()); // explain() tells of the last call, a trial perhaps
    }
  });
  for (int const ranks : {2, 3}) {
    in_process::run(ranks, [&](in_process_communicator comm) {
      chosen allreduce(E(), C(comm), how);
      allreduce.restore(ranks == 3 ? saved : for_other_ranks(saved));
      CHECK(allreduce.explain().starts_with(scheme));
      CHECK(allreduce(gradient_of(comm.rank(), 0)).indices().extent(0) == k);
      CHECK(allreduce.state().iteration == saved.iteration + 1);
    });
  }
}

TEST_CASE("automatic: a network that cannot be is refused on every rank, and a saved scheme that is none is forgotten",
          "[automatic]") {
  in_process::run(2, [&](in_process_communicator comm) {
    chosen::options how{.length = length, .k = k};
    how.machine = machine_model();
    for (double const bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      for (auto const of_network : {&chosen::options::latency_us, &chosen::options::rate_mbit}) {
        chosen::options wrong = how;
        wrong.*of_network = bad;
        outcome const heard = outcome_of([&] { chosen(E(), C(comm), wrong); });
        CHECK(unlike(heard, fault::option_out_of_range, "latency_us and rate_mbit of automatic must be finite") == "");
      }
    }
    chosen allreduce(E(), C(comm), how);
    auto saved = allreduce.state();
    std::string const unknown = "no_such";
    saved.iteration = 7;
    saved.text.assign(unknown.begin(), unknown.end());
    allreduce.restore(saved); // as without a scheme
    CHECK(allreduce.state().iteration == 7);
    CHECK(allreduce.state().text.empty());
  });
}

TEST_CASE("automatic: a machine is written down and read again, and other text is refused by its line", "[automatic]") {
  machine_model measured;
  in_process::run(2, [&](in_process_communicator comm) {
    auto const found = machine_model::measure<float, std::int32_t>(E(), any_communicator(C(comm)), length, k);
    if (comm.rank() == 0) {
      measured = found;
    }
  });
  CHECK(measured.latency > 0);
  CHECK(measured.latency < 1);
  CHECK(measured.select > 0);
  CHECK(measured.formats.size() >= 3);
  std::stringstream file;
  file << measured;
  std::ostringstream again;
  again << machine_model::load(file);
  CHECK(again.str() == file.str());
  for (std::string const text : {"latency = fast", "latency 3", "speed = 3", "select = -1", "add = nan", "add = inf",
                                 "latency = 5us", "latency = 5,0e-5", "latency = 5e-5 or so", "latency = 0x10"}) {
    std::istringstream in(text);
    CHECK(outcome_of([&] { machine_model::load(in); }).says(text));
  }
  std::istringstream blanks("latency = 5e-5 \t\r\n");
  CHECK(machine_model::load(blanks).latency == 5e-5);
}

// That nothing is lost while schemes are tried simulate_automatic finds, as above.
TEST_CASE("automatic: each bucket chooses by itself, the same on all ranks", "[automatic]") {
  constexpr int ranks = 4;
  constexpr int steps = 40; // a scheme is on trial for 12 calls at most, however short they are
  constexpr std::array<std::int64_t, 2> lengths{256, 20000}; // small and dense, large and sparse
  constexpr std::array<double, 2> densities{1, 0.005};
  // A machine that is given and not measured, and so slow that no call here takes as long as a scheme that it rules out,
  // however busy this one is.
  std::string const file = "automatic_buckets_machine_" + std::to_string(::getpid());
  std::ofstream(file) << network(20e-3, 8e-6);                      // 1 Mbit/s
  std::vector<std::array<std::vector<std::string>, 2>> runs(ranks); // in each step
  in_process::run(ranks, [&](in_process_communicator comm) {
    auto const make = [&](bucket const& of) {
      std::size_t const which = of.length == lengths[0] ? 0 : 1;
      return make_allreduce(E(), comm, "automatic(recheck=2, machine=" + file + ")",
                            {.length = of.length, .density = densities[which]});
    };
    detail::bucketed_options how;
    how.overlap = false;
    how.plan.bucket_bytes = 1; // a bucket for each tensor
    bucketed<any_allreduce<E>> buckets(E(), comm, lengths, make, how);
    for (int step = 0; step < steps; ++step) {
      for (int tensor = 0; tensor < 2; ++tensor) {
        auto const gradient = buckets.gradient(tensor);
        for (std::size_t i = 0; i < gradient.extent(0); ++i) {
          gradient(i) = static_cast<float>((i * 7 + static_cast<std::size_t>(step * 13 + comm.rank() * 5)) % 17) - 8.0F;
        }
        buckets.ready(tensor);
      }
      buckets.wait();
      for (int b = 0; b < 2; ++b) {
        std::size_t const tensor = buckets.allreduce(b).length() == lengths[0] ? 0 : 1;
        std::string const told = buckets.allreduce(b).explain();
        runs[static_cast<std::size_t>(comm.rank())][tensor].push_back(told.substr(0, told.find(": ")));
      }
    }
  });
  std::remove(file.c_str());
  CHECK(runs == decltype(runs)(ranks, runs[0]));
  // The first on trial has the best prediction. For the small bucket that is a dense one; for the large one no dense
  // scheme comes near.
  auto const is_sparse = [](std::string const& text) { return text.find("topk") != std::string::npos; };
  CHECK((!is_sparse(runs[0][0][0]) || runs[0][0][0].find("_or_dense") != std::string::npos));
  for (std::string const& each : runs[0][1]) {
    CAPTURE(each);
    CHECK(is_sparse(each));
  }
  for (auto const& of_bucket : runs[0]) {
    CHECK(std::set<std::string>(of_bucket.begin(), of_bucket.end()).size() > 1); // several were tried
  }
}
