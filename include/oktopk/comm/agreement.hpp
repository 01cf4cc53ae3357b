// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/collectives.hpp>
#include <oktopk/core/number_text.hpp>
#include <oktopk/core/version.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>
#include <charconv>

namespace oktopk {

namespace detail {

/// Holds the floating-point exceptions of this thread back, those that the program traps, too, and sets its flags as they
/// were at the end of the scope. Keeps the mode of arithmetic.
class held_exceptions {
public:
  held_exceptions() { std::feholdexcept(&before_); }
  ~held_exceptions() { std::fesetenv(&before_); }
  held_exceptions& operator=(held_exceptions&&) = delete;

private:
  std::fenv_t before_{};
};

/// The mode of this thread's arithmetic: "rounds to nearest, keeps denormals". A library that was linked with
/// -ffast-math, or torch.set_flush_denormal, changes it when the program runs; then this rank adds otherwise.
[[gnu::cold]] inline std::string arithmetic_mode() {
  held_exceptions const held; // the products underflow
  auto const sum = [](float a, float b) {
    float volatile const x = a; // volatile: the compiler must leave the sum to this thread
    float volatile const y = b;
    float volatile const both = x + y;
    return both;
  };
  auto const product_is_zero = [](float a, float b) {
    float volatile const x = a;
    float volatile const y = b;
    // Volatile, too: of bits that are compared with 0 Clang 19 makes a comparison that reads denormals in this mode.
    std::uint32_t const volatile bits = magnitude_bits(x * y);
    return bits == 0;
  };
  bool const up = sum(1, 0x1p-30F) != 1;
  bool const below = sum(1, -0x1p-30F) != 1;
  bool const above = sum(-1, 0x1p-30F) != -1;
  return std::string("rounds ") +
         (up       ? "up"
          : !below ? "to nearest"
          : above  ? "towards zero"
                   : "down") +
         (product_is_zero(std::numeric_limits<float>::min(), 0.5F) ? ", flushes denormals" : ", keeps denormals") +
         (product_is_zero(std::numeric_limits<float>::denorm_min(), 0x1p100F) ? ", reads denormals as zero" : "");
}

} // namespace detail

/// Facts that all ranks must have in common when they make an object together, and the fault of a rank, if any.
///
/// Each rank lists its facts (`length = 1000`) and notes its own fault, if any; `check_on` is collective and throws the
/// same sentence on every rank if facts differ or some rank has a fault. The version of the library, the byte order and
/// the mode of arithmetic of the thread that makes the object are facts of every rank. Agreement costs one allreduce of
/// four words; only if it fails the ranks exchange their facts. It is the library's defence against ranks that were
/// compiled or called differently, so the exchange has the same form for all types, versions and byte orders.
class agreement {
public:
  /// Only tests name another library or byte order.
  [[gnu::cold]] explicit agreement(std::string_view what, std::string_view library = version(),
                                   std::endian order = std::endian::native)
      : what_(what) {
    if (!Kokkos::is_initialized()) { // every object of the library is made by an agreement, so each of them hears it
      note(fault::bad_state, "Kokkos is not initialised: a Kokkos::ScopeGuard comes before the first object of oktopk");
    }
    fact("version of oktopk", library);
    fact("byte order", order == std::endian::little ? "little-endian" : "big-endian");
    fact("arithmetic", detail::arithmetic_mode());
  }

  template <class T>
  [[gnu::cold]] agreement& fact(std::string_view name, T const& value) {
    detail::plain_text text;
    text.precision(17);
    text << value;
    facts_ += std::string(name) + " = " + text.str() + "\n";
    return *this;
  }

  /// Notes a fault of this rank, unless the sentence is empty; the first fault counts.
  [[gnu::cold]] void note(fault code, std::string const& sentence) {
    if (code_ == fault::none && !sentence.empty()) {
      code_ = code;
      sentence_ = sentence;
    }
  }

  template <communicator Comm>
  [[gnu::cold]] void check_on(Comm& comm, phase use = phase::control) const {
    collective_workspace workspace;
    comm.begin_operation(what_, -1);
    std::string const mine = record();
    detail::fnv1a hash;
    hash.add(mine.data(), mine.size());
    std::uint64_t const digest = hash.value();
    std::array<std::uint64_t, 2> ends{digest, ~digest}; // one minimum gives the least and the greatest digest
    allreduce_integers(comm, std::span<std::uint64_t>(ends), reduction::min, use, workspace);
    if (ends[0] == digest && ends[1] == ~digest) {
      if (code_ != fault::none) {
        throw error(code_, what_ + ": " + sentence_);
      }
      return;
    }
    std::vector<char> sent(record_bytes, '\0');
    std::copy_n(mine.begin(), std::min(mine.size(), record_bytes - 1), sent.begin());
    std::vector<char> all(static_cast<std::size_t>(comm.size()) * record_bytes);
    allgather(comm, std::span<char const>(sent), std::span<char>(all), use, workspace);
    std::vector<std::string> records;
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(comm.size()); ++rank) {
      // A damaged record may lack its final zero.
      std::string_view const record(all.data() + rank * record_bytes, record_bytes);
      records.emplace_back(record.substr(0, record.find('\0')));
    }
    report(records);
  }

private:
  static constexpr std::size_t record_bytes = 2048;

  // The whole record is compared; at most `record_bytes` of it are sent. First line: the fault's number and sentence;
  // then the object; then one fact in each line.
  [[gnu::cold]] std::string record() const {
    return std::to_string(static_cast<int>(code_)) + " " + sentence_ + "\nobject = " + what_ + "\n" + facts_;
  }

  [[noreturn, gnu::cold]] void report(std::vector<std::string> const& records) const {
    detail::first_fault first;
    for (std::size_t rank = 0; rank < records.size(); ++rank) {
      unsigned char code = 0;
      auto const* const begin = records[rank].data();
      auto const [end, failure] = std::from_chars(begin, begin + records[rank].size(), code);
      if (failure != std::errc() || end == begin + records[rank].size() || *end != ' ') {
        throw error(fault::damaged_message,
                    what_ + ": the record of rank " + std::to_string(rank) + " has no fault in front: it was damaged");
      }
      first.hear({static_cast<fault>(code)}, static_cast<int>(rank));
    }
    if (first) {
      std::string const& text = records[static_cast<std::size_t>(first.rank())];
      auto const begin = text.find(' ') + 1;
      throw error(first.report().code,
                  "rank " + std::to_string(first.rank()) + ": " + text.substr(begin, text.find('\n') - begin));
    }
    for (std::size_t rank = 1; rank < records.size(); ++rank) {
      std::istringstream zero(records[0]);
      std::istringstream other(records[rank]);
      std::string a;
      std::string b;
      while (std::getline(zero, a) && std::getline(other, b)) {
        if (a != b) {
          throw error(fault::ranks_disagree,
                      "the ranks disagree: rank 0 has " + a + ", rank " + std::to_string(rank) + " has " + b);
        }
      }
      if (records[rank] != records[0]) {
        throw error(fault::ranks_disagree,
                    "the ranks disagree: rank 0 and rank " + std::to_string(rank) + " make objects of different kinds");
      }
    }
    throw error(fault::ranks_disagree, "the ranks disagree on what they are making");
  }

  std::string what_;
  std::string facts_;
  fault code_ = fault::none;
  std::string sentence_;
};

} // namespace oktopk
