// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "messages.hpp"

#include <benchmark/benchmark.h>
#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/core/sparse.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace format_bench {

#ifdef KOKKOS_ENABLE_SERIAL
using space = Kokkos::Serial; // one core, whatever else there is
#else
using space = Kokkos::DefaultHostExecutionSpace;
#endif

/// Memory that all measurements share, and which of them has used it last.
struct scratch {
  void const* owner = nullptr;
  std::vector<std::uint64_t> wire;
  std::vector<std::int32_t> indices;
  std::vector<float> values;
};

/// The messages of an input in a format. Checks that what was written can be read.
template <class Format>
class subject {
public:
  subject(std::string name, input const& from, scratch& shared)
      : name_(std::move(name)), from_(from), scratch_(shared) {}

  /// Makes the messages, unless they are the last that were made.
  void prepare() {
    if (scratch_.owner == this) {
      return;
    }
    offsets_.clear();
    std::int64_t bytes = 0;
    std::int64_t longest = 0;
    for (message const& each : from_.messages) {
      offsets_.push_back(bytes);
      // A multiple of 8, and bytes that decoders of whole vectors may read.
      bytes += (format_.max_encoded_bytes(each.size(), each.where) + 71) / 8 * 8;
      longest = std::max(longest, each.size());
    }
    sizes_.resize(offsets_.size());
    scratch_.wire.resize(static_cast<std::size_t>(bytes) / 8);
    scratch_.indices.resize(static_cast<std::size_t>(longest));
    scratch_.values.resize(static_cast<std::size_t>(longest));
    encode();
    check();
    scratch_.owner = this;
  }

  void encode() {
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      message const& each = from_.messages[i];
      oktopk::sparse_ref<std::int32_t, float, space::memory_space> const all(each.indices.data(), each.values.data(),
                                                                             each.size());
      sizes_[i] = format_.encode(exec_, all, each.where, at(i));
    }
    exec_.fence();
  }

  void decode() {
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      decode(i);
    }
    exec_.fence();
  }

  /// The figures that do not depend on time.
  void count(benchmark::State& state) const {
    std::int64_t bytes = 0;
    for (std::int64_t const each : sizes_) {
      bytes += each;
    }
    auto const all = static_cast<double>(from_.entries());
    state.counters["entries"] = all;
    state.counters["messages"] = static_cast<double>(offsets_.size());
    state.counters["bits_per_entry"] = 8 * static_cast<double>(bytes) / all;
    state.counters["gap_entropy"] = from_.gap_entropy;
    state.counters["choice_bits"] = from_.choice_bits;
    state.counters["value_error"] = value_error_;
    state.counters["entries_per_second"] =
        benchmark::Counter(all * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  }

private:
  std::byte* at(std::size_t which) { return reinterpret_cast<std::byte*>(scratch_.wire.data()) + offsets_[which]; }

  void decode(std::size_t which) {
    message const& each = from_.messages[which];
    format_.decode(exec_, at(which), sizes_[which], each.size(), each.where, scratch_.indices.data(),
                   scratch_.values.data());
  }

  void check() {
    double off = 0;
    double all = 0;
    std::fill(scratch_.values.begin(), scratch_.values.end(), 0.0F); // of a format that sends none
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      message const& each = from_.messages[i];
      if (sizes_[i] > format_.max_encoded_bytes(each.size(), each.where)) {
        throw std::runtime_error(name_ + " takes more bytes than it says");
      }
      decode(i);
      exec_.fence();
      for (std::size_t entry = 0; entry < each.indices.size(); ++entry) {
        bool const same_value = scratch_.values[entry] == each.values[entry];
        if (scratch_.indices[entry] != each.indices[entry] || (Format::lossless && !same_value)) {
          throw std::runtime_error(name_ + " does not give back entry " + std::to_string(entry) + " of a message of " +
                                   from_.name);
        }
        double const away = static_cast<double>(scratch_.values[entry]) - each.values[entry];
        off += away * away;
        all += static_cast<double>(each.values[entry]) * each.values[entry];
      }
    }
    value_error_ = all > 0 ? std::sqrt(off / all) : 0;
  }

  std::string name_;
  input const& from_;
  scratch& scratch_;
  Format format_{};
  space exec_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::int64_t> sizes_;
  double value_error_ = 0;
};

/// An input as it was asked for.
struct case_of {
  input const& from;
  double density;
  std::int64_t parts;
};

/// All measurements, which must end before Kokkos does.
struct measurements {
  scratch shared;
  std::vector<std::shared_ptr<void>> subjects;
};

/// Registers the measurement of a format on an input: to encode all its messages, and to decode them.
template <class Format>
void bench_format(measurements& all, std::string const& name, case_of const& on) {
  auto const made = std::make_shared<subject<Format>>(name, on.from, all.shared);
  all.subjects.push_back(made);
  subject<Format>* const own = made.get();
  std::ostringstream rest;
  rest << '/' << on.from.name << "/n:" << on.from.length << "/density:" << on.density << "/parts:" << on.parts;
  auto const add = [&](char const* what, void (subject<Format>::*run)()) {
    benchmark::RegisterBenchmark((name + "/" + what + rest.str()).c_str(), [own, run](benchmark::State& state) {
      own->prepare();
      for (auto _ : state) {
        (own->*run)();
        benchmark::ClobberMemory();
      }
      own->count(state);
    })->Unit(benchmark::kMicrosecond);
  };
  add("encode", &subject<Format>::encode);
  add("decode", static_cast<void (subject<Format>::*)()>(&subject<Format>::decode));
}

} // namespace format_bench
