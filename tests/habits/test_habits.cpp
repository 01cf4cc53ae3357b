// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What programs do that no page of ours told them to do. A row a habit: where it was met, and what is right.

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/collect.hpp"

#include <oktopk/adam.hpp>
#include <oktopk/allreduce.hpp>
#include <oktopk/catalogue/automatic.hpp>
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/catalogue/option_reader.hpp>
#include <oktopk/training/density.hpp>

#include <fenv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <clocale>
#include <csignal>
#include <fstream>
#include <locale>
#include <sstream>

namespace {

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::in_process_communicator;

/// The signal or the exit status of a child that runs `body`, and what it has said on standard error.
struct ended {
  int signal = 0;
  int status = 0;
  std::string said;
};

template <class Body>
ended in_child(Body const& body) {
  std::fflush(stdout);
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  pid_t const child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (int const each : {SIGSEGV, SIGFPE, SIGABRT, SIGBUS}) { // without the handlers of the test framework
      std::signal(each, SIG_DFL);
    }
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
    dup2(ends[1], STDERR_FILENO);
    try {
      body();
    } catch (std::exception const& caught) {
      std::fputs(caught.what(), stderr);
      _exit(1);
    }
    _exit(0);
  }
  close(ends[1]);
  ended how;
  std::array<char, 512> part{};
  for (ssize_t got = 0; (got = read(ends[0], part.data(), part.size())) > 0;) {
    how.said.append(part.data(), static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  how.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  how.status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  return how;
}

} // namespace

// HDFGroup/hdf5#3831, reaktoro/reaktoro#114, cp2k/cp2k#1104, tdavidcl/Shamrock#692: debug builds of codes of science trap
// floating-point exceptions. Right: no algorithm raises one for values that are no extremes.
#if defined(__GLIBC__) && !defined(__FAST_MATH__)
TEST_CASE("programs trap floating-point exceptions") {
  std::vector<std::string> texts;
  for (auto const* const policy :
       {"local=reused", "local=gaussian", "local=chunked", "local=random", "global=reused", "global=foreseen",
        "global=gathered", "partition=balanced", "partition=uniform", "reduce=radix", "format=coo_or_dense",
        "format=gap16", "format=packed(values=bfloat16)", "format=packed(values=fixed8)",
        "format=packed(values=fixed4)", "format=packed(values=fixed2)", "format=packed(values=sign)",
        "format=packed(values=float16)"}) {
    texts.push_back(std::string("ok_topk(") + policy + ")");
  }
  for (auto const* const codec : {"bfloat16", "float16", "block_float"}) {
    for (auto const* const scheme : {"ring_chunked", "recursive_doubling", "dense_rabenseifner"}) {
      texts.push_back(std::string(scheme) + "(codec=" + codec + ", cutoff_bytes=0)");
    }
  }
  for (auto const& each : oktopk::list_allreduces()) {
    texts.push_back(each.name);
  }
  for (std::string const& text : texts) {
    for (int const kind : {0, 1, 2}) { // all zero, all equal, all different
      CAPTURE(text, kind);
      ended const how = in_child([&] {
        feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW);
        oktopk::in_process::run(3, [&](in_process_communicator comm) {
          constexpr std::int64_t length = 600;
          Kokkos::View<float*, execution> gradient("gradient", length);
          Kokkos::View<float*, execution> weights("weights", length);
          auto const on_host = Kokkos::create_mirror_view(gradient);
          for (std::int64_t i = 0; i < length; ++i) {
            on_host(static_cast<std::size_t>(i)) =
                kind == 0   ? 0.0F
                : kind == 1 ? 1.0F
                            : 0.01F * static_cast<float>((i * 7919 + comm.rank()) % 601 - 300);
          }
          Kokkos::deep_copy(gradient, on_host);
          oktopk::gradient_size const size{.length = length, .k = 30};
          auto plain = oktopk::make_allreduce(execution(), comm, text, size);
          oktopk::sgd slow(plain, {.learning_rate = 0.1, .feedback = {.momentum = 0.9, .clip_norm = 0.5}});
          auto other = oktopk::make_allreduce(execution(), comm, text, size);
          oktopk::adam fast(other, {.learning_rate = 0.1, .feedback = {.clip_norm = 0.5}});
          for (int step = 0; step < 3; ++step) {
            slow.step(weights, gradient);
            fast.step(weights, gradient);
          }
        });
      });
      CHECK(how.signal == 0);
      CHECK(how.said == "");
    }
  }
}

// The same programs read the flags of exceptions after a part of their own. Right: the probe of the arithmetic leaves them.
TEST_CASE("programs read the flags of floating-point exceptions") {
  for (int const set : {0, FE_DIVBYZERO}) {
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(set);
    oktopk::detail::arithmetic_mode();
    CHECK(fetestexcept(FE_ALL_EXCEPT) == set);
  }
  feclearexcept(FE_ALL_EXCEPT);
}
#endif

// ludwig-ai/ludwig#3230, egesabanci/reap-mlx#74: a share where a count is meant, 0.01. Right: it does not compile
// (compile_fail.share_as_k), and in a text it is an error.
TEST_CASE("programs give a share for a number of entries") {
  using count = oktopk::detail::element_count;
  STATIC_REQUIRE(!std::is_constructible_v<count, bool>);
  STATIC_REQUIRE(std::is_convertible_v<std::size_t, std::optional<count>>);
  STATIC_REQUIRE(std::is_convertible_v<std::optional<std::int64_t>, std::optional<count>>);
  oktopk::in_process::run(1, [](in_process_communicator comm) {
    oktopk::gradient_size const size{.length = 100, .k = {}, .density = {}};
    auto const heard = outcome_of([&] { oktopk::make_allreduce(execution(), comm, "topk_a(k=0.01)", size); });
    CHECK(unlike(heard, fault::option_out_of_range, "is no integer") == "");
  });
}

// project-chip/connectedhomeip#36487, spf13/pflag#304: numbers as scripts and people write them. Right: one value, or refused.
TEST_CASE("people write numbers in many forms") {
  auto const read = [](std::string const& text) {
    std::int64_t number = -1;
    return oktopk::detail::read_number(text, number) ? std::optional(number) : std::nullopt;
  };
  for (auto const* const text : {"1000", "01000", "+1000", "1e3", "1E3", "+1.0e3", "10e2"}) {
    CAPTURE(text);
    CHECK(read(text) == 1000);
  }
  CHECK(read("08") == 8);
  CHECK(read("-5") == -5);
  for (auto const* const text : {"",
                                 "+",
                                 "-",
                                 "+-5",
                                 "1'000",
                                 "1_000",
                                 "1,000",
                                 "1 000",
                                 "0x10",
                                 "0.01",
                                 "5.",
                                 "5.0",
                                 "1e-2",
                                 "1e17",
                                 "1e400",
                                 "9223372036854775808",
                                 "inf",
                                 "nan",
                                 "5k",
                                 "e3",
                                 "1e",
                                 "\xC2\xA0"
                                 "5"}) {
    CAPTURE(text);
    CHECK(read(text) == std::nullopt);
  }
  std::int32_t narrow = 0;
  CHECK_FALSE(oktopk::detail::read_number("3e9", narrow));
  auto const real = [](std::string const& text) {
    double number = -1;
    return oktopk::detail::read_number(text, number) ? std::optional(number) : std::nullopt;
  };
  for (auto const* const text : {".5", "0.5", "+0.5", "5e-1", "00.50", "0.5e0", "500e-3"}) {
    CAPTURE(text);
    CHECK(real(text) == 0.5);
  }
  CHECK(real("5.") == 5.0);
  for (auto const* const text : {"0,5", "0x1p-1", "1e400", "5us", "0.5 ", " 0.5", ".", "1.2.3"}) {
    CAPTURE(text);
    CHECK(real(text) == std::nullopt);
  }
}

namespace {

/// A decimal comma, and a point after each three digits.
struct comma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

} // namespace

// claude-carbon#10, votca/votca#999: a program sets the user's language. Right: the same texts and numbers.
TEST_CASE("programs set a locale with a decimal comma") {
  oktopk::machine_model model;
  model.latency = 12345.678;
  std::ostringstream plain;
  plain << model;
  std::locale const before = std::locale::global(std::locale(std::locale::classic(), new comma));
  bool const has_german = std::setlocale(LC_NUMERIC, "de_DE.UTF-8") != nullptr;
  CAPTURE(has_german);
  std::ostringstream text;
  text << model;
  CHECK(text.str() == plain.str());
  std::istringstream in(text.str());
  CHECK(oktopk::machine_model::load(in).latency == 12345.678);
  CHECK(oktopk::detail::duration_text(std::chrono::milliseconds(1500)) == "1.500000 s");
  CHECK(oktopk::density_schedule{.density = 1.5}.problem() == "the density 1.500000 is not in (0, 1]");
  // Ranks of two processes, of which one has set the locale, compare the same facts.
  oktopk::in_process::run(2, [&](in_process_communicator comm) {
    auto const made = outcome_of([&] {
      if (comm.rank() == 1) {
        std::locale::global(std::locale::classic());
      }
      oktopk::agreement terms("facts");
      terms.fact("length", 1234567).fact("density", 0.5);
      terms.check_on(comm);
    });
    CHECK(made == outcome());
    std::locale::global(std::locale(std::locale::classic(), new comma));
    auto const heard = outcome_of([&] { oktopk::ok_topk(execution(), comm, {.length = 1000, .density = 1.5}); });
    CHECK(unlike(heard, fault::density_out_of_range, "density = 1.5 ") == "");
    auto automatic = oktopk::make_allreduce(execution(), comm, "automatic(latency_us=2000.5, rate_mbit=1234.5)",
                                            {.length = 5000, .k = 50, .density = {}});
    CHECK(automatic.name() == "automatic");
  });
  std::setlocale(LC_NUMERIC, "C");
  std::locale::global(before);
}

// numenta/nupic.core-legacy#643, CleverRaven/Cataclysm-DDA#41743, rakshasa/rtorrent#1977: a small state is saved to a full
// disk. Right: an error, not a file of 0 bytes.
#ifdef __linux__
TEST_CASE("programs save to a full disk") {
  oktopk::in_process::run(1, [](in_process_communicator comm) {
    for (int const length : {100, 100000}) {
      oktopk::ok_topk allreduce(execution(), comm, {.length = length, .k = 10});
      oktopk::sgd optimizer(allreduce, {.learning_rate = 0.1});
      auto const save = [](auto const& state) {
        return outcome_of([&] {
          std::ofstream file("/dev/full", std::ios::binary);
          REQUIRE(file);
          oktopk::save(file, state);
        });
      };
      CHECK(unlike(save(allreduce.state()), fault::bad_file, "could not be written") == "");
      CHECK(unlike(save(optimizer.state()), fault::bad_file, "could not be written") == "");
    }
  });
}
#endif

namespace {

// Never inlined: its array is on the stack of the rank.
template <std::size_t Bytes>
[[gnu::noinline]] void use_stack() {
  std::array<char volatile, Bytes> field; // NOLINT(cppcoreguidelines-pro-type-member-init): it is written below
  for (std::size_t i = 0; i < Bytes; i += 512) {
    field[i] = 1;
  }
}

} // namespace

// nosqldev/async_coro#3, zonyitoo/coio-rs#30: a rank has a large array on its stack. Right: the program says why it ends.
#if !defined(OKTOPK_DETAIL_FIBER_ASAN) && !defined(__SANITIZE_THREAD__)
TEST_CASE("ranks in one process have large arrays") {
  ended const how =
      in_child([] { oktopk::in_process::run(2, [](in_process_communicator) { use_stack<std::size_t(12) << 20>(); }); });
  CHECK(how.signal == SIGSEGV);
  CHECK(how.said.find("has overflowed its stack of 8388608 bytes; in_process::options::stack_bytes") !=
        std::string::npos);
  ended const more = in_child([] {
    oktopk::in_process::run(2, [](in_process_communicator) { use_stack<std::size_t(12) << 20>(); },
                            {.stack_bytes = std::size_t(16) << 20});
  });
  CHECK(more.signal == 0);
  CHECK(more.said == "");
}

TEST_CASE("other crashes say nothing of stacks, and a handler of the program stays") {
  ended const other = in_child([] { oktopk::in_process::run(2, [](in_process_communicator) { raise(SIGSEGV); }); });
  CHECK(other.signal == SIGSEGV);
  CHECK(other.said == "");
  ended const own = in_child([] {
    std::signal(SIGSEGV, [](int) { _exit(7); });
    oktopk::in_process::run(1, [](in_process_communicator) {});
    oktopk::in_process::run(1, [](in_process_communicator) { raise(SIGSEGV); });
  });
  CHECK(own.status == 7);
}
#endif
